#!/usr/bin/env python3
"""Products of quantized 8-bit floats (f8e4m3) on an NVIDIA GPU, beside PyTorch's.

    float8.py KILN [--rows 1 8 512 2048 4096] [--size 4096] [--device cuda:0]

A chain of four products of `size` x `size` in an f16 model, each between QuantizeLinear and Relu, with one scale for each
column of the weights. Microseconds of a product: Kiln's launches one by one (`kiln perf --per-kernel`), the one without
and those with the next QuantizeLinear in their end; and of the whole chain, a quarter of `queued`. PyTorch:
torch._scaled_mm with a scale for each row and column (with exact and with fast sums), and f16 of the same sizes, 20 in a
CUDA graph. First the output of one product is compared with the reference (`kiln verify`). Needs numpy, onnx, ml_dtypes, torch."""
import argparse
import json
import os
import subprocess
import tempfile

import ml_dtypes
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

LAYERS = 4


def small(name, values):
    given = np.asarray(values).astype(ml_dtypes.float8_e4m3fn)
    return TensorProto(name=name, data_type=TensorProto.FLOAT8E4M3FN, dims=given.shape, raw_data=given.tobytes())


def model(rows, size, layers=LAYERS):
    rng, nodes, constants, x = np.random.default_rng(0), [], [small("zero", 0)], "x"
    constants.append(numpy_helper.from_array(np.float16(0.02), "step"))
    for n in range(layers):
        weights = rng.standard_normal([size, size], np.float32) / np.sqrt(size)
        scale = (np.abs(weights).max(axis=0) / 448).astype(np.float16)
        constants += [small(f"w{n}", weights / scale), numpy_helper.from_array(scale, f"s{n}")]
        nodes += [helper.make_node("QuantizeLinear", [x, "step", "zero"], [f"q{n}"]),
                  helper.make_node("DequantizeLinear", [f"q{n}", "step", "zero"], [f"d{n}"]),
                  helper.make_node("DequantizeLinear", [f"w{n}", f"s{n}"], [f"v{n}"], axis=1),
                  helper.make_node("MatMul", [f"d{n}", f"v{n}"], [f"m{n}"]), helper.make_node("Relu", [f"m{n}"], [f"y{n}"])]
        x = f"y{n}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [rows, size]) for name in ("x", x)]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], constants), ir_version=10,
                             opset_imports=[helper.make_opsetid("", 21)])


def kiln_us(kiln, rows, size, device, folder):
    path, compiled = os.path.join(folder, "m.onnx"), os.path.join(folder, "m.kiln")
    # One product: in a chain, a number that is quantized to its neighbour changes the next ones.
    onnx.save(model(rows, size, 1), path)
    checked = subprocess.run([kiln, "verify", path, "--device", device], capture_output=True, text=True)
    onnx.save(model(rows, size), path)
    subprocess.run([kiln, "compile", path, "-o", compiled, "--quiet"], check=True)
    done = json.loads(subprocess.run([kiln, "perf", compiled, "--device", device, "--per-kernel", "--json", "--iterations", "60", "--cache", folder],
                                     check=True, capture_output=True, text=True).stdout)
    times = {}
    for kernel in done["per_kernel"]:
        if kernel["symbol"].startswith("dot"):
            times.setdefault("with quantization" if "clamp" in kernel["symbol"] else "alone", []).append(kernel["ms"] * 1e3)
    return {**{name: np.median(all_us) for name, all_us in times.items()}, "chain": done["queued_ms"] * 1e3 / LAYERS}, \
        (checked.stdout or checked.stderr).strip().splitlines()[0]


def graph_us(work, count=20):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            work()
    times = []
    for _ in range(6):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / count)
    return min(times)


def torch_us(rows, size):
    padded = max(rows, 16)
    a = torch.randn(padded, size, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn).t()
    scales = {"scale_a": torch.ones(padded, 1, device="cuda"), "scale_b": torch.ones(1, size, device="cuda")}
    x, y = (torch.randn(n, size, device="cuda", dtype=torch.half) for n in (rows, size))
    product = {fast: graph_us(lambda: torch._scaled_mm(a, b, **scales, out_dtype=torch.bfloat16, use_fast_accum=fast)) for fast in (False, True)}
    return {"torch": product[False], "torch, fast sums": product[True], "torch f16": graph_us(lambda: x @ y)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln")
    p.add_argument("--rows", type=int, nargs="*", default=[1, 8, 512, 2048, 4096])
    p.add_argument("--size", type=int, default=4096)
    p.add_argument("--device", default="cuda:0")
    options = p.parse_args()
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            ours, checked = kiln_us(os.path.abspath(options.kiln), rows, options.size, options.device, folder)
        print(rows, {name: round(float(us), 1) for name, us in {**ours, **torch_us(rows, options.size)}.items()}, checked, flush=True)


if __name__ == "__main__":
    main()
