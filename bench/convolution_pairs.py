#!/usr/bin/env python3
"""Times pairs of convolutions (a window, then 1×1, or the other way round) against their composition.

    bench/convolution_pairs.py KILN [--runs N] [--rounds N] [--device D]

Prints a line for each pair: multiplications of the composition relative to the pair's, the time of the composition
relative to the pair's, and what the rule of aot/passes/compose_contractions.cpp says. The price of an element of memory
in that rule was chosen so that the rule composes no pair that becomes slower and misses few that become faster. Times
are the best of all runs of alternating processes.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PRICE = 8  # of an element; products_per_element in compose_contractions.cpp

# (side of the image, channels, channels between, filters, window, groups of the first, window first)
PAIRS = [(56, 64, 64, 16, 3, 1, True), (56, 64, 64, 64, 3, 1, True), (56, 16, 64, 16, 3, 1, True), (56, 16, 24, 16, 3, 1, True),
         (56, 16, 16, 16, 3, 1, True), (56, 16, 16, 24, 3, 1, True), (28, 128, 128, 96, 3, 1, True), (28, 128, 160, 128, 1, 1, True),
         (28, 128, 64, 128, 1, 1, True), (28, 128, 56, 128, 1, 1, True), (28, 128, 48, 128, 1, 1, True), (56, 32, 12, 32, 1, 1, True),
         (112, 8, 4, 8, 1, 1, True), (112, 8, 3, 8, 1, 1, True), (56, 32, 32, 16, 3, 32, True), (56, 8, 8, 8, 3, 8, True),
         (56, 4, 4, 4, 3, 4, True), (112, 4, 4, 8, 3, 4, True), (56, 16, 48, 16, 3, 1, False), (28, 64, 64, 64, 3, 1, False)]


def model(path, side, layers):
    nodes, weights, name = [], [], "x"
    for i, (w, groups, pad) in enumerate(layers):
        weights.append(numpy_helper.from_array(w.astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("Conv", [name, f"w{i}"], [f"y{i}"], group=groups, pads=[pad] * 4))
        name = f"y{i}"
    nodes.append(helper.make_node("Relu", [name], ["y"]))
    channels = layers[0][0].shape[1] * layers[0][1]
    graph = helper.make_graph(nodes, "pair", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, side, side])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="host")
    o = parser.parse_args()
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "KILN_CACHE_DIR": os.path.join(folder, "cache"), "XDG_CONFIG_HOME": folder}
        for side, channels, between, filters, window, groups, window_first in PAIRS:
            big = rng.standard_normal((between, channels // groups, window, window)) if window_first else rng.standard_normal((filters, between, window, window))
            small = rng.standard_normal((filters, between)) if window_first else rng.standard_normal((between, channels))
            pad = window // 2
            if window_first:
                dense = np.zeros((between, channels, window, window))
                for m in range(between):
                    first = m // (between // groups) * (channels // groups)
                    dense[m, first:first + channels // groups] = big[m]
                both, pair = np.einsum("fm,mcij->fcij", small, dense), [(big, groups, pad), (small[:, :, None, None], 1, 0)]
            else:
                both, pair = np.einsum("fmij,mc->fcij", big, small), [(small[:, :, None, None], 1, 0), (big, 1, pad)]
            files = []
            for name, layers in (("pair", pair), ("one", [(both, 1, pad)])):
                source, made = os.path.join(folder, name + ".onnx"), os.path.join(folder, name + ".kiln")
                model(source, side, layers)
                subprocess.run([o.kiln, "compile", source, "-o", made, "--disable-pass", "compose_contractions", "--quiet"], check=True, env=env)
                files.append(made)
            best = [float("inf")] * 2
            for _ in range(o.rounds):
                for i, made in enumerate(files):
                    out = subprocess.run([o.kiln, "perf", made, "-n", str(o.runs), "--device", o.device, "--json"], check=True, env=env, capture_output=True, text=True)
                    best[i] = min(best[i], json.loads(out.stdout)["min_ms"])
            pixels = side * side
            apart, composed = pixels * (big.size + small.size), pixels * both.size
            rule = composed + PRICE * both.size < apart + PRICE * (big.size + small.size + 2 * pixels * between)
            print(f"{side:4}² {channels:4} -> {between:4} -> {filters:4} window {window} groups {groups:3} {'first ' if window_first else 'second'} "
                  f"work {composed / apart:5.2f} time {best[1] / best[0]:5.2f} ({best[0]:.3f} -> {best[1]:.3f} ms) {'composed' if rule else 'left'}", flush=True)


main()
