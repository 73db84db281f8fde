#!/usr/bin/env python3
"""Kernels for all sizes on AMD GPUs (docs/any_size.md): each model is compiled once, executed in the emulator at
several sizes, and compared
with onnxruntime. Every size must use the same objects.

    KILN_AMD_MACHINE=LIBRARY open_sizes.py KILN [--target gfx942 ...] [--only PATTERN]

Exits 1 when a case fails, 77 when there is no emulator.
"""
import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import compare
import pool

TARGETS = ["gfx942", "gfx1100"]
SKIPPED = 77
CASES = {}
TOLERANCE = {"f16": 3e-3, "f32": 2e-5}
TYPES = {"f16": (TensorProto.FLOAT16, np.float16), "f32": (TensorProto.FLOAT, np.float32), "i64": (TensorProto.INT64, np.int64), "bool": (TensorProto.BOOL, np.bool_)}


class Model:
    """`dtype` is the type of floats in the model; the reference of an f16 model computes in f32."""

    def __init__(self, dtype, kept):
        self.dtype, self.kept = dtype, kept
        self.nodes, self.inputs, self.outputs, self.constants, self.random = [], [], [], [], np.random.default_rng(3)

    def type(self, dtype):
        return dtype if dtype or self.kept else "f32"

    def input(self, name, dims, dtype=None, high=0):
        """`dims` are numbers and names; integers are in [0, high), where `high` may be a name."""
        self.inputs.append((name, list(dims), dtype or self.dtype, high))
        return name

    def weight(self, dims, scale=0.3):
        data = (self.random.standard_normal(dims) * scale).astype(TYPES[self.dtype][1])
        self.constants.append(numpy_helper.from_array(data if self.kept else data.astype(np.float32), f"w{len(self.constants)}"))
        return self.constants[-1].name

    def integers(self, values):
        self.constants.append(numpy_helper.from_array(np.asarray(values, np.int64), f"w{len(self.constants)}"))
        return self.constants[-1].name

    def constant(self, values):
        self.constants.append(numpy_helper.from_array(np.asarray(values, np.float32), f"w{len(self.constants)}"))
        return self.constants[-1].name

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, [i or "" for i in inputs], names, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, value, dtype=None):
        self.outputs.append((value, dtype or self.dtype))

    def proto(self):
        def declared(name, dtype, dims):
            kind = dtype if dtype in ("i64", "bool") or self.kept else "f32"
            return helper.make_tensor_value_info(name, TYPES[kind][0], dims)
        graph = helper.make_graph(self.nodes, "open", [declared(n, t, d) for n, d, t, _ in self.inputs], [declared(n, t, None) for n, t in self.outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def case(types, *sizes):
    def register(build):
        for dtype in types.split():
            CASES[f"{build.__name__}_{dtype}"] = (build, dtype, sizes)
        return build
    return register


# --- pointwise work and movement

@case("f32 f16", {"batch": 3, "seq": 7}, {"batch": 1, "seq": 1}, {"batch": 2, "seq": 65}, {"batch": 2, "seq": 0})
def broadcast_and_transpose(m):
    a = m.op("Mul", m.op("Sigmoid", m.op("Add", m.input("x", ["batch", "seq", 5]), m.weight([5]))), m.input("y", ["batch", "seq", 1]))
    t = m.op("Transpose", a, perm=[1, 0, 2])
    m.output(m.op("Concat", t, t, axis=0))


@case("f32 f16", {"n": 1}, {"n": 7}, {"n": 4099})
def flat(m):
    m.output(m.op("Tanh", m.op("Add", m.input("x", ["n"]), m.input("y", ["n"]))))


@case("f16", {"n": 1}, {"n": 257})
def whole_vectors(m):
    m.output(m.op("Relu", m.op("Add", m.input("x", ["n", 16]), m.weight([16]))))


@case("f32", {"n": 2, "h": 5, "w": 7}, {"n": 1, "h": 33, "w": 3})
def pad_slice_gather(m):
    p = m.op("Pad", m.input("x", ["n", "h", "w"]), m.integers([0, 1, 2, 0, 0, 3]))
    s = m.op("Slice", p, m.integers([1]), m.integers([2**40]), m.integers([2]))
    m.output(m.op("Gather", s, m.input("i", ["n"], "i64", "h"), axis=1))


@case("f32 f16", {"n": 2, "h": 5, "w": 7}, {"n": 1, "h": 33, "w": 40}, {"n": 1, "h": 1, "w": 70})
def transposes(m):
    m.output(m.op("Relu", m.op("Transpose", m.input("x", ["n", "h", "w"]), perm=[0, 2, 1])))
    m.output(m.op("Transpose", m.input("y", ["h", "w", 24]), perm=[2, 0, 1]))


# A cache without rows; the lanes of a vector are in both parts of the second and third result.
@case("f32 f16", {"past": 3, "seq": 2}, {"past": 0, "seq": 5}, {"past": 9, "seq": 0}, {"past": 0, "seq": 0})
def parts_without_elements(m):
    a, b = m.input("a", [2, "past", 6]), m.input("b", [2, "seq", 6])
    m.output(m.op("Concat", a, b, axis=1))
    across = [m.op("Relu", m.op("Transpose", x, perm=[0, 2, 1])) for x in (a, b)]
    m.output(m.op("Concat", *across, axis=2))
    m.output(m.op("Pad", across[0], m.integers([0, 0, 3, 0, 0, 2])))
    m.output(m.op("ReduceSum", a, m.integers([1])))
    m.output(m.op("ReduceProd", across[1], axes=[2]))


# --- reductions

@case("f32 f16", {"batch": 3, "seq": 7}, {"batch": 1, "seq": 1}, {"batch": 2, "seq": 300})
def softmax_of_open_rows(m):
    m.output(m.op("Softmax", m.input("x", ["batch", 2, "seq"]), axis=-1))


@case("f32", {"batch": 3, "seq": 7}, {"batch": 5, "seq": 40}, {"batch": 5, "seq": 0})
def softmax_of_columns(m):
    m.output(m.op("Softmax", m.input("x", ["batch", "seq", 6]), axis=1))


@case("f32 f16", {"batch": 3, "seq": 7}, {"batch": 1, "seq": 1}, {"batch": 0, "seq": 4})
def layer_norm(m):
    x = m.input("x", ["batch", "seq", 24])
    y = m.op("LayerNormalization", x, m.weight([24]), m.weight([24]), axis=-1)
    m.output(m.op("Add", x, y))


@case("f32", {"n": 3, "h": 5, "w": 7}, {"n": 1, "h": 19, "w": 33})
def instance_norm(m):
    m.output(m.op("InstanceNormalization", m.input("x", ["n", 6, "h", "w"]), m.weight([6]), m.weight([6])))


@case("f32", {"n": 3, "h": 5, "w": 7}, {"n": 1, "h": 40, "w": 33})
def reductions(m):
    x = m.input("x", ["n", "h", "w"])
    m.output(m.op("ReduceMean", x, axes=[1, 2]))
    m.output(m.op("ReduceMax", x, axes=[1]))
    m.output(m.op("ReduceSum", x, m.integers([0]), keepdims=0))
    m.output(m.op("ArgMax", x, axis=2), "i64")
    m.output(m.op("ArgMin", x, axis=0, keepdims=0), "i64")


@case("f32", {"n": 1}, {"n": 3})
def reductions_that_workgroups_share(m):
    x = m.input("x", ["n", 2100, 8])
    m.output(m.op("ReduceMean", x, axes=[1]))
    m.output(m.op("ArgMax", x, axis=1), "i64")
    m.output(m.op("ReduceMax", m.input("y", ["n", 70000]), axes=[1]))


# Few results of an open number of elements: workgroups share each from some size on.
@case("f32 f16", {"n": 1, "h": 3, "w": 5}, {"n": 1, "h": 70, "w": 61}, {"n": 2, "h": 90, "w": 83})
def reductions_that_workgroups_share_at_some_sizes(m):
    x = m.input("x", ["n", "h", "w", 16])
    m.output(m.op("ReduceMax", x, axes=[0, 1, 2, 3], keepdims=0) if m.dtype == "f32" else m.op("ReduceMean", x, axes=[1, 2]))
    m.output(m.op("ReduceMean", x, axes=[1, 2], keepdims=0))


# --- orders and running sums

@case("f32 f16", {"n": 3, "s": 7}, {"n": 1, "s": 1500}, {"n": 2, "s": 5})
def largest(m):
    for names in (("x", ["n", "s"], -1), ("z", ["s", "n"], 0), ("u", ["n", 9, "s"], 1)):
        values, indices = m.op("TopK", m.input(*names[:2]), m.integers([3]), axis=names[2], outputs=2)
        m.output(values)
        m.output(indices, "i64")


@case("f32", {"n": 3, "s": 7}, {"n": 1, "s": 1}, {"n": 2, "s": 1300}, {"n": 2, "s": 0})
def running_sums(m):
    x = m.input("x", ["n", "s"])
    m.output(m.op("CumSum", x, m.integers([1])))
    m.output(m.op("CumSum", x, m.integers([0]), reverse=1))
    m.output(m.op("CumSum", m.input("z", ["n", "s", 5]), m.integers([1]), exclusive=1))


# --- products

@case("f32 f16", {"batch": 3, "seq": 7}, {"batch": 1, "seq": 1}, {"batch": 2, "seq": 41}, {"batch": 2, "seq": 0})
def linear(m):
    m.output(m.op("Relu", m.op("Add", m.op("MatMul", m.input("x", ["batch", "seq", 40]), m.weight([40, 24])), m.weight([24]))))


@case("f32 f16", {"n": 1}, {"n": 3}, {"n": 4}, {"n": 6})
def products_of_few_rows(m):
    """On GPUs few rows have a version of their own, which reads weights straight into the lanes."""
    m.output(m.op("Add", m.op("MatMul", m.input("x", ["n", 100]), m.weight([100, 72])), m.weight([72])))
    m.output(m.op("MatMul", m.input("z", ["n", 264]), m.weight([264, 300])))


@case("f32 f16", {"n": 2}, {"n": 16}, {"n": 17}, {"n": 65}, {"n": 130})
def products_of_a_divided_depth(m):
    """Few tiles and a large depth: several workgroups share a tile, as many as there are for each."""
    m.output(m.op("Relu", m.op("MatMul", m.input("x", ["n", 520]), m.weight([520, 72]))))


@case("f16", {"n": 1}, {"n": 5}, {"n": 0})
def convolutions_of_an_open_batch(m):
    y = m.op("Relu", m.op("Conv", m.input("x", ["n", 24, 4, 4]), m.weight([16, 24, 3, 3]), m.weight([16]), pads=[1, 1, 1, 1]))
    m.output(m.op("Conv", y, m.weight([24, 16, 1, 1]), strides=[2, 2]))


@case("f32 f16", {"batch": 3, "seq": 7}, {"batch": 1, "seq": 1}, {"batch": 1, "seq": 70}, {"batch": 1, "seq": 168}, {"batch": 3, "seq": 0})
def products_of_open_sizes(m):
    q, k = m.input("q", ["batch", "seq", 16]), m.input("k", ["batch", "seq", 16])
    s = m.op("MatMul", q, m.op("Transpose", k, perm=[0, 2, 1]))
    m.output(s)
    m.output(m.op("MatMul", m.input("p", ["batch", 5, "seq"]), m.input("v", ["batch", "seq", 9])))


@case("f32", {"k": 3, "n": 5}, {"k": 130, "n": 70}, {"k": 0, "n": 70}, {"k": 5, "n": 0})
def open_depth_and_columns(m):
    m.output(m.op("Gemm", m.input("a", [6, "k"]), m.input("b", ["n", "k"]), transB=1))


# --- attention

@case("f32 f16", {"batch": 2, "seq": 7, "keys": 5}, {"batch": 1, "seq": 1, "keys": 1}, {"batch": 1, "seq": 70, "keys": 133}, {"batch": 1, "seq": 9, "keys": 600}, {"batch": 2, "seq": 7, "keys": 0}, {"batch": 2, "seq": 0, "keys": 9})
def attention(m):
    q, k, v = m.input("q", ["batch", 2, "seq", 16]), m.input("k", ["batch", 2, "keys", 16]), m.input("v", ["batch", 2, "keys", 16])
    scores = m.op("Mul", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2])), m.weight([1], 1.0))
    m.output(m.op("MatMul", m.op("Softmax", m.op("Add", scores, m.input("mask", ["batch", 1, 1, "keys"])), axis=-1), v))


