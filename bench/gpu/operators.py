#!/usr/bin/env python3
"""Single operators on an NVIDIA GPU beside PyTorch, in one run, as a table.

    bench/gpu/operators.py KILN [--device cuda:0] [--only TEXT ...] [--keep FOLDER] [--exports] [--json FILE]

Each case is a chain of `CHAIN` equal operators (one where an operator is large), so that both sides are one graph of several
kernels. Kiln: `kiln perf`, runs that are queued one after the other. PyTorch: a CUDA graph of the same chain, replays that are
queued; for attention the fastest of its back ends. TF32 is off on both sides. Answers are compared with PyTorch in f64 (f32
for large ones): ||ours - theirs|| / ||theirs||; PyTorch's own error stands beside. --exports also exports causal
scaled_dot_product_attention with torch's exporters and measures those files. Exit code 1 if an answer is wrong.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

TYPES = {"f16": (T.FLOAT16, np.float16), "f32": (T.FLOAT, np.float32)}
LIMITS = {"f16": 4e-3, "f32": 1e-5}


class Graph:
    """One model: nodes in order, constants, inputs with random data."""

    def __init__(self, type_name):
        self.type, self.numpy = TYPES[type_name]
        self.nodes, self.constants, self.inputs, self.data = [], [], [], {}
        self.random = np.random.default_rng(3)

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weights(self, dims, scale):
        array = (self.random.standard_normal(dims, np.float32) * scale).astype(self.numpy)
        return self.constant(array), array

    def input(self, name, dims, scale=1.0, numpy=None):
        self.data[name] = (self.random.standard_normal(dims, np.float32) * scale).astype(numpy or self.numpy)
        self.inputs.append(h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(self.data[name].dtype), list(dims)))
        return name

    def add(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(h.make_node(op, inputs, [name], **attributes))
        return name

    def save(self, path, result, dims):
        self.nodes.append(h.make_node("Identity", [result], ["y"]))
        output = h.make_tensor_value_info("y", self.type, list(dims))
        graph = h.make_graph(self.nodes, "operators", self.inputs, [output], self.constants)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def attention(kind, queries, keys, depth, causal=False, heads=12, chain=1, f32_inputs=False):
    def build(path):
        import torch
        from torch.nn.functional import scaled_dot_product_attention as sdpa
        g = Graph("f32" if f32_inputs else kind)
        names = [g.input(n, (1, heads, rows, depth)) for n, rows in (("q", queries), ("k", keys), ("v", keys))]
        x, keys_t = names[0], g.add("Transpose", [names[1]], perm=[0, 1, 3, 2])
        mask = g.constant(np.where(np.tril(np.ones((queries, keys), bool), keys - queries), 0, -np.inf).astype(g.numpy)) if causal else None
        for _ in range(chain):
            scores = g.add("Mul", [g.add("MatMul", [x, keys_t]), g.constant(np.array(depth ** -0.5, g.numpy))])
            x = g.add("MatMul", [g.add("Softmax", [g.add("Add", [scores, mask]) if causal else scores], axis=-1), names[2]])
        g.save(path, x, (1, heads, queries, depth))

        def call(q, k, v):
            if f32_inputs:
                q, k, v = q.half(), k.half(), v.half()
            for _ in range(chain):
                q = sdpa(q, k, v, is_causal=causal)
            return q.float() if f32_inputs else q
        return g, call, 4 * heads * queries * keys * depth * chain / (2 if causal else 1)
    return build


def product(kind, m, k, n, chain=4):
    def build(path):
        g = Graph(kind)
        x, weights = g.input("x", (m, k)), []
        for _ in range(chain if k == n else 1):
            name, array = g.weights((k, n), k ** -0.5)
            weights.append(array)
            x = g.add("MatMul", [x, name])
        g.save(path, x, (m, n))

        def call(x, *constants):
            for w in constants:
                x = x @ w
            return x
        return g, call, 2 * m * k * n * len(weights), weights
    return build


def convolution(kind, batch, channels, size, chain=4):
    def build(path):
        import torch
        g = Graph(kind)
        x, weights = g.input("x", (batch, channels, size, size)), []
        for _ in range(chain):
            name, array = g.weights((channels, channels, 3, 3), (9 * channels) ** -0.5)
            weights.append(array)
            x = g.add("Conv", [x, name], pads=[1, 1, 1, 1])
        g.save(path, x, (batch, channels, size, size))

        def call(x, *constants):
            x = x.to(memory_format=torch.channels_last)
            for w in constants:
                x = torch.nn.functional.conv2d(x, w.to(memory_format=torch.channels_last), padding=1)
            return x
        return g, call, 2 * 9 * channels * channels * size * size * batch * chain, weights
    return build


def norm(kind, rows, width, chain=4):
    def build(path):
        import torch
        g = Graph(kind)
        x, weights = g.input("x", (rows, width)), []
        for _ in range(chain):
            (scale, a), (shift, b) = g.weights((width,), 1.0), g.weights((width,), 0.1)
            weights += [a, b]
            x = g.add("LayerNormalization", [x, scale, shift], axis=-1)
        g.save(path, x, (rows, width))

        def call(x, *constants):
            for a, b in zip(constants[::2], constants[1::2]):
                x = torch.nn.functional.layer_norm(x, (width,), a, b)
            return x
        return g, call, 0, weights, 2 * chain * rows * width * np.dtype(g.numpy).itemsize
    return build


def softmax(kind, dims, axis, chain=4):
    def build(path):
        import torch
        g = Graph(kind)
        x = g.input("x", dims)
        for _ in range(chain):
            x = g.add("Softmax", [x], axis=axis)
        g.save(path, x, dims)

        def call(x):
            for _ in range(chain):
                x = torch.softmax(x, axis)
            return x
        return g, call, 0, [], 2 * chain * int(np.prod(dims)) * np.dtype(g.numpy).itemsize
    return build


CASES = {}
for t in ("f32", "f16"):
    for n in (512, 4096):
        CASES[f"attention {t} {n}x64"] = attention(t, n, n, 64, chain=4 if n == 512 else 1)
        CASES[f"attention {t} {n}x64 causal"] = attention(t, n, n, 64, True, chain=4 if n == 512 else 1)
    for d in (128, 256):
        CASES[f"attention {t} 2048x{d}"] = attention(t, 2048, 2048, d)
        CASES[f"attention {t} 2048x{d} causal"] = attention(t, 2048, 2048, d, True)
    CASES[f"attention {t} 1 of 8192 x64"] = attention(t, 1, 8192, 64, chain=4)
    CASES[f"attention {t} 256 of 8192 x64"] = attention(t, 256, 8192, 64, chain=4)
for n in (512, 4096):
    CASES[f"attention f16 of f32 inputs {n}x64"] = attention("f16", n, n, 64, f32_inputs=True)
for t in ("f32", "f16"):
    for m in (1, 16, 128, 512, 2048) + ((8192,) if t == "f16" else ()):
        CASES[f"product {t} {m}x4096²"] = product(t, m, 4096, 4096)
    CASES[f"product {t} 1024³"] = product(t, 1024, 1024, 1024)
    CASES[f"product {t} 384x768x3072"] = product(t, 384, 768, 3072)
    CASES[f"product {t} 128x768²"] = product(t, 128, 768, 768)
    for batch in (1, 32):
        CASES[f"convolution {t} 3x3 256 14² batch {batch}"] = convolution(t, batch, 256, 14)
    CASES[f"convolution {t} 3x3 64 56² batch 32"] = convolution(t, 32, 64, 56)
    for rows, width in ((8192, 768), (8192, 4096), (384, 768)):
        CASES[f"layer norm {t} {rows}x{width}"] = norm(t, rows, width)
    CASES[f"softmax {t} 8192x4096"] = softmax(t, (8192, 4096), -1)
    CASES[f"softmax {t} 256 rows of 100000"] = softmax(t, (256, 100000), -1)
    CASES[f"softmax {t} strided 64x1024x512"] = softmax(t, (64, 1024, 512), 1)


def queued_ms(call, runs=20):
    """Milliseconds of a call: a CUDA graph of it, replays queued one after the other; the median of five."""
    import torch
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            call()
    times = []
    for _ in range(6):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(runs):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / runs)
    return sorted(times[1:])[2]


def torch_best(name, call):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    if "attention" not in name:
        return queued_ms(call), ""
    best = (float("inf"), "")
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
        try:
            with sdpa_kernel(backend):
                best = min(best, (queued_ms(call), backend.name))
        except RuntimeError:
            torch.cuda.synchronize()
    return best


def kiln(o, *arguments):
    done = subprocess.run([o.kiln, *arguments], capture_output=True, text=True, timeout=180)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip())[-300:])
    return done.stdout


def measure(o, folder, name, path, data, call, tensors, kind, flops, moved, flags=()):
    """One row; `call` is PyTorch's side on `tensors`."""
    import torch
    given = []
    for key, array in data.items():
        np.save(f"{folder}/{key}.npy", array)
        given += ["--input", f"{key}={folder}/{key}.npy"]
    kiln(o, "compile", path, "-o", f"{folder}/m.kiln", "--quiet", *flags)
    common = [f"{folder}/m.kiln", "--device", o.device, "--no-cache"]
    kiln(o, "run", *common, "--quiet", "--output-dir", f"{folder}/out", *given)
    perf = json.loads(kiln(o, "perf", *common, "-n", str(o.runs), "--json"))
    ours = perf.get("queued_ms") or perf["p50_ms"]
    with torch.no_grad():
        theirs, how = torch_best(name, lambda: call(*tensors))
        wide = torch.float64 if flops < 3e11 else torch.float32
        if "f16 of f32" in name:
            expected = call(*tensors).double()
        else:
            try:
                expected = call(*(t.to(wide) for t in tensors)).double()
            except torch.OutOfMemoryError:
                expected = call(*(t.float() for t in tensors)).double()
        got = torch.from_numpy(np.load(sorted(os.path.join(folder, "out", f) for f in os.listdir(f"{folder}/out"))[0])).cuda().double().reshape(expected.shape)
        error = ((got - expected).norm() / expected.norm()).item()
        their_error = ((call(*tensors).double() - expected).norm() / expected.norm()).item()
    return {"case": name, "ours_ms": ours, "torch_ms": theirs, "ratio": theirs / ours, "launches": perf["launches"], "kernels": perf["kernels"], "how": how,
            "tflops": flops / ours / 1e9 if flops else None, "gb_per_s": moved / ours / 1e6 if moved else None, "error": error, "torch_error": their_error, "right": bool(error < LIMITS[kind])}


