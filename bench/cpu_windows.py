#!/usr/bin/env python3
"""Kernels of convolutions, pooling and LRN inside a network on one thread, beside OpenVINO's.

    bench/cpu_windows.py KILN [--only NAME ...] [--rounds 3]

Each case stands between two 1 x 1 convolutions, so that its images have the layout that the program prefers: neither
transposes nor reorders of the model's input count. Prints ms of the case's kernels (`kiln perf --per-kernel`, the least
of the rounds' means), OpenVINO's ms of the same layers (its profile, the least), the ratio and Kiln's rate. Both include
what they fused: a bias and relu.
"""
import argparse, json, os, subprocess, tempfile

import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper, numpy_helper

BORDERS = ("before", "behind", "x_", "image", "out", "result")


def convolution(features, window, stride=1, dilation=1, groups=1):
    """A maker of nodes: (channels, spatial rank) → (node, {name: weights}, features)."""
    def make(channels, rank):
        kernel = list(window) if isinstance(window, tuple) else [window] * rank
        pads = [(k - 1) * dilation // 2 for k in kernel]
        weights = np.random.default_rng(1).standard_normal((features, channels // groups, *kernel)).astype(np.float32) * 0.1
        node = helper.make_node("Conv", ["a", "w", "b"], ["t"], name="target", strides=[stride] * rank, dilations=[dilation] * rank,
                                pads=pads + pads, group=groups)
        return node, {"w": weights, "b": np.ones(features, np.float32)}, features
    return make


def operator(kind, **attributes):
    return lambda channels, rank: (helper.make_node(kind, ["a"], ["t"], name="target", **attributes), {}, channels)


# Name → channels, image, maker.
CASES = {f"depthwise {k} x {k}{' / 2' if s > 1 else ''}, {c} channels, {n}²": (c, (n, n), convolution(c, k, s, 1, c))
         for k, s, c, n in ((3, 1, 960, 7), (3, 1, 480, 14), (3, 1, 240, 28), (3, 1, 144, 56), (3, 2, 144, 56), (5, 1, 960, 7), (5, 1, 672, 14),
                            (5, 2, 672, 14), (7, 1, 768, 7), (7, 1, 384, 14), (7, 1, 192, 28), (7, 1, 96, 56), (11, 1, 96, 28), (13, 1, 384, 14), (31, 1, 96, 28))}
CASES |= {
    "depthwise 3 x 3, 64 channels doubled, 56²": (64, (56, 56), convolution(128, 3, groups=64)),
    "depthwise 7 x 7 / 2, 48 channels doubled, 64²": (48, (64, 64), convolution(96, 7, 2, groups=48)),
    "depthwise 3 x 3, 64 channels threefold, 56²": (64, (56, 56), convolution(192, 3, groups=64)),
    "3 x 3 of 8 groups of 8, 28²": (64, (28, 28), convolution(64, 3, groups=8)),
    "3 x 3 of 32 groups of 4, 56²": (128, (56, 56), convolution(128, 3, groups=32)),
    "1 x 7, 192, 17²": (192, (17, 17), convolution(192, (1, 7))),
    "5 x 5, 64, 28²": (64, (28, 28), convolution(64, 5)),
    "9 x 9 to 12, 56²": (32, (56, 56), convolution(12, 9)),
    "3 x 3 of 3 d, 32, 8 x 28²": (32, (8, 28, 28), convolution(32, 3)),
    "line of 31 taps, depthwise 256, 200": (256, (200,), convolution(256, 31, groups=256)),
    "LRN, 64 channels, 28²": (64, (28, 28), operator("LRN", size=5)),
    "maximum 13 x 13, 64, 20²": (64, (20, 20), operator("MaxPool", kernel_shape=[13, 13], strides=[1, 1], pads=[6, 6, 6, 6])),
}


def write_model(path, channels, image, make):
    node, weights, features = make(channels, len(image))
    random = np.random.default_rng(0)
    ones = (1,) * len(image)
    weights["before_w"] = random.standard_normal((channels, 16, *ones)).astype(np.float32) * 0.1
    weights["behind_w"] = random.standard_normal((16, features, *ones)).astype(np.float32) * 0.1
    nodes = [helper.make_node("Conv", ["x", "before_w"], ["c"], name="before"), helper.make_node("Sigmoid", ["c"], ["a"], name="before_act"), node,
             helper.make_node("Relu", ["t"], ["r"], name="relu"), helper.make_node("Conv", ["r", "behind_w"], ["out"], name="behind")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 16, *image))],
                              [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)], [numpy_helper.from_array(a, n) for n, a in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def kiln_ms(o, plan, cache):
    """ms and operations of the kernels of the case."""
    found = []
    for _ in range(o.rounds):
        done = subprocess.run([o.kiln, "perf", plan, "--cache", cache, "--threads", "1", "-n", "12", "--per-kernel", "--json"], check=True, capture_output=True, text=True)
        kernels = [k for k in json.loads(done.stdout)["per_kernel"] if not k["origin"].startswith(BORDERS)]
        found.append((sum(k["ms"] for k in kernels), sum(k["operations"] for k in kernels)))
    return min(found)


def openvino_ms(path):
    core = openvino.Core()
    options = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "PERF_COUNT": True}
    model = core.read_model(path)
    request = core.compile_model(model, "CPU", options).create_infer_request()
    feed = np.random.default_rng(2).standard_normal(model.inputs[0].shape).astype(np.float32)
    least = {}
    for _ in range(12):
        request.infer([feed])
        for layer in request.profiling_info:
            if layer.node_type != "Reorder" and not layer.node_name.startswith(BORDERS):
                least[layer.node_name] = min(layer.real_time.total_seconds() * 1e3, least.get(layer.node_name, 1e9))
    return sum(least.values())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln", type=os.path.abspath)
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--rounds", type=int, default=3)
    o = p.parse_args()
    print("| case | kiln ms | OpenVINO ms | ratio | GFLOP/s |\n|---|--:|--:|--:|--:|")
    for name, case in CASES.items():
        if o.only and not any(word in name for word in o.only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_model(f"{folder}/m.onnx", *case)
            subprocess.run([o.kiln, "compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln", "--quiet"], check=True)
            ms, operations = kiln_ms(o, f"{folder}/m.kiln", f"{folder}/cache")
            peer = openvino_ms(f"{folder}/m.onnx")
        print(f"| {name} | {ms:.4f} | {peer:.4f} | {peer / ms:.2f} | {operations / ms / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
