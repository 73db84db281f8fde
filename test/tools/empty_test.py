"""Dimensions of 0: every operator whose operands may be empty, against onnxruntime, by the kernels and by the
reference."""
import json
import os
import random
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from operator_case import OperatorCase, reference

rng = np.random.default_rng(3)


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def i(most, *shape):
    return rng.integers(0, most, shape).astype(np.int64)


def constant(*values, dtype=np.int64):
    return np.array(values, dtype)


# name → (operator, attributes, inputs for a size n, names of constants, number of outputs, and where onnxruntime
# crashes: the dims of the zeros that come out for n = 0)
CASES = {
    "relu": ("Relu", {}, lambda n: {"x": f(n, 4)}, "", 1),
    "add": ("Add", {}, lambda n: {"x": f(n, 4), "y": f(1, 4)}, "", 1),
    "stretch": ("Mul", {}, lambda n: {"x": f(2, 1, 4), "y": f(n, 1)}, "", 1),
    "cast": ("Cast", {"to": TensorProto.INT32}, lambda n: {"x": f(2, n)}, "", 1),
    "where": ("Where", {}, lambda n: {"c": i(2, n, 4).astype(bool), "x": f(n, 4), "y": f(4)}, "", 1),
    "transpose": ("Transpose", {"perm": [1, 0, 2]}, lambda n: {"x": f(2, n, 4)}, "", 1),
    "concat_first": ("Concat", {"axis": 1}, lambda n: {"x": f(2, n, 4), "y": f(2, 5, 4)}, "", 1),
    "concat_last": ("Concat", {"axis": -1}, lambda n: {"x": f(2, 5), "y": f(2, n), "z": f(2, 3)}, "", 1),
    "concat_all": ("Concat", {"axis": 0}, lambda n: {"x": f(n, 4), "y": f(n, 4)}, "", 1),
    "slice": ("Slice", {}, lambda n: {"x": f(5, n), "s": constant(1), "e": constant(4), "a": constant(0)}, "sea", 1),
    "split": ("Split", {"axis": 1}, lambda n: {"x": f(n, 6), "s": constant(2, 4)}, "s", 2),
    "gather": ("Gather", {"axis": 0}, lambda n: {"x": f(5, 4), "j": i(5, n)}, "", 1),
    "gather_rows": ("Gather", {"axis": 1}, lambda n: {"x": f(n, 5), "j": i(5, 2)}, "", 1),
    "gather_elements": ("GatherElements", {"axis": 1}, lambda n: {"x": f(3, 5), "j": i(5, 3, n)}, "", 1),
    "scatter": ("ScatterElements", {"axis": 1}, lambda n: {"x": f(3, 5), "j": np.broadcast_to(np.arange(n), (3, n)).copy(), "u": f(3, n)}, "", 1),
    "scatter_nd": ("ScatterND", {}, lambda n: {"x": f(5, 2), "j": np.arange(n).reshape(n, 1), "u": f(n, 2)}, "", 1),
    "product": ("MatMul", {}, lambda n: {"x": f(4, n), "y": f(n, 5)}, "", 1),
    "product_rows": ("MatMul", {}, lambda n: {"x": f(2, n, 4), "y": f(4, 5)}, "", 1),
    "product_batch": ("MatMul", {}, lambda n: {"x": f(n, 3, 4), "y": f(n, 4, 5)}, "", 1),
    "product_columns": ("MatMul", {}, lambda n: {"x": f(3, 4), "y": f(4, n)}, "", 1),
    "gemm": ("Gemm", {"alpha": 2.0}, lambda n: {"x": f(3, n), "y": f(n, 5), "c": f(5)}, "", 1),
    "einsum": ("Einsum", {"equation": "bij,bkj->bik"}, lambda n: {"x": f(2, 3, n), "y": f(2, 4, n)}, "", 1, [(2, 3, 4)]),
    "sum": ("ReduceSum", {"keepdims": 0}, lambda n: {"x": f(3, n, 4), "a": constant(1)}, "a", 1),
    "product_of": ("ReduceProd", {}, lambda n: {"x": f(3, n), "a": constant(1)}, "a", 1),
    "maximum": ("ReduceMax", {}, lambda n: {"x": f(3, n), "a": constant(0)}, "a", 1),
    "mean": ("ReduceMean", {}, lambda n: {"x": f(n, 4), "a": constant(1)}, "a", 1),
    "softmax_nothing": ("Softmax", {"axis": -1}, lambda n: {"x": f(3, n)}, "", 1),
    "softmax_rows": ("Softmax", {"axis": -1}, lambda n: {"x": f(n, 4)}, "", 1),
    "layer_normalization": ("LayerNormalization", {}, lambda n: {"x": f(2, n, 4), "g": f(4), "b": f(4)}, "gb", 1),
    "cumulative_sum": ("CumSum", {}, lambda n: {"x": f(2, n), "a": np.array(1)}, "a", 1),
    "top_k": ("TopK", {}, lambda n: {"x": f(n, 5), "k": constant(2)}, "k", 2),
    "arg_max": ("ArgMax", {"axis": 1}, lambda n: {"x": f(n, 5)}, "", 1),
    "convolution": ("Conv", {"pads": [1, 1, 1, 1]}, lambda n: {"x": f(n, 3, 5, 6), "w": f(4, 3, 3, 3)}, "w", 1),
    "transposed": ("ConvTranspose", {}, lambda n: {"x": f(n, 3, 4, 4), "w": f(3, 4, 2, 2)}, "w", 1),
    "max_pool": ("MaxPool", {"kernel_shape": [2, 2]}, lambda n: {"x": f(n, 3, 5, 6)}, "", 1),
    "average_pool": ("GlobalAveragePool", {}, lambda n: {"x": f(n, 3, 5, 6)}, "", 1),
    "batch_normalization": ("BatchNormalization", {}, lambda n: {"x": f(n, 3, 5), "s": f(3), "b": f(3), "m": f(3), "v": np.abs(f(3))}, "sbmv", 1),
    "resize": ("Resize", {"mode": "nearest"}, lambda n: {"x": f(n, 3, 4, 4), "": None, "s": constant(1, 1, 2, 2, dtype=np.float32)}, "s", 1),
    "pad": ("Pad", {}, lambda n: {"x": f(2, n), "p": constant(0, 1, 0, 2), "c": np.float32(1.5)}, "pc", 1),
    "expand": ("Expand", {}, lambda n: {"x": f(n, 1), "s": constant(1, 4)}, "s", 1),
    "flatten": ("Flatten", {"axis": 1}, lambda n: {"x": f(3, n, 2)}, "", 1),
    "shape": ("Shape", {}, lambda n: {"x": f(3, n, 2)}, "", 1),
    "quantize": ("QuantizeLinear", {}, lambda n: {"x": f(n, 4), "s": np.float32(0.1), "z": np.uint8(3)}, "sz", 1),
    "lstm_batch": ("LSTM", {"hidden_size": 3}, lambda n: {"x": f(4, n, 2), "w": f(1, 12, 2), "r": f(1, 12, 3)}, "wr", 3, [(4, 1, 0, 3), (1, 0, 3), (1, 0, 3)]),
    "gru_batch": ("GRU", {"hidden_size": 3}, lambda n: {"x": f(4, n, 2), "w": f(1, 9, 2), "r": f(1, 9, 3)}, "wr", 2, [(4, 1, 0, 3), (1, 0, 3)]),
}


