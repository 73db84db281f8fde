"""ONNX Runtime's session with Kiln and tensors in a GPU's memory, beside `kiln perf` of the same model: medians of a call, taking
turns, and the copies that PyTorch's profiler sees in 20 calls. Answers are compared with ONNX Runtime's on the processor first.

    python bench/onnxruntime_gpu.py KILN PLUGIN MODEL.onnx... [--device cuda:0] [--precision fp16] [--option graph=on] [--runs 300] [--turns 3]

Each model has a process of its own. "enqueued" is a call of 200 on a stream of torch (option `stream`), of which the last is
waited for. Needs onnxruntime from 1.25 on, and torch for the stream and the profiler.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

VENDOR = {"cuda": 0x10DE, "hip": 0x1002}


def options(device, **given):
    o = ort.SessionOptions()
    o.log_severity_level = 3
    found = [d for d in ort.get_ep_devices() if d.ep_name == "KilnGpuExecutionProvider" and d.ep_metadata["device"] == device]
    o.add_provider_for_devices(found, {k: str(v) for k, v in given.items()})
    return o


def inputs_of(session):
    random = np.random.default_rng(1)
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
    made = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        kind = types[i.type]
        made[i.name] = random.standard_normal(shape).astype(kind) if np.issubdtype(kind, np.floating) else random.integers(0, 2, shape).astype(kind)
    return made


def bound(session, feed, expected, device):
    kind, number = device.split(":")
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array, "gpu", int(number), vendor_id=VENDOR[kind]))
    results = []
    for output, e in zip(session.get_outputs(), expected):
        results.append(ort.OrtValue.ortvalue_from_shape_and_type(list(e.shape), e.dtype.type, "gpu", int(number), VENDOR[kind]))
        binding.bind_ortvalue_output(output.name, results[-1])
    return binding, results


def median_ms(call, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def copies(call):
    """What PyTorch's profiler sees on the GPU in 20 calls: (kernels, copies)."""
    import torch

    torch.cuda.init()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        for _ in range(20):
            call()
    names = [e.name for e in seen.events()]
    return sum("emcpy" not in n and "emset" not in n and "ynchronize" not in n for n in names), sum("emcpy" in n for n in names)


def on_stream_ms(path, o, feed, expected, runs=200):
    """Milliseconds of a call when each is enqueued on a stream of torch and only the last one is waited for."""
    import torch

    stream = torch.cuda.Stream()
    session = session_of(path, o, stream=stream.cuda_stream)
    binding, results = bound(session, feed, expected, o.device)
    for _ in range(100):
        session.run_with_iobinding(binding)
    stream.synchronize()
    begin = time.perf_counter()
    for _ in range(runs):
        session.run_with_iobinding(binding)
    stream.synchronize()
    return (time.perf_counter() - begin) * 1e3 / runs


def session_of(path, o, **more):
    given = dict(p.split("=", 1) for p in o.option)
    session = ort.InferenceSession(path, options(o.device, compiler=o.kiln, precision=o.precision or "model", **given, **more))
    if session.get_providers()[0] != "KilnGpuExecutionProvider":
        raise SystemExit(f"{path}: the session runs without Kiln")
    return session


def perf_ms(file, o):
    done = subprocess.run([o.kiln, "perf", file, "--device", o.device, "-n", str(o.runs), "--warmup", "100", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["p50_ms"]


def measure(o, path, folder):
    file = os.path.join(folder, "model.kiln")
    subprocess.run([o.kiln, "compile", path, "-o", file, "--quiet", *(["--" + o.precision] if o.precision else [])], check=True)
    reference = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = inputs_of(reference)
    expected = reference.run(None, feed)
    begin = time.perf_counter()
    session = session_of(path, o)
    binding, results = bound(session, feed, expected, o.device)
    call = lambda: session.run_with_iobinding(binding)
    call()
    first = time.perf_counter() - begin
    error = max(float(np.linalg.norm(r.numpy().astype(np.float64) - e) / max(np.linalg.norm(e.astype(np.float64)), 1e-30)) for r, e in zip(results, expected))

    def plugin_ms():
        median_ms(call, 100)  # as many as kiln perf's --warmup
        return median_ms(call, o.runs)

    plugin_ms()
    turns = [(perf_ms(file, o), plugin_ms()) for _ in range(o.turns)]
    ours, plugin = (statistics.median(t) for t in zip(*turns))
    name = os.path.basename(path).removesuffix(".onnx")
    print(f"{name:24} kiln perf {ours:.4f} ms, onnxruntime {plugin:.4f} ms, ratio {plugin / ours:.3f}, first answer {first:.2f} s, error {error:.1e}", end="", flush=True)
    if o.device.startswith("cuda") and not o.times_only:  # last, because the profiler stays attached to the process and makes calls slower
        print(f", {on_stream_ms(path, o, feed, expected):.4f} ms enqueued, %d kernels and %d copies in 20 calls" % copies(call), end="")
    print(flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kiln")
    arguments.add_argument("plugin")
    arguments.add_argument("models", nargs="+")
    arguments.add_argument("--device", default="cuda:0")
    arguments.add_argument("--precision", default="", choices=["", "fp16", "bf16"])
    arguments.add_argument("--option", action="append", default=[], help="of the provider, as graph=on")
    arguments.add_argument("--runs", type=int, default=300)
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--times-only", action="store_true", help="without the stream of torch and the profiler")
    o = arguments.parse_args()
    o.kiln = os.path.abspath(o.kiln)
    if len(o.models) > 1:
        for path in o.models:
            subprocess.run([sys.executable, __file__, *(a for a in sys.argv[1:] if a not in o.models or a == path)])
        return
    ort.register_execution_provider_library("kiln", os.path.abspath(o.plugin))
    with tempfile.TemporaryDirectory() as folder:
        measure(o, o.models[0], folder)


if __name__ == "__main__":
    main()
