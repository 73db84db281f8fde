"""Quantized models against onnxruntime: QDQ, QLinear operators and dynamic quantization, with zero points at the
extremes, scales for each channel, groups, strides and padding. Weights stay 8 bits wide in the file."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

KILN = sys.argv.pop(1)
SIGNED = {np.uint8: False, np.int8: True}


def tensor(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


class Graph:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.count = [], [], 0

    def constant(self, value):
        self.count += 1
        self.constants.append(tensor(f"c{self.count}", value))
        return f"c{self.count}"

    def add(self, kind, inputs, outputs=1, domain="", **attributes):
        self.count += 1
        names = [f"v{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def parameters(self, scale, zero, kind):
        return [self.constant(np.float32(scale)), self.constant(kind(zero))]

    # DequantizeLinear(QuantizeLinear(x))
    def through(self, x, scale, zero, kind):
        p = self.parameters(scale, zero, kind)
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [x, *p]), *p])

    def weights(self, dims, kind, per_channel_axis=None):
        info = np.iinfo(kind)
        w = self.random.integers(info.min, info.max + 1, dims).astype(kind)
        count = 1 if per_channel_axis is None else dims[per_channel_axis]
        scale = self.random.uniform(0.001, 0.01, count).astype(np.float32)
        zero = np.full(count, 0 if kind is np.int8 else 128, kind)
        shape = [count] if per_channel_axis is not None else []
        return self.constant(w), self.constant(scale.reshape(shape)), self.constant(zero.reshape(shape))

    def dequantized_weights(self, dims, kind, per_channel_axis=None):
        axis = {} if per_channel_axis is None else {"axis": per_channel_axis}
        return self.add("DequantizeLinear", list(self.weights(dims, kind, per_channel_axis)), **axis)

    def model(self, x_dims, output, kind=TensorProto.FLOAT):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x_dims)],
                                  [helper.make_tensor_value_info(output, kind, None)], self.constants)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


class quantized(unittest.TestCase):
    # `step` is the scale of the result: a sum may be rounded up or down, so results may differ by one unit.
    def compare(self, model, step, integer=True):
        dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(5).normal(0, 1, dims).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path, compiled = f"{folder}/m.onnx", f"{folder}/m.kiln"
            onnx.save(model, path)
            np.save(f"{folder}/x.npy", x)
            options = ort.SessionOptions()
            options.log_severity_level = 4
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            want = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
            done = subprocess.run([KILN, "compile", path, "-o", compiled, "--explain", "--json"], check=True, capture_output=True, text=True)
            self.assertEqual("integer_contractions" in done.stdout, integer)
            subprocess.run([KILN, "run", compiled, "--quiet", "--cache", f"{folder}/cache", "--input", f"x={folder}/x.npy", "--output-dir", f"{folder}/out"], check=True, capture_output=True)
            got = np.load(f"{folder}/out/{model.graph.output[0].name}.npy")
            self.assertEqual(got.shape, want.shape)
            difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
            self.assertLessEqual(difference.max(), step * 1.01 + 1e-4)
            self.assertLess((difference > step / 2).mean(), 0.02)
            return os.path.getsize(compiled)

    def test_qdq_convolutions(self):
        cases = [(np.uint8, 0, 3, 8, 1, 7, 2, 3, None), (np.uint8, 255, 5, 7, 1, 3, 1, 1, 0), (np.int8, -128, 6, 9, 3, 3, 2, 1, 0), (np.int8, 127, 4, 4, 4, 3, 1, 2, 0),
                 (np.uint8, 128, 16, 33, 1, 1, 1, 0, None), (np.int8, 3, 12, 18, 2, 3, 1, 1, None)]
        for kind, zero, channels, features, groups, window, stride, pad, axis in cases:
            with self.subTest(kind=kind, zero=zero, channels=channels):
                g = Graph(channels)
                x = g.through("x", 0.02, zero, kind)
                w = g.dequantized_weights([features, channels // groups, window, window], np.int8, axis)
                y = g.add("Conv", [x, w, g.constant(g.random.normal(0, 1, features).astype(np.float32))], group=groups, strides=[stride] * 2, pads=[pad] * 4)
                self.compare(g.model([2, channels, 11, 9], g.through(g.add("Relu", [y]), 0.05, 0, np.uint8)), 0.05)

    def test_qdq_products(self):
        for kind, zero, weights, axis in [(np.uint8, 77, np.int8, None), (np.int8, -128, np.int8, 1), (np.uint8, 0, np.uint8, 1), (np.int8, 5, np.uint8, None)]:
            with self.subTest(kind=kind, zero=zero, weights=weights):
                g = Graph(zero + 200)
                y = g.add("MatMul", [g.through("x", 0.02, zero, kind), g.dequantized_weights([37, 21], weights, axis)])
                y = g.through(y, 0.1, 0, np.int8)
                z = g.add("Gemm", [g.add("Reshape", [y, g.constant(np.int64([-1, 21]))]), g.dequantized_weights([5, 21], np.int8, 0), g.constant(np.ones(5, np.float32))], transB=1)
                self.compare(g.model([3, 7, 37], z), 0.3)

    def test_operators_between(self):
        g = Graph(3)
        x = g.through("x", 0.02, 100, np.uint8)
        a = g.through(g.add("Conv", [x, g.dequantized_weights([8, 4, 3, 3], np.int8)], pads=[1] * 4), 0.03, 120, np.uint8)
        p = g.through(g.add("MaxPool", [a], kernel_shape=[3, 3], pads=[1] * 4), 0.03, 120, np.uint8)
        s = g.through(g.add("Concat", [g.through(g.add("Add", [a, p]), 0.0713, 128, np.uint8), a], axis=1), 0.0713, 128, np.uint8)
        t = g.add("Conv", [g.through(g.add("Sigmoid", [s]), 1 / 256, 0, np.uint8), g.dequantized_weights([3, 16, 1, 1], np.int8, 0)])
        self.compare(g.model([1, 4, 9, 7], g.through(t, 0.02, 99, np.uint8)), 0.02)

    def test_qlinear_operators(self):
        for kind, zero in [(np.uint8, 255), (np.int8, -3)]:
            g = Graph(4)
            q = g.add("QuantizeLinear", ["x", *g.parameters(0.02, zero, kind)])
            w, scale, zeros = g.weights([6, 5, 3, 3], np.int8, 0)
            y = g.add("QLinearConv", [q, *g.parameters(0.02, zero, kind), w, scale, zeros, *g.parameters(0.05, 10, kind), g.constant(np.int32([1, -200, 3, 4000, 5, 6]))], pads=[1, 0, 1, 2], strides=[2, 1])
            self.compare(g.model([1, 5, 8, 9], y, TensorProto.UINT8 if kind is np.uint8 else TensorProto.INT8), 1)

    def test_dynamic_quantization(self):
        g = Graph(6)
        q, scale, zero = g.add("DynamicQuantizeLinear", ["x"], outputs=3)
        y = g.add("MatMulInteger", [q, g.constant(g.random.integers(-128, 128, [19, 23]).astype(np.int8)), zero])
        y = g.add("Mul", [g.add("Cast", [y], to=TensorProto.FLOAT), g.add("Mul", [scale, g.constant(np.float32(0.01))])])
        self.compare(g.model([4, 19], y), 0.05)
        g = Graph(7)
        q, scale, zero = g.add("DynamicQuantizeLinear", ["x"], outputs=3)
        y = g.add("ConvInteger", [q, g.constant(g.random.integers(-128, 128, [6, 3, 3, 3]).astype(np.int8)), zero], pads=[1] * 4)
        self.compare(g.model([1, 3, 8, 7], g.add("Mul", [g.add("Cast", [y], to=TensorProto.FLOAT), scale])), 0.5)
        g = Graph(8)
        b = g.constant(g.random.integers(0, 256, [19, 23]).astype(np.uint8))
        y = g.add("DynamicQuantizeMatMul", ["x", b, g.constant(np.float32(0.01)), g.constant(np.uint8(37))], domain="com.microsoft")
        self.compare(g.model([4, 19], y), 0.05)

    # The scale that the model computes, the product with it and the sum after it are rounded as onnxruntime rounds them:
    # a last bit would put numbers of the next layer on another step. Weights are small, so that onnxruntime's products
    # do not saturate.
    def test_dynamic_quantization_is_exact(self):
        g = Graph(11)
        x = "x"
        for channels, features in [(3, 16), (16, 24), (24, 8)]:
            q, scale, zero = g.add("DynamicQuantizeLinear", [x], outputs=3)
            w = g.constant(g.random.integers(-30, 31, [features, channels, 3, 3]).astype(np.int8))
            y = g.add("Cast", [g.add("ConvInteger", [q, w, zero], pads=[1] * 4)], to=TensorProto.FLOAT)
            y = g.add("Mul", [y, g.add("Mul", [scale, g.constant(np.float32(0.0037))])])
            y = g.add("Add", [y, g.constant(g.random.normal(0, 1, [1, features, 1, 1]).astype(np.float32))])
            x = g.add("Relu", [y])
        self.compare(g.model([2, 3, 20, 28], x), 0)

    def test_weights_stay_8_bits_wide(self):
        g = Graph(9)
        y = g.add("MatMul", [g.through("x", 0.02, 0, np.uint8), g.dequantized_weights([512, 512], np.int8)])
        self.assertLess(self.compare(g.model([2, 512], y), 0.1), 1.1 * 512 * 512 + 20000)

    def test_16_bits_stay_floats(self):
        g = Graph(10)
        p = [g.constant(np.float32(0.001)), g.constant(np.uint16(32768))]
        x = g.add("DequantizeLinear", [g.add("QuantizeLinear", ["x", *p], domain="com.microsoft"), *p], domain="com.microsoft")
        self.compare(g.model([2, 33], g.add("MatMul", [x, g.dequantized_weights([33, 9], np.int8)])), 0.01, integer=False)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