def exported(folder, dynamo, type_name, queries):
    """torch's own export of a causal scaled_dot_product_attention."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    kind = torch.half if type_name == "f16" else torch.float32
    tensors = [torch.randn(1, 12, queries, 64, device="cuda", dtype=kind) for _ in range(3)]
    path = f"{folder}/sdpa_{'dynamo' if dynamo else 'legacy'}_{type_name}_{queries}.onnx"
    arguments = dict(input_names=["q", "k", "v"], output_names=["y"])
    if dynamo:
        torch.onnx.export(Model(), tuple(tensors), path, dynamo=True, **arguments)
    else:
        torch.onnx.export(Model(), tuple(tensors), path, dynamo=False, opset_version=17, **arguments)
    return path, tensors, Model().forward


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--only", nargs="*", help="parts of names")
    p.add_argument("--keep", help="folder for exported files")
    p.add_argument("--exports", action="store_true")
    p.add_argument("--runs", type=int, default=50)
    p.add_argument("--json")
    o = p.parse_args()
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    rows = []

    def report(name, work):
        try:
            row = work()
        except Exception as e:  # one case that fails is a row; the others go on
            row = {"case": name, "failed": f"{type(e).__name__}: {e}"[-400:], "right": False}
        rows.append(row)
        if "failed" in row:
            print(f"{name:38} FAILED {row['failed']}", flush=True)
        else:
            rate = f"{row['tflops']:.0f} TFLOP/s" if row["tflops"] else f"{row['gb_per_s']:.0f} GB/s"
            print(f"{name:38} {1e3 * row['ours_ms']:9.1f} us {rate:>14}  torch {1e3 * row['torch_ms']:9.1f} us {row['how'][:9]:9} ratio {row['ratio']:5.2f}  launches {row['launches']:3}  "
                  f"error {row['error']:.1e} ({row['torch_error']:.1e}) {'' if row['right'] else 'WRONG'}", flush=True)

    wanted = lambda name: not o.only or any(text in name for text in o.only)
    for name, build in CASES.items():
        if not wanted(name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            def work():
                g, call, flops, *more = build(f"{folder}/m.onnx")
                weights, moved = (more + [[], 0])[:2] if len(more) < 2 else more
                tensors = [torch.from_numpy(a).cuda() for a in [*g.data.values(), *weights]]
                kind = "f16" if " f16" in name else "f32"
                flags = ["--fp16"] if "of f32 inputs" in name else []
                return measure(o, folder, name, f"{folder}/m.onnx", g.data, call, tensors, kind, flops, moved, flags)
            report(name, work)
            torch.cuda.empty_cache()
    if o.exports:
        for dynamo in (False, True):
            for type_name in ("f16", "f32"):
                for queries in (512, 4096):
                    name = f"attention exported by {'dynamo' if dynamo else 'legacy'} {type_name} {queries}"
                    if not wanted(name):
                        continue
                    with tempfile.TemporaryDirectory() as folder:
                        def work():
                            path, tensors, call = exported(o.keep or folder, dynamo, type_name, queries)
                            data = dict(zip("qkv", (t.cpu().numpy() for t in tensors)))
                            return measure(o, folder, name, path, data, call, tensors, type_name, 2 * 12 * queries * queries * 64, 0)
                        report(name, work)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)
    sys.exit(any(not row["right"] for row in rows))


if __name__ == "__main__":
    main()