# A step of a decoder with a known batch.
@case("f16", {"keys": 1}, {"keys": 33}, {"keys": 200})
def attention_of_a_step(m):
    q, k, v = m.input("q", [1, 4, 1, 64]), m.input("k", [1, 4, "keys", 64]), m.input("v", [1, 4, "keys", 64])
    scores = m.op("Mul", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2])), m.weight([1], 1.0))
    m.output(m.op("MatMul", m.op("Softmax", m.op("Add", scores, m.input("mask", [1, 1, 1, "keys"])), axis=-1), v))


# --- images

@case("f32 f16", {"n": 2, "h": 7, "w": 5}, {"n": 1, "h": 12, "w": 13}, {"n": 1, "h": 3, "w": 3})
def convolutions(m):
    y = m.op("Relu", m.op("Conv", m.input("x", ["n", 3, "h", "w"]), m.weight([16, 3, 3, 3]), m.weight([16]), pads=[1, 1, 1, 1], strides=[2, 2]))
    z = m.op("Conv", y, m.weight([24, 16, 1, 1]))
    m.output(m.op("Conv", z, m.weight([24, 1, 3, 3]), group=24, pads=[1, 1, 1, 1]))


@case("f32 f16", {"n": 1}, {"n": 3})
def depthwise_layer_norm_of_an_open_batch(m):
    """A ConvNeXt block's beginning: one kernel normalizes the channels of a pixel, which several threads compute."""
    y = m.op("Conv", m.input("x", ["n", 24, 5, 6]), m.weight([24, 1, 5, 5], 0.2), m.weight([24]), pads=[2] * 4, group=24)
    y = m.op("LayerNormalization", m.op("Transpose", y, perm=[0, 2, 3, 1]), m.weight([24]), m.weight([24]), axis=-1)
    m.output(m.op("Add", y, m.input("r", ["n", 5, 6, 24])))


