#!/usr/bin/env python3
"""Steady times over the sizes of one dimension, beside onnxruntime and OpenVINO.

    sweep.py KILN MODEL.onnx batch=1,2,4,8 [--dim seq=128 ...] [--open INPUT.AXIS=batch ...] [--threads 2] [--seconds 1]

MODEL has the dimension open; `--open` opens one that is fixed in all inputs named (resnet50: input.0=batch). Kiln runs one
.kiln file: `kiln perf` with exact kernels and with kernels for all sizes (`--specialize off`). onnxruntime has a session,
OpenVINO a model compiled, for each size. All take turns at each size; times are medians in ms. The last column is the
faster peer's time divided by Kiln's exact kernels: above 1 Kiln is ahead. Floats are random, integers 0 or 1. Needs numpy
and onnx, and peers as they are installed. `--history FILE` appends the ratios (history.py). For a busy machine: nice -n -15
and --threads 1."""
import argparse
import functools
import os
import sys
import tempfile

import numpy as np
import onnx

import history
from cpu_peers import PEERS, in_turn, installed, kiln_json, median_ms, record


def opened(model, pairs):
    """Makes fixed dimensions of inputs open; shapes inside the model and of its outputs are forgotten."""
    for pair in pairs:
        place, name = pair.split("=")
        tensor, axis = place.rsplit(".", 1)
        shape = next(i for i in model.graph.input if i.name == tensor).type.tensor_type.shape
        shape.dim[int(axis)].dim_param = name
    if pairs:
        del model.graph.value_info[:]
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
    return model


def inputs_of(model, sizes):
    weights, rng, data = {t.name for t in model.graph.initializer}, np.random.default_rng(1), {}
    for i in model.graph.input:
        if i.name in weights:
            continue
        dims = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in i.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        data[i.name] = rng.standard_normal(dims).astype(kind) if kind.kind == "f" else rng.integers(0, 2, dims).astype(kind)
    return data


def kiln_ms(options, folder, specialize, sizes):
    dims = [part for n, size in sizes.items() for part in ("--dim", f"{n}={size}")]

    def perf(runs):
        return kiln_json(options.kiln, "perf", f"{folder}/m.kiln", *dims, "-n", runs, "--threads", options.threads, "--specialize", specialize,
                         "--cache", f"{folder}/cache")["p50_ms"]
    return perf(max(3, int(options.seconds * 1e3 / perf(3))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("model")
    parser.add_argument("sweep", metavar="NAME=SIZE,...")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--open", action="append", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1)
    history.add_options(parser)
    options = parser.parse_args()
    name, points = options.sweep.split("=")
    fixed = {n: int(size) for n, size in (pair.split("=") for pair in options.dim)}
    with tempfile.TemporaryDirectory() as folder:
        model = opened(onnx.load(options.model), options.open)
        path = os.path.join(folder, "m.onnx")
        onnx.save(model, path)
        kiln_json(options.kiln, "compile", path, "-o", f"{folder}/m.kiln")
        peers, log = installed(), history.Log(options, options.kiln)
        if not peers:
            sys.exit("sweep: no peer is installed")
        model_name = os.path.basename(options.model)[:-5]
        print(f"| {name} | exact | all sizes | " + " | ".join(peers) + " | exact / all sizes | best peer / exact |")
        print("|--:" * (5 + len(peers)) + "|")
        for point in points.split(","):
            sizes = {**fixed, name: int(point)}
            data = inputs_of(model, sizes)
            sides = {side: functools.partial(kiln_ms, options, folder, way, sizes) for side, way in (("exact", "eager"), ("all sizes", "off"))}
            sides |= {peer: functools.partial(median_ms, PEERS[peer](path, options.threads, data), 3, options.seconds) for peer in peers}
            ms, others = in_turn(sides)
            best = min(ms[peer] for peer in peers)
            print(f"| {point} | " + " | ".join(f"{x:.2f}" for x in ms.values()) + f" | {ms['exact'] / ms['all sizes']:.2f} | {best / ms['exact']:.2f} |", flush=True)
            of = history.case(model_name, sizes.get("batch", 1), None, *(f"{n} {size}" for n, size in sizes.items() if n != "batch"))
            record(log, options.threads, of, ms, others, ours="exact")


if __name__ == "__main__":
    main()
