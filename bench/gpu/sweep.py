#!/usr/bin/env python3
"""Steady times on an NVIDIA GPU over the sizes of one dimension, beside torch.compile(dynamic=True); f16.

    sweep.py KILN bert_base|resnet50 MODEL.onnx SIZE,... [--open INPUT.AXIS=NAME ...] [--device cuda:0] [--seconds 0.3]

Kiln runs one .kiln file, whose dimension is open (`--open`, as in bench/sweep.py): with exact kernels and with kernels
for all sizes (`--specialize off`). The peer is the network of PyTorch's libraries with the same shapes, compiled once
with dynamic=True; it is timed as calls, and captured as a CUDA graph at each size, which is its best case. All are
queued without waiting, and take turns at each size; medians in ms. Before it is timed, Kiln's first output is compared
with onnxruntime's on the CPU (error: the largest difference over the largest value). The last column is the faster
peer over Kiln's exact kernels: above 1 Kiln is ahead."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import network_peers  # noqa: E402
import sweep as on_cpus  # noqa: E402

PEER_INPUTS = {"bert_base": lambda n: (torch.randint(0, 30000, (1, n), device="cuda"), torch.ones(1, n, dtype=torch.long, device="cuda")),
               "resnet50": lambda n: (torch.randn(n, 3, 224, 224, device="cuda", dtype=torch.float16),)}


def queued_ms(call, seconds):
    def some(count):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(count):
            call()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) / count

    count = max(3, int(seconds * 1e3 / 5 / max(some(3), 1e-3)))
    return statistics.median(some(count) for _ in range(5))


def captured(call):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        call()
    return graph.replay


class Kiln:
    def __init__(self, options, file, folder):
        self.command = [options.kiln, "perf", file, "--device", options.device, "--cache", f"{folder}/cache", "--json"]
        self.run = [options.kiln, "run", file, "--device", options.device, "--cache", f"{folder}/cache", "--quiet"]
        self.seconds = options.seconds

    def ms(self, dim, specialize):
        def perf(runs):
            done = subprocess.run([*self.command, "--dim", dim, "--specialize", specialize, "-n", str(runs)], check=True, capture_output=True, text=True)
            return json.loads(done.stdout)["queued_ms"]
        return perf(max(10, int(self.seconds * 1e3 / perf(10))))

    def error(self, data, expected):
        with tempfile.TemporaryDirectory() as folder:
            for name, array in data.items():
                np.save(f"{folder}/{name}.npy", array)
            subprocess.run([*self.run, "--load-inputs", folder, "--output-dir", f"{folder}/out"], check=True, stdout=subprocess.DEVNULL)
            got = np.load(f"{folder}/out/{next(iter(expected))}.npy").astype(np.float64)
        want = next(iter(expected.values()))
        return float(np.abs(got - want).max() / np.abs(want).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("network", choices=PEER_INPUTS)
    parser.add_argument("model")
    parser.add_argument("sizes")
    parser.add_argument("--open", action="append", default=[])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    name = options.open[0].split("=")[1]
    network, _ = network_peers.make(options.network, options.model, 1, True)
    compiled = torch.compile(network, dynamic=True)
    print(f"| {name} | exact | all sizes | torch.compile | as a graph | exact / all sizes | best peer / exact | error |\n|--:|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model = on_cpus.opened(onnx.load(options.model), options.open)
        onnx.save(model, f"{folder}/m.onnx")
        subprocess.run([options.kiln, "compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln", "--fp16", "--quiet"], check=True)
        reference = onnxruntime.InferenceSession(f"{folder}/m.onnx", providers=["CPUExecutionProvider"])
        kiln = Kiln(options, f"{folder}/m.kiln", folder)
        for size in map(int, options.sizes.split(",")):
            data, given = on_cpus.inputs_of(model, {name: size}), PEER_INPUTS[options.network](size)
            output = reference.get_outputs()[0].name
            error = kiln.error(data, {output: reference.run([output], data)[0]})
            exact, general = (kiln.ms(f"{name}={size}", how) for how in ("eager", "off"))
            call = lambda: compiled(*given)
            call()
            peers = [queued_ms(call, options.seconds), queued_ms(captured(call), options.seconds)]
            print(f"| {size} | {exact:.3f} | {general:.3f} | {peers[0]:.3f} | {peers[1]:.3f} | {exact / general:.2f} | {min(peers) / exact:.2f} | {error:.0e} |", flush=True)


if __name__ == "__main__":
    main()
