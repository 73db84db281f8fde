#!/usr/bin/env python3
"""Models of one operator beside onnxruntime on the CPU, with one thread: finds operators that are much slower than they need be.

    cpu_operators.py KILN [WORD ...] [--below 1.0] [--rounds 2] [--type float32|float16]

A case is a node with inputs of usual sizes. Its answer is compared first (1e-4 of the norm, 2e-2 for f16; equal for integers),
then Kiln and onnxruntime take turns; a time is the best median of the rounds, in ms. Lines are sorted by the ratio (above 1
Kiln is faster); --below prints only those below it, WORD only cases whose name contains it. Images have channels first, so
Kiln's times contain the transposes at both ends of the model that a network has only once. Needs numpy, onnx, onnxruntime."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

random = np.random.default_rng(0)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


def positive(*shape):
    return (np.abs(random.standard_normal(shape)) + 0.1).astype(np.float32)


def bytes_of(*shape):
    return random.integers(0, 256, shape).astype(np.uint8)


def weights_of_bytes(*shape):
    return random.integers(-128, 128, shape).astype(np.int8)


def below(n, *shape):
    return random.integers(0, n, shape).astype(np.int64)


def ints(*values):
    return np.array(values, np.int64)


def number(value, kind=np.float32):
    return np.array(value, kind)


NO_ROI = [np.array([], np.float32), np.array([], np.float32)]
SORTED = np.sort(random.random((1, 1000, 4)).astype(np.float32), axis=-1)


def cases():
    """(name, operator, inputs, constant inputs, outputs, domain, opset, attributes)"""
    def case(name, operator, inputs, constants=(), outputs=1, domain="", opset=18, **attributes):
        return name, operator, inputs, constants, outputs, domain, opset, attributes

    for c in (1, 3, 64):
        yield case(f"maxpool 2x2, {c} channels", "MaxPool", [normal(1, c, 112, 112)], kernel_shape=[2, 2], strides=[2, 2])
        yield case(f"averagepool 3x3, {c} channels", "AveragePool", [normal(1, c, 112, 112)], kernel_shape=[3, 3], pads=[1] * 4)
    yield case("maxpool 3d", "MaxPool", [normal(1, 16, 16, 56, 56)], kernel_shape=[2] * 3, strides=[2] * 3)
    yield case("global average pool", "GlobalAveragePool", [normal(1, 512, 14, 14)])
    yield case("lrn", "LRN", [normal(1, 64, 56, 56)], size=5)
    yield case("instance norm", "InstanceNormalization", [normal(1, 64, 56, 56)], [positive(64), normal(64)])
    yield case("layer norm 768", "LayerNormalization", [normal(128, 768)], [positive(768), normal(768)])
    for shape, axis in (((128, 1000), -1), ((12, 128, 128), -1), ((1, 21, 128, 128), 1), ((1, 100000), -1)):
        yield case(f"softmax {shape} axis {axis}", "Softmax", [normal(*shape)], axis=axis)
    for axes in ([0], [1], [2], [1, 2]):
        yield case(f"reduce sum {axes}", "ReduceSum", [normal(64, 128, 128)], [ints(*axes)], keepdims=0)
    for axis in (0, 1, -1):
        yield case(f"argmax {axis}", "ArgMax", [normal(64, 100, 150)], axis=axis, keepdims=0)
    for k, n in ((10, 1000), (100, 8400), (300, 20000), (1000, 1000)):
        yield case(f"topk {k} of {n}", "TopK", [normal(4, n)], [ints(k)], outputs=2)
    yield case("cumsum", "CumSum", [normal(64, 1000)], [number(1, np.int64)])
    yield case("gather rows", "Gather", [normal(30000, 64), below(30000, 2000)], axis=0)
    yield case("gather elements", "GatherElements", [normal(1000, 100), below(1000, 500, 100)], axis=0)
    places = random.permutation(10000)[:3000].reshape(-1, 1).astype(np.int64)
    yield case("scatter nd", "ScatterND", [normal(10000, 16), places, normal(3000, 16)])
    for mode in ("nearest", "linear", "cubic"):
        yield case(f"resize {mode}", "Resize", [normal(1, 64, 40, 40)], [*NO_ROI, ints(1, 64, 80, 80)], mode=mode)
    yield case("grid sample", "GridSample", [normal(1, 16, 64, 64), (random.random((1, 80, 80, 2)) * 2 - 1).astype(np.float32)])
    yield case("conv 1d", "Conv", [normal(1, 64, 1000)], [normal(64, 64, 3)], pads=[1, 1])
    yield case("conv 7x7 of 3 channels", "Conv", [normal(1, 3, 224, 224)], [normal(64, 3, 7, 7)], strides=[2, 2], pads=[3] * 4)
    yield case("conv of 1 channel", "Conv", [normal(1, 1, 128, 128)], [normal(32, 1, 3, 3)], pads=[1] * 4)
    yield case("conv to 3 channels", "Conv", [normal(1, 64, 128, 128)], [normal(3, 64, 3, 3)], pads=[1] * 4)
    yield case("conv dilated", "Conv", [normal(1, 64, 56, 56)], [normal(64, 64, 3, 3)], pads=[4] * 4, dilations=[4, 4])
    yield case("conv depthwise", "Conv", [normal(1, 128, 56, 56)], [normal(128, 1, 3, 3)], pads=[1] * 4, group=128)
    yield case("conv 32 groups", "Conv", [normal(1, 128, 28, 28)], [normal(128, 4, 3, 3)], pads=[1] * 4, group=32)
    yield case("conv 3d", "Conv", [normal(1, 16, 16, 32, 32)], [normal(32, 16, 3, 3, 3)], pads=[1] * 6)
    yield case("transposed conv", "ConvTranspose", [normal(1, 64, 32, 32)], [normal(64, 32, 4, 4)], strides=[2, 2], pads=[1] * 4)
    for m, n, k in ((1, 1000, 2048), (17, 768, 768), (128, 512, 512), (1000, 3, 64)):
        yield case(f"matmul {m}x{n}x{k}", "MatMul", [normal(m, k)], [normal(k, n)])
    yield case("matmul batched", "MatMul", [normal(12, 128, 64), normal(12, 64, 128)])
    yield case("einsum", "Einsum", [normal(8, 16, 12, 32), normal(16, 20, 32)], equation="bhwc,hkc->bhwk")
    for hidden, steps, batch in ((64, 50, 1), (128, 100, 8)):
        weights = [normal(1, 4 * hidden, hidden) * 0.1, normal(1, 4 * hidden, hidden) * 0.1, normal(1, 8 * hidden) * 0.1]
        yield case(f"lstm {hidden}, batch {batch}", "LSTM", [normal(steps, batch, hidden)], weights, hidden_size=hidden)
    for shape, order in (((512, 768), (1, 0)), ((1, 56, 56, 64), (0, 3, 1, 2)), ((8, 128, 12, 64), (0, 2, 1, 3))):
        yield case(f"transpose {shape}", "Transpose", [normal(*shape)], perm=list(order))
    yield case("image of bytes to floats", "Transpose", [bytes_of(480, 640, 3)], perm=[2, 0, 1])
    yield case("slice of step 2", "Slice", [normal(1, 3, 480, 640)], [ints(0, 0), ints(480, 640), ints(2, 3), ints(2, 2)])
    yield case("concat", "Concat", [normal(500, 100), normal(500, 3), normal(500, 60)], axis=1)
    for mode in ("constant", "reflect"):
        yield case(f"pad {mode}", "Pad", [normal(1, 16, 100, 100)], [ints(0, 0, 3, 3, 0, 0, 3, 3)], mode=mode)
    yield case("where", "Where", [random.integers(0, 2, (500, 500)).astype(bool), normal(500, 500), normal(500, 1)])
    yield case("nonzero", "NonZero", [(normal(200, 200) > 1).astype(np.float32)])
    yield case("unique", "Unique", [below(500, 5000)])
    yield case("compress", "Compress", [normal(2000, 16), random.integers(0, 2, 2000).astype(bool)], axis=0)
    for operator in ("Erf", "Tanh", "Sigmoid", "Exp", "Sin", "Atan", "Softplus", "HardSwish", "Mish", "Round", "Sign"):
        yield case(operator.lower(), operator, [normal(200, 1000)])
    yield case("pow", "Pow", [positive(200, 1000)], [number(2.7)])
    yield case("cast to f16", "Cast", [normal(200, 1000)], to=10)
    yield case("cast to i8", "Cast", [normal(200, 1000)], to=3)
    yield case("quantize", "QuantizeLinear", [normal(200, 1000)], [number(0.02), number(128, np.uint8)])
    yield case("matmul of bytes", "MatMulInteger", [bytes_of(128, 512)], [weights_of_bytes(512, 512)])
    scores = random.random((1, 4, 1000)).astype(np.float32)
    yield case("nms", "NonMaxSuppression", [SORTED, scores], [ints(50), number([0.5]), number([0.3])])
    yield case("roialign", "RoiAlign", [normal(1, 64, 50, 50), SORTED[0, :100] * 50, np.zeros(100, np.int64)],
               output_height=7, output_width=7, sampling_ratio=2)
    yield case("reverse sequence", "ReverseSequence", [normal(100, 20, 32), below(100, 20) + 1])


def model_of(operator, inputs, constants, outputs, domain, opset, attributes):
    names = [f"x{i}" for i in range(len(inputs))] + [f"c{i}" if c.size else "" for i, c in enumerate(constants)]
    node = helper.make_node(operator, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    given = [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for i, a in enumerate(inputs)]
    constant = [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(constants) if c.size]
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)], constant)
    sets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def differs(got, want):
    if not np.issubdtype(want.dtype, np.floating):
        return not np.array_equal(got, want)
    error = np.linalg.norm(got.astype(np.float64) - want) / max(np.linalg.norm(want.astype(np.float64)), 1e-9)
    return not error < (2e-2 if want.dtype == np.float16 else 1e-4)


class Pair:
    """The same model in both, with the same inputs."""

    def __init__(self, kiln, model, inputs, folder):
        self.kiln, self.folder = kiln, folder
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.feeds, self.given = {f"x{i}": np.ascontiguousarray(a) for i, a in enumerate(inputs)}, []
        for name, array in self.feeds.items():
            np.save(f"{folder}/{name}.npy", array)
            self.given += ["--input", f"{name}={folder}/{name}.npy"]
        onnx.save(model, f"{folder}/m.onnx")
        self.call("compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln", "--quiet")

    def call(self, *words):
        done = subprocess.run([self.kiln, *words], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-200:])
        return done.stdout

    def check(self):
        self.call("run", f"{self.folder}/m.kiln", "--quiet", "--cache", f"{self.folder}/cache", "--output-dir", self.folder, *self.given)
        for output, want in zip(self.session.get_outputs(), self.session.run(None, self.feeds)):
            if differs(np.load(f"{self.folder}/{output.name}.npy"), want):
                raise RuntimeError(f"{output.name} differs")

    def kiln_ms(self):
        words = ["perf", f"{self.folder}/m.kiln", "--threads", "1", "-n", "20", "--json", "--cache", f"{self.folder}/cache"]
        return json.loads(self.call(*words, *self.given))["p50_ms"]

    def onnxruntime_ms(self):
        times, end = [], time.time() + 0.25
        while time.time() < end or len(times) < 5:
            began = time.perf_counter()
            self.session.run(None, self.feeds)
            times.append((time.perf_counter() - began) * 1e3)
        return float(np.median(times))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--below", type=float, default=float("inf"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--type", default="float32", choices=["float32", "float16"])
    o = parser.parse_args()
    rows, failed = [], 0
    for name, operator, inputs, constants, *rest in cases():
        if o.words and not any(word in name for word in o.words):
            continue
        inputs, constants = ([a.astype(o.type) if a.dtype == np.float32 and a.size else a for a in side] for side in (inputs, constants))
        with tempfile.TemporaryDirectory() as folder:
            try:
                pair = Pair(os.path.abspath(o.kiln), model_of(operator, inputs, constants, *rest), inputs, folder)
                pair.check()
                ours, theirs = zip(*((pair.kiln_ms(), pair.onnxruntime_ms()) for _ in range(o.rounds)))
                rows.append((min(theirs) / min(ours), name, min(ours), min(theirs)))
            except Exception as e:  # one of the two does not take the case, or they differ
                failed += "differs" in str(e)
                print(f"{name}: {str(e).splitlines()[0][:160]}", file=sys.stderr)
    for ratio, name, ours, theirs in sorted(rows):
        if ratio < o.below:
            print(f"{ratio:8.2f}  {name:32} {ours:9.4f} {theirs:9.4f}")
    print(f"{len(rows)} cases, geometric mean {np.exp(np.mean([np.log(r[0]) for r in rows])):.2f}, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