class EmptyTensors(OperatorCase):
    def both(self, operator, attributes, inputs_of, constants, outputs, zeros=None, domain="", opset=18):
        """The model with its dimension n open, run with n = 0 and n = 3; and with n fixed to 0."""
        with self.subTest(operator=operator, attributes=attributes):
            three = inputs_of(3)
            feeds = {k: v for k, v in three.items() if v is not None and k not in constants}
            fixed = {k: v for k, v in three.items() if v is not None and k in constants}
            zero = {k: v for k, v in inputs_of(0).items() if k in feeds}
            dims = {k: ["n" if a != b else a for a, b in zip(v.shape, zero[k].shape)] for k, v in feeds.items()}
            names = [f"out{o}" for o in range(outputs)]
            node = helper.make_node(operator, [k if v is not None else "" for k, v in three.items()], names, domain=domain, name="node", **attributes)
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), dims[k]) for k, v in feeds.items()],
                                      [helper.make_empty_tensor_value_info(o) for o in names], [numpy_helper.from_array(np.asarray(v), k) for k, v in fixed.items()])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)], ir_version=9)
            for feed, spec in ((zero, "n=0:8"), (feeds, "n=0:8"), (zero, "n=0")):
                about = f"{operator} {attributes} {spec} {[v.shape for v in feed.values()]}"
                known = zeros is not None and feed is zero
                want = {o: np.zeros(dims, np.float32) for o, dims in zip(names, zeros)} if known else reference(model, feed)
                self.agree(want, self.run_kiln(model, feed, [spec]), 1e-4, about)
            self.json("verify", self.path("m.onnx"), "--dim", "n=0")

    def test_finalized_for_no_elements(self):
        # No kernel is made, and the file of native kernels runs.
        graph = helper.make_graph([helper.make_node("Sigmoid", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.path("m.onnx"))
        self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), "--dim", "n=0:8")
        for target in ["gfx942", "sm_90", kiln_case.HOST]:
            self.kiln("finalize", self.path("m.kiln"), "--target", target, "--dim", "n=0", "-o", self.path(target), "--native-file", self.path("native.kiln"))
            with open(os.path.join(self.path(target), "kernels.json")) as f:
                listed = json.load(f)
            self.assertEqual(listed["kernels"], [])
            self.assertEqual([v["from"] for v in listed["program"]["values"]], ["input", "empty"])
        self.kiln("run", self.path("native.kiln"))

    def test_operators(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.both(*case)

    def test_attention_over_an_empty_past(self):
        self.both("MultiHeadAttention", {"num_heads": 2}, lambda n: {"q": f(2, 3, 8), "k": f(2, 3, 8), "v": f(2, 3, 8), "": None, "a": None, "b": None, "pk": f(2, 2, n, 4), "pv": f(2, 2, n, 4)},
                  "", 3, domain="com.microsoft")

    def test_what_onnx_forbids_is_refused(self):
        for operator, attributes, x in [("MaxPool", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}, f(1, 1, 0, 4)), ("ArgMax", {"axis": 1}, f(2, 0))]:
            with self.subTest(operator):
                model, _ = self.model(operator, [("x", x)], ["y"], domain="", standard=17, **attributes)
                onnx.save(model, self.path("m.onnx"))
                line = self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3))
                self.assertIn("node 'node'", line)
                self.assertIn("empty", line)

    def test_gather_from_an_empty_axis_names_the_kernel(self):
        model = self.open_model([helper.make_node("Gather", ["x", "j"], ["y"], name="pick")], {"x": (["n", 4], TensorProto.FLOAT), "j": ([2], TensorProto.INT64)}, ["y"])
        self.kiln("compile", model, "-o", self.path("m.kiln"), "--dim", "n=0:4")
        line = self.error_line(self.kiln("run", self.path("m.kiln"), "--quiet", "--dim", "n=0", code=5))
        self.assertIn("an empty axis has nothing to gather", line)
        self.assertIn("kernel 'map_gather'", line)

    def open_model(self, nodes, inputs, outputs, opset=17):
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(k, t, d) for k, (d, t) in inputs.items()], [helper.make_empty_tensor_value_info(o) for o in outputs])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), self.path("open.onnx"))
        return self.path("open.onnx")

    def test_commands(self):
        nodes = [helper.make_node("Concat", ["past", "x"], ["present"], axis=1), helper.make_node("Neg", ["past"], ["turned"])]
        model = self.open_model(nodes, {"past": ([2, "p", 4], TensorProto.FLOAT), "x": ([2, 1, 4], TensorProto.FLOAT)}, ["present", "turned"])
        self.kiln("compile", model, "-o", self.path("m.kiln"), "--dim", "p=0:20")
        report = self.json("perf", self.path("m.kiln"), "--dim", "p=0", "-n", "3", "--warmup", "1")
        self.assertEqual(report["launches"], 1)  # the negation of nothing is none
        self.kiln("run", self.path("m.kiln"), "--quiet", "--dim", "p=0", "--output-dir", self.path("o"))
        self.assertEqual(np.load(self.path("o/turned.npy")).shape, (2, 0, 4))
        self.assertEqual(np.load(self.path("o/present.npy")).shape, (2, 1, 4))
        self.json("verify", model, "--dim", "p=0")
        self.json("inspect", self.path("m.kiln"), "--check")
        self.kiln("compile", model, "-o", self.path("m.kiln"), "--dim", "p=-1", code=2)

    def test_random_graphs(self):
        """Chains of operators over tensors some of whose dimensions are 0."""
        for seed in range(int(os.environ.get("KILN_EMPTY_SEEDS", "8"))):
            with self.subTest(seed=seed):
                self.random_graph(random.Random(seed))

    def random_graph(self, pick):
        rank = pick.choice((2, 3))
        dims = [pick.choice((0, 1, 2, 5)) for _ in range(rank)]
        if 0 not in dims:
            dims[pick.randrange(rank)] = 0
        feeds, nodes, initializers, known = {}, [], [], []

        def add(operator, inputs, shape, **attributes):
            name = f"v{len(nodes)}"
            nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
            known.append((name, shape))

        for k in range(2):
            feeds[f"x{k}"] = f(*dims)
            known.append((f"x{k}", dims))
        for step in range(8):
            name, shape = pick.choice(known)
            kind = pick.choice(("unary", "binary", "concat", "reduce", "softmax", "transpose", "product", "pad"))
            if kind == "unary":
                add(pick.choice(("Relu", "Exp", "Neg", "Tanh")), [name], shape)
            elif kind == "binary":
                add(pick.choice(("Add", "Mul")), [name, pick.choice([n for n, s in known if s == shape])], shape)
            elif kind == "concat":
                axis = pick.randrange(len(shape))
                other = list(shape)
                other[axis] = pick.choice((0, 1, 3))
                initializers.append(numpy_helper.from_array(f(*other), f"c{step}"))
                add("Concat", pick.choice(([name, f"c{step}"], [f"c{step}", name])), shape[:axis] + [shape[axis] + other[axis]] + shape[axis + 1:], axis=axis)
            elif kind == "reduce":
                axis = pick.randrange(len(shape))
                initializers.append(numpy_helper.from_array(np.array([axis]), f"c{step}"))
                add("ReduceSum", [name, f"c{step}"], shape[:axis] + [1] + shape[axis + 1:], keepdims=1)
            elif kind == "softmax":
                add("Softmax", [name], shape, axis=len(shape) - 1)
            elif kind == "transpose":
                order = pick.sample(range(len(shape)), len(shape))
                add("Transpose", [name], [shape[a] for a in order], perm=order)
            elif kind == "product":
                initializers.append(numpy_helper.from_array(f(shape[-1], 3), f"c{step}"))
                add("MatMul", [name, f"c{step}"], shape[:-1] + [3])
            else:
                initializers.append(numpy_helper.from_array(np.array([0] * len(shape) + [1] * len(shape)), f"c{step}"))
                add("Pad", [name, f"c{step}"], [d + 1 for d in shape])
        outputs = [n for n, _ in known if n.startswith("v")]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in feeds.items()],
                                  [helper.make_empty_tensor_value_info(o) for o in outputs], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        self.agree(reference(model, feeds), self.run_kiln(model, feeds), 1e-3)


if __name__ == "__main__":
    kiln_case.main()
