#!/usr/bin/env python3
"""Models in bf16 and quantized ones for several sets of instructions of one processor, beside OpenVINO and onnxruntime.

    cpu_narrow.py KILN MODEL.onnx [...] [--targets x86-64-v4 zen4 sapphirerapids] [--threads 1 2] [--rounds 3] [--bf16]

Each model is compiled once (--bf16: with `kiln compile --bf16`) and runs for each target in turn (`kiln perf --target`), so that
the columns differ in instructions only: x86-64-v4 computes bf16 in f32, zen4 by AVX512-BF16, sapphirerapids by AMX. With --bf16,
OpenVINO gets INFERENCE_PRECISION_HINT=bf16, and both f32 peers stand beside. Times are best medians of the rounds in ms; the
last column is the first target's time over the last one's. Targets that this machine cannot run are left out."""
import argparse
import functools
import os
import sys
import tempfile

import onnx

from cpu_peers import PEERS, SECONDS, in_turn, installed, kiln_json, median_ms

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "long"))
from models_vs_onnxruntime import make_inputs


def runs_here(kiln, plan, cache, target):
    try:
        kiln_json(kiln, "perf", plan, "--cache", cache, "--target", target, "-n", 1)
        return True
    except RuntimeError as e:
        print(f"{target} is left out: {e}")
        return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln", type=os.path.abspath)
    p.add_argument("models", nargs="+")
    p.add_argument("--targets", nargs="+", default=["x86-64-v4", "zen4", "sapphirerapids"])
    p.add_argument("--threads", nargs="+", type=int, default=[1])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--dim", nargs="*", default=["batch=1"], help="sizes of open dimensions")
    a = p.parse_args()
    dims = {name: int(size) for name, size in (d.split("=") for d in a.dim)}
    peers = installed()
    for path in a.models:
        model = onnx.load(path)
        feeds = make_inputs(model, dims)
        symbols = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
        with tempfile.TemporaryDirectory() as folder:
            plan, cache = f"{folder}/m.kiln", f"{folder}/cache"
            open_dims = [word for name in symbols if name in dims for word in ("--dim", f"{name}={dims[name]}")]
            kiln_json(a.kiln, "compile", path, "-o", plan, *(["--bf16"] if a.bf16 else []), *open_dims)
            targets = [t for t in a.targets if runs_here(a.kiln, plan, cache, t)]
            for threads in a.threads:
                perf = [a.kiln, "perf", plan, "--cache", cache, "--threads", threads, "-n", 5, "--duration", f"{SECONDS}s"]
                runners = {t: lambda t=t: kiln_json(*perf, "--target", t)["p50_ms"] for t in targets}
                for name in peers:
                    runners[name] = functools.partial(median_ms, PEERS[name](path, threads, feeds), 5, SECONDS)
                    if a.bf16 and name == "openvino":
                        runners["openvino bf16"] = functools.partial(
                            median_ms, PEERS[name](path, threads, feeds, precision="bf16"), 5, SECONDS)
                ms, _ = in_turn(runners, a.rounds)
                cells = " | ".join(f"{name} {t:.3f}" for name, t in ms.items())
                print(f"| {os.path.basename(path)[:-5]} | {threads} | {cells} | {ms[targets[0]] / ms[targets[-1]]:.2f} |", flush=True)


main()
