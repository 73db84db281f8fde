#!/usr/bin/env python3
"""Every model beside onnxruntime, in one run, as a table.

    bench/models.py KILN MODELS_DIR [--only NAME ...] [-n RUNS]

For each model: AOT time and file size (against the ONNX file); in a cold cache the time to finalize and run first; in a
second process the wall time from its start to its first output and its cache misses; then medians of repeated runs,
ours and onnxruntime's interleaved in three rounds (the best median of each counts), both on all processors.
models_vs_onnxruntime.py checks the answers; run it first.
"""
import argparse, glob, json, os, subprocess, sys, tempfile, time
import numpy as np
import onnx
import onnxruntime as ort

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "long"))
from models_vs_onnxruntime import make_inputs


def kiln_json(*arguments):
    began = time.perf_counter()
    done = subprocess.run([*map(str, arguments), "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout), time.perf_counter() - began


def ort_session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def median_ms(session, inputs, runs):
    times = []
    for _ in range(runs + 3):
        began = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - began) * 1e3)
    return float(np.median(times[3:]))


def measure(kiln, path, runs):
    name = os.path.basename(path)[:-5]
    dims = {"batch": 1} if "dynbatch" in name else {}
    inputs = make_inputs(onnx.load(path), dims)
    with tempfile.TemporaryDirectory() as d:
        given = sum((["--dim", f"{k}={v}"] for k, v in dims.items()), [])
        compiled, aot = kiln_json(kiln, "compile", path, "-o", f"{d}/m.kiln", *given)
        cold, _ = kiln_json(kiln, "run", f"{d}/m.kiln", "--cache", f"{d}/cache")
        warm, wall = min((kiln_json(kiln, "run", f"{d}/m.kiln", "--cache", f"{d}/cache") for _ in range(3)), key=lambda r: r[1])
        session = ort_session(path)
        ours, theirs = [], []
        for _ in range(3):
            ours.append(kiln_json(kiln, "perf", f"{d}/m.kiln", "--cache", f"{d}/cache", "-n", runs)[0]["p50_ms"])
            theirs.append(median_ms(session, inputs, runs))
        return dict(model=name, aot_s=aot, size=compiled["bytes"] / os.path.getsize(path), kernels=warm["kernels"], interpreted=warm["interpreted"],
                    cold_s=(cold["finalize_ms"] + cold["load_ms"] + cold["first_run_ms"]) / 1e3, warm_s=wall, warm_misses=warm["cache"]["misses"],
                    ours_ms=min(ours), ort_ms=min(theirs))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("models")
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("-n", type=int, default=20)
    a = p.parse_args()
    print("| model | AOT s | size / ONNX | kernels | interpreted | cold finalize + load + first run s | warm process s | warm misses | run ms | onnxruntime ms | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for path in sorted(glob.glob(f"{a.models}/*.onnx")):
        if a.only and os.path.basename(path)[:-5] not in a.only:
            continue
        r = measure(os.path.abspath(a.kiln), path, a.n)
        print(f"| {r['model']} | {r['aot_s']:.2f} | {r['size']:.4f} | {r['kernels']} | {r['interpreted']} | {r['cold_s']:.2f} | {r['warm_s']:.3f} | {r['warm_misses']} "
              f"| {r['ours_ms']:.2f} | {r['ort_ms']:.2f} | {r['ort_ms'] / r['ours_ms']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
