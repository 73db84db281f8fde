#!/usr/bin/env python3
"""Steady times over the sizes of one dimension, beside onnxruntime and OpenVINO.

    sweep.py KILN MODEL.onnx batch=1,2,4,8 [--dim seq=128 ...] [--open INPUT.AXIS=batch ...] [--threads 2] [--seconds 1]

MODEL has the dimension open; `--open` opens one that is fixed in all inputs named (resnet50: input.0=batch). Kiln runs one
.kiln file: `kiln perf` with exact kernels and with kernels for all sizes (`--specialize off`). onnxruntime has one
session, OpenVINO a model compiled for each size, which is its best case. All take turns at each size; times are medians
in ms. The last column is the faster peer's time divided by Kiln's exact kernels: above 1 Kiln is ahead. Floats are
random, integers 0 or 1. Needs numpy, onnx and onnxruntime; openvino if it is installed. For a busy machine: nice -n -15
and --threads 1."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime


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


def median_ms(work, seconds):
    work()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


class Kiln:
    def __init__(self, options, path, folder, specialize):
        self.options, self.folder, self.specialize = options, folder, specialize
        self.file = os.path.join(folder, "m.kiln")
        if not os.path.exists(self.file):
            subprocess.run([options.kiln, "compile", path, "-o", self.file, "--quiet"], check=True)

    def ms(self, sizes, _):
        dims = [part for n, size in sizes.items() for part in ("--dim", f"{n}={size}")]

        def perf(runs):
            done = subprocess.run([self.options.kiln, "perf", self.file, *dims, "-n", str(runs), "--threads", str(self.options.threads), "--specialize", self.specialize,
                                   "--cache", os.path.join(self.folder, "cache"), "--json"], check=True, capture_output=True, text=True)
            return json.loads(done.stdout)["p50_ms"]
        return perf(max(3, int(self.options.seconds * 1e3 / perf(3))))


class OnnxRuntime:
    def __init__(self, options, path):
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.log_severity_level = options.threads, 3
        self.session, self.seconds = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"]), options.seconds

    def ms(self, _, data):
        return median_ms(lambda: self.session.run(None, data), self.seconds)


class OpenVINO:
    def __init__(self, options, path):
        import openvino
        self.core, self.path, self.options = openvino.Core(), path, options

    def ms(self, _, data):
        model = self.core.read_model(self.path)
        model.reshape({name: list(array.shape) for name, array in data.items()})
        compiled = self.core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": self.options.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        return median_ms(lambda: request.infer(data), self.options.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("model")
    parser.add_argument("sweep", metavar="NAME=SIZE,...")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--open", action="append", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    name, points = options.sweep.split("=")
    fixed = {n: int(size) for n, size in (pair.split("=") for pair in options.dim)}
    with tempfile.TemporaryDirectory() as folder:
        model = opened(onnx.load(options.model), options.open)
        path = os.path.join(folder, "m.onnx")
        onnx.save(model, path)
        sides = {"exact": Kiln(options, path, folder, "eager"), "all sizes": Kiln(options, path, folder, "off"), "onnxruntime": OnnxRuntime(options, path)}
        try:
            sides["OpenVINO"] = OpenVINO(options, path)
        except ImportError:
            print("openvino is not installed and left out")
        print(f"| {name} | " + " | ".join(sides) + " | exact / all sizes | best peer / exact |\n|--:|" + "--:|" * (len(sides) + 2))
        for point in points.split(","):
            sizes = {**fixed, name: int(point)}
            data = inputs_of(model, sizes)
            ms = {side: one.ms(sizes, data) for side, one in sides.items()}
            peer = min(ms[side] for side in sides if side not in ("exact", "all sizes"))
            print(f"| {point} | " + " | ".join(f"{x:.2f}" for x in ms.values()) + f" | {ms['exact'] / ms['all sizes']:.2f} | {peer / ms['exact']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