@case("f32", {"n": 2, "h": 7, "w": 5}, {"n": 1, "h": 12, "w": 13})
def transposed_convolution(m):
    m.output(m.op("ConvTranspose", m.input("x", ["n", 4, "h", "w"]), m.weight([4, 6, 3, 3]), strides=[2, 2], pads=[1, 1, 1, 1]))


@case("f32 f16", {"n": 2, "h": 7, "w": 5}, {"n": 1, "h": 12, "w": 13}, {"n": 0, "h": 4, "w": 4})
def pooling(m):
    x = m.input("x", ["n", 8, "h", "w"])
    m.output(m.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]))
    m.output(m.op("AveragePool", x, kernel_shape=[2, 2], pads=[0, 1, 1, 0]))
    m.output(m.op("GlobalAveragePool", x))


@case("f32 f16", {"n": 2, "h": 7, "w": 5}, {"n": 1, "h": 1, "w": 13}, {"n": 1, "h": 49, "w": 2})
def resizes(m):
    x = m.input("x", ["n", 4, "h", "w"])
    for mode, coordinates in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("cubic", "align_corners")):
        m.output(m.op("Resize", x, "", m.constant([1, 1, 2, 1.7]), mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor"))


@case("f32 f16", {"s": 3, "b": 2}, {"s": 1, "b": 1}, {"s": 9, "b": 5})
def recurrent_layers(m):
    x = m.input("x", ["s", "b", 5])
    for operator, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        y, h = m.op(operator, x, m.weight([1, gates * 12, 5]), m.weight([1, gates * 12, 12]), m.weight([1, gates * 24]), hidden_size=12, outputs=2)
        m.output(y)
        m.output(h)


@case("f32 f16", {"heads": 2, "seq": 7}, {"heads": 12, "seq": 33}, {"heads": 0, "seq": 3})
def attention_of_open_heads(m):
    q, k, v = m.input("q", ["heads", "seq", 16]), m.input("k", ["heads", "seq", 16]), m.input("v", ["heads", "seq", 16])
    scores = m.op("MatMul", q, m.op("Transpose", k, perm=[0, 2, 1]))
    m.output(m.op("MatMul", m.op("Softmax", scores, axis=-1), v))


@case("f32", {"n": 2, "s": 7}, {"n": 5, "s": 19})
def scatters(m):
    x, u = m.input("x", ["n", "s"]), m.input("u", ["n", 3])
    m.output(m.op("ScatterElements", x, m.input("i", ["n", 3], "i64", "s"), u, axis=1))
    m.output(m.op("ScatterND", x, m.input("j", [2, 1], "i64", "n"), m.input("v", [2, "s"])))


# --- kernels of the library in HIP C++

@case("f32", {"n": 3, "h": 5}, {"n": 1, "h": 1}, {"n": 40, "h": 61})
def hip_kernels(m):
    kept = m.op("Relu", m.input("x", ["n", "h"]))
    places = m.op("Transpose", m.op("NonZero", kept), perm=[1, 0])
    m.output(m.op("ReduceSum", m.op("GatherND", kept, places), keepdims=0))
    image = m.input("image", [2, 3, "h", 6])
    m.output(m.op("GridSample", image, m.input("grid", [2, "n", 4, 2])))
    corner = m.input("corner", ["n", 2])
    regions = m.op("Concat", corner, m.op("Add", corner, m.op("Abs", m.input("extent", ["n", 2]))), axis=1)
    m.output(m.op("RoiAlign", image, regions, m.input("of", ["n"], "i64", 2), output_height=2, output_width=3, sampling_ratio=2))


class Failure(Exception):
    pass


def kiln(options, *arguments):
    done = subprocess.run([options.kiln, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode or "compiled for each set of sizes" in done.stderr:
        raise Failure((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1][:300])


def inputs_of(model, sizes, random):
    data = {}
    for name, dims, dtype, high in model.inputs:
        shape = [sizes.get(d, d) for d in dims]
        if dtype == "i64":
            data[name] = random.integers(0, sizes.get(high, high), shape)
        else:
            data[name] = random.standard_normal(shape).astype(TYPES[dtype][1])
    return data


def check(options, name, target, worker, folder):
    build, dtype, all_sizes = CASES[name]
    model, expected = Model(dtype, True), Model(dtype, False)
    build(model), build(expected)
    onnx.save(model.proto(), f"{folder}/model.onnx")
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(expected.proto().SerializeToString(), settings, providers=["CPUExecutionProvider"])
    may_be_empty = sorted({n for sizes in all_sizes for n, size in sizes.items() if size == 0})
    ranges = [a for n in may_be_empty for a in ("--dim", f"{n}=0:{max(sizes[n] for sizes in all_sizes)}")]
    kiln(options, "compile", f"{folder}/model.onnx", "-o", f"{folder}/model.kiln", *ranges)
    objects, worst, random = None, 0, np.random.default_rng(5)
    for sizes in all_sizes:
        at = folder + "/" + "_".join(map(str, sizes.values()))
        dims = [a for k, v in sizes.items() for a in ("--dim", f"{k}={v}")]
        kiln(options, "finalize", f"{folder}/model.kiln", "--target", target, "-o", at, "--export-constants", "--no-cache", "--specialize", "off", *dims)
        with open(f"{at}/kernels.json") as f:
            document = json.load(f)
        found = {k["object"] for k in document["kernels"]}
        # Kernels without results are not listed.
        if objects and not (found <= objects if 0 in sizes.values() else found == objects):
            raise Failure(f"{sizes} uses other kernels: {sorted(found ^ objects)}")
        objects = objects or found
        data = inputs_of(model, sizes, random)
        for key, value in data.items():
            np.save(f"{at}/{key}.npy", value)
        want = session.run(None, {k: v.astype(np.float32) if v.dtype == np.float16 else v for k, v in data.items()})
        answer = worker.run({"folder": at, "inputs": {k: f"{at}/{k}.npy" for k in data}, "outputs": at, "orders": options.orders}, options.timeout)
        if not answer["done"]:
            raise Failure(f"{sizes}: {answer['error']}")
        if answer["differing"]:
            raise Failure(f"{sizes}: the orders {answer['differing']} of waves give other bits")
        for (output, kind), reference in zip(model.outputs, want):
            with open(answer["outputs"][output], "rb") as f:
                error, wrong = compare.difference(f.read(), reference, kind, TOLERANCE.get(kind))
            if wrong:
                raise Failure(f"{sizes}: {output}: {wrong}")
            worst = max(worst, error)
    return f"{len(all_sizes)} sizes, {len(objects)} kernels, error {worst:.1e}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln")
    p.add_argument("--target", action="append", help=f"default: {', '.join(TARGETS)}")
    p.add_argument("--only", action="append", help="pattern of case names, such as 'softmax_*'")
    p.add_argument("--orders", nargs="+", choices=["forward", "reversed", "shuffled"], default=["forward", "reversed"])
    p.add_argument("--timeout", type=int, default=240, help="seconds for one run")
    options = p.parse_args()
    if why := pool.missing():
        print(f"skipped: {why}")
        return SKIPPED
    options.kiln = os.path.abspath(options.kiln)
    passed = failed = 0
    worker = pool.Worker()
    for target in options.target or TARGETS:
        for name in CASES:
            if options.only and not any(fnmatch.fnmatch(name, o) for o in options.only):
                continue
            with tempfile.TemporaryDirectory(prefix="kiln_open_sizes_") as folder:
                try:
                    print(f"ok    {target:8} {name:32} {check(options, name, target, worker, folder)}", flush=True)
                    passed += 1
                except Failure as e:
                    print(f"FAIL  {target:8} {name:32} {e}", flush=True)
                    failed += 1
    worker.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
