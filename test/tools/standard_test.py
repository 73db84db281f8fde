"""The standard's newest operators, which onnxruntime does not know, against the reference of the onnx package."""
import unittest

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

import kiln_case
from operator_case import OperatorCase

rng = np.random.default_rng(7)
F = onnx.TensorProto.FLOAT


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def by_onnx(model, feeds):
    evaluator = ReferenceEvaluator(model)
    return dict(zip(evaluator.output_names, evaluator.run(None, feeds)))


class StandardCase(OperatorCase):
    reference = staticmethod(by_onnx)

    def check_open(self, op, inputs, outputs, axes, standard, tolerance=1e-4, **attributes):
        """The axes of `axes` (input: axis) have no size in the model."""
        model, feeds = self.model(op, inputs, outputs, domain="", standard=standard, **attributes)
        for given in model.graph.input:
            if given.name in axes:
                given.type.tensor_type.shape.dim[axes[given.name]].dim_param = "T"
        self.agree(by_onnx(model, feeds), self.run_kiln(model, feeds), tolerance, f"open {op}")


class Attention(StandardCase):
    def test_scores(self):
        q, k, v = ("q", normal(2, 4, 3, 8)), ("k", normal(2, 2, 5, 8)), ("v", normal(2, 2, 5, 8))
        seen = rng.random((3, 5)) < 0.6
        seen[1] = False
        for mode in range(4):
            for mask in (None, ("m", seen), ("m", normal(3, 5))):
                self.check("Attention", [q, k, v, mask], ["y", "nk", "nv", "s"], domain="", standard=25, qk_matmul_output_mode=mode, softcap=2.0 if mode else 0.0)
        past = [("pk", normal(2, 2, 4, 8)), ("pv", normal(2, 2, 4, 8))]
        self.check("Attention", [q, k, v, None, *past], ["y", "nk", "nv", "s"], domain="", standard=25, qk_matmul_output_mode=2, is_causal=1)

    def test_flex(self):
        double = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [helper.make_tensor_value_info("x", F, None)],
                                   [helper.make_tensor_value_info("y", F, None)])
        q, k, v = normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 6)
        for dtype in (np.float32, np.float16):
            inputs = [("q", q.astype(dtype)), ("k", k.astype(dtype)), ("v", v.astype(dtype))]
            for mods in ({}, {"score_mod": double}, {"prob_mod": double}, {"score_mod": double, "prob_mod": double, "scale": 0.3}):
                self.check("FlexAttention", inputs, ["y"], 1e-4 if dtype == np.float32 else 4e-3, domain="ai.onnx.preview", standard=26, **mods)


class States(StandardCase):
    def linear(self, steps, dtype=np.float32, per_head=False, past=False):
        x = {"q": normal(2, steps, 4 * 8), "k": normal(2, steps, 2 * 8), "v": normal(2, steps, 2 * 6), "s": normal(2, 2, 8, 6) if past else None,
             "d": -np.abs(normal(2, steps, 2 if per_head else 16)), "b": rng.random((2, steps, 2)).astype(np.float32)}
        x["k"] /= 3
        return [None if a is None else (n, a.astype(dtype)) for n, a in x.items()]

    def test_linear_attention(self):
        for steps, dtype, per_head, past in [(1, np.float32, False, True), (5, np.float32, True, False), (5, np.float16, False, True)]:
            q, k, v, s, d, b = self.linear(steps, dtype, per_head, past)
            for rule, extra in {"linear": [None, None], "gated": [d, None], "delta": [None, b], "gated_delta": [d, b]}.items():
                self.check("LinearAttention", [q, k, v, s, *extra], ["y", "n"], 1e-4 if dtype == np.float32 else 4e-3, domain="", standard=27, q_num_heads=4, kv_num_heads=2,
                           update_rule=rule)

    def test_open_linear_attention(self):
        self.check_open("LinearAttention", self.linear(6, past=True), ["y", "n"], {n: 1 for n in "qkvdb"}, 27, q_num_heads=4, kv_num_heads=2)

    def test_causal_convolution(self):
        for length in (1, 2, 7):
            for window in (1, 4):
                for past in (False, True):
                    inputs = [("x", normal(2, 6, length)), ("w", normal(6, 1, window)), ("b", normal(6)), ("p", normal(2, 6, window - 1)) if past and window > 1 else None]
                    self.check("CausalConvWithState", inputs, ["y", "n"], domain="", standard=27, activation="silu" if past else "none")
        self.check_open("CausalConvWithState", [("x", normal(2, 6, 7)), ("w", normal(6, 1, 4)), None, ("p", normal(2, 6, 3))], ["y", "n"], {"x": 2}, 27)

    def test_tensor_scatter(self):
        cache = ("c", normal(2, 3, 9, 4))
        for mode, length in [("linear", 1), ("linear", 3), ("circular", 1), ("circular", 4)]:
            at = np.array([2, 8 if mode == "circular" else 5], np.int64)
            self.check("TensorScatter", [cache, ("u", normal(2, 3, length, 4)), ("w", at)], domain="", standard=24, mode=mode)
        self.check("TensorScatter", [cache, ("u", normal(2, 3, 9, 2))], domain="", standard=24, axis=-1)
        self.refused("axis 0", "TensorScatter", [cache, ("u", normal(1, 3, 9, 4))], domain="", standard=24, axis=0)


class Others(StandardCase):
    def test_cumulative_product(self):
        for length in (1, 7, 100):
            for exclusive in (0, 1):
                for reverse in (0, 1):
                    x = 1 + 0.1 * normal(3, length, 2)
                    self.check("CumProd", [("x", x), ("a", np.array(1, np.int64))], constants=["a"], domain="", standard=26, exclusive=exclusive, reverse=reverse)
        self.check("CumProd", [("x", rng.integers(1, 3, (2, 40))), ("a", np.array(-1, np.int64))], constants=["a"], domain="", standard=26)
        self.check_open("CumProd", [("x", 1 + 0.1 * normal(3, 40)), ("a", np.array(1, np.int64))], ["y"], {"x": 1}, 26, constants=["a"])

    def test_training(self):
        x = ("x", normal(3, 4, 5))
        inputs = [("g", normal(4)), ("b", normal(4)), ("m", normal(4)), ("v", np.abs(normal(4)))]
        self.check("BatchNormalization", [x, *inputs], ["y", "rm", "rv"], domain="", standard=15, training_mode=1, momentum=0.7)
        switch = [("r", np.array(0.3, np.float32)), ("t", np.array(True))]
        self.check("Dropout", [x, *switch], ["y", "mask"], constants=["r", "t"], domain="", standard=22, seed=5)
        self.refused("without a seed", "Dropout", [x, *switch], constants=["r", "t"], domain="", standard=22)


if __name__ == "__main__":
    kiln_case.main()
