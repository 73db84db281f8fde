"""Weights of 4 bits: models that hold them against onnxruntime, and `--int4-weights`."""
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase


def onnxruntime_says(model, x):
    """Without its optimizations, which would quantize x to 8 bits (MatMulNBits)."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options).run(None, {"x": x})[0]


class Int4(KilnCase):
    def packed(self, name, dims, signed, seed=1):
        rng = np.random.default_rng(seed)
        values = rng.integers(-8 if signed else 0, 8 if signed else 16, dims)
        flat = np.append(values.reshape(-1) & 15, np.zeros(values.size % 2, np.int64)).reshape(-1, 2)
        raw = (flat[:, 0] | flat[:, 1] << 4).astype(np.uint8).tobytes()
        return helper.make_tensor(name, TensorProto.INT4 if signed else TensorProto.UINT4, dims, raw, raw=True)

    def dequantize_model(self, dims, signed, scale_dims, zero_point, gemm=False, dtype=np.float32, **attributes):
        """x -> MatMul (or Gemm with transB) with DequantizeLinear of a constant -> y"""
        rng = np.random.default_rng(2)
        scale = (rng.random(scale_dims) * 0.1 + 0.01).astype(dtype)
        constants = [self.packed("w", dims, signed), numpy_helper.from_array(scale, "scale")]
        if zero_point:
            constants.append(self.packed("zero", scale_dims, signed, 3))
        depth, columns = dims[::-1] if gemm else dims
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        nodes = [helper.make_node("DequantizeLinear", ["w", "scale"] + (["zero"] if zero_point else []), ["d"], **attributes),
                 helper.make_node("Gemm", ["x", "d"], ["y"], transB=1) if gemm else helper.make_node("MatMul", ["x", "d"], ["y"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", kind, [5, depth])], [helper.make_tensor_value_info("y", kind, [5, columns])], constants)
        path = self.path(f"m{len(os.listdir(self.dir))}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
        return path

    def test_models_with_int4_weights_agree_with_onnxruntime(self):
        cases = [dict(dims=[96, 44], scale_dims=[], axis=0), dict(dims=[96, 44], scale_dims=[44], axis=1), dict(dims=[96, 44], scale_dims=[3, 44], axis=0, block_size=32),
                 dict(dims=[44, 96], scale_dims=[44, 6], axis=1, block_size=16, gemm=True), dict(dims=[33, 31], scale_dims=[31], axis=1), dict(dims=[44, 96], scale_dims=[96], axis=1, gemm=True),
                 dict(dims=[96, 44], scale_dims=[96], axis=0), dict(dims=[80, 44], scale_dims=[3, 44], axis=0, block_size=32), dict(dims=[44, 90], scale_dims=[44, 6], axis=1, block_size=16, gemm=True)]
        x = {}
        for signed in (True, False):
            for zero_point in (True, False):
                for case in cases:
                    with self.subTest(signed=signed, zero_point=zero_point, **case):
                        model = self.dequantize_model(signed=signed, zero_point=zero_point, **case)
                        depth = case["dims"][1 if case.get("gemm") else 0]
                        x = np.random.default_rng(4).standard_normal((5, depth)).astype(np.float32)
                        np.save(self.path("x.npy"), x)
                        want = onnxruntime_says(model, x)
                        self.json("run", self.compiled(model), "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
                        np.testing.assert_allclose(np.load(self.path("out/y.npy")), want, rtol=1e-5, atol=1e-5)

    def test_dequantization_is_part_of_the_product(self):
        model = self.dequantize_model([512, 64], True, [4, 64], False, axis=0, block_size=128)
        summary = self.json("compile", model, "-o", self.path("a.kiln"))
        self.assertEqual((summary["kernels"], summary["launches"]), (1, 1))
        self.assertLess(summary["bytes"], 512 * 64)
        self.assertTrue(self.json("verify", model)["ok"])

    def float_model(self):
        """x[4, 256] -> MatMul 256x320 -> Relu -> MatMul 320x8 -> y; the second weight is small."""
        rng = np.random.default_rng(1)
        weights = [numpy_helper.from_array((rng.standard_normal(d) * 0.05).astype(np.float32), n) for n, d in (("w", (256, 320)), ("v", (320, 8)))]
        nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["r"]), helper.make_node("MatMul", ["r", "v"], ["y"])]
        return self.save("float.onnx", nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 256])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])], weights)

    def test_int4_weights_quantizes_and_says_what(self):
        model = self.float_model()
        plain = self.json("compile", model, "-o", self.path("plain.kiln"))
        self.assertNotIn("int4_weights", plain)
        for options, group_bytes in ((), 4), (("--fp16",), 2):
            packed = self.json("compile", model, "-o", self.path("packed.kiln"), "--int4-weights", *options)
            report = packed["int4_weights"]
            self.assertEqual((report["quantized"], report["too_small"], report["too_inexact"]), (1, 1, 0))
            self.assertEqual(report["bytes_before"], 256 * 320 * group_bytes)
            self.assertEqual(report["bytes_after"], 256 * 320 // 2 + 320 * 2 * group_bytes)
            self.assertLess(report["largest_error"], 0.12)
            self.assertLess(packed["bytes"], plain["bytes"] / 3)
            self.assertEqual(packed["kernels"], self.json("compile", model, "-o", self.path("plain.kiln"), *options)["kernels"])
            verified = self.json("verify", model, "--int4-weights", *options)
            self.assertTrue(verified["ok"])
            self.assertIn("quantized", verified["against"])
        self.assertIn("1 weights in 4 bits", self.kiln("compile", model, "-o", self.path("packed.kiln"), "--int4-weights").stdout)

    def test_the_answer_is_near_that_of_the_float_model(self):
        model = self.float_model()
        x = np.random.default_rng(4).standard_normal((4, 256)).astype(np.float32)
        np.save(self.path("x.npy"), x)
        want = onnxruntime_says(model, x)
        self.kiln("compile", model, "-o", self.path("packed.kiln"), "--int4-weights")
        self.json("run", self.path("packed.kiln"), "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
        error = np.linalg.norm(np.load(self.path("out/y.npy")) - want) / np.linalg.norm(want)
        self.assertLess(error, 0.2)
        self.assertGreater(error, 1e-3)

    def test_verify_knows_that_accuracy_level_4_rounds_rows_to_bytes(self):
        rng = np.random.default_rng(8)
        columns, depth, block = 96, 256, 32
        constants = [numpy_helper.from_array(rng.integers(0, 256, (columns, depth // block, block // 2)).astype(np.uint8), "w"),
                     numpy_helper.from_array((rng.random(columns * depth // block) * 0.1).astype(np.float32), "scale")]
        for level, tolerance in ((0, 1e-4), (4, 5e-2)):
            with self.subTest(level=level):
                node = helper.make_node("MatMulNBits", ["x", "w", "scale"], ["y"], domain="com.microsoft", K=depth, N=columns, bits=4, block_size=block, accuracy_level=level)
                graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, depth])],
                                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, columns])], constants)
                path = self.path(f"level{level}.onnx")
                onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9), path)
                found = self.json("verify", path)["outputs"][0]
                self.assertEqual(found["tolerance"], tolerance)
                self.assertLess(found["relative_norm"], tolerance)
                if level == 4:  # otherwise the limit would be one that nothing needs
                    self.assertGreater(found["relative_norm"], 1e-4)


if __name__ == "__main__":
    kiln_case.main()
