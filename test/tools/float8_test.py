"""Models with quantized 8-bit floats against onnxruntime: products of activations and weights, of weights alone, with one
scale for the tensor or for each column, at open sizes. 4-bit floats against NumPy."""
import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase

TYPES = {TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn, TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
         TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn}


def constant(name, kind, values):
    """A tensor of a small float type."""
    given = np.asarray(values).astype(TYPES[kind])
    codes = given.view(np.uint8).ravel()
    if kind == TensorProto.FLOAT4E2M1:
        codes = codes[0::2] | codes[1::2] << 4
    return TensorProto(name=name, data_type=kind, dims=given.shape, raw_data=codes.tobytes()), given.astype(np.float32)


def model(kind, activations, columns_scaled, transposed, depth=48, columns=20):
    """Relu(x · weights), both quantized, or only the weights; and the weights as f32."""
    rng = np.random.default_rng(7)
    dims = [columns, depth] if transposed else [depth, columns]
    weights, numbers = constant("w", kind, rng.normal(0, 2, dims))
    scale = rng.uniform(0.01, 0.05, [columns] if columns_scaled else []).astype(np.float32)
    constants = [weights, numpy_helper.from_array(scale, "s"), numpy_helper.from_array(np.float32(0.02), "xs")]
    nodes, x = [], "x"
    if activations:
        constants.append(constant("z", kind, np.zeros([]))[0])
        nodes += [helper.make_node("QuantizeLinear", ["x", "xs", "z"], ["q"]),
                  helper.make_node("DequantizeLinear", ["q", "xs", "z"], ["d"])]
        x = "d"
    axis = {"axis": 0 if transposed else 1} if columns_scaled else {}
    nodes += [helper.make_node("DequantizeLinear", ["w", "s"], ["wd"], **axis),
              helper.make_node("Gemm", [x, "wd"], ["m"], transB=int(transposed)), helper.make_node("Relu", ["m"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", depth])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", columns])], constants)
    along = scale.reshape([-1, 1] if transposed else [1, -1]) if columns_scaled else scale
    opset = 23 if kind == TensorProto.FLOAT4E2M1 else 21
    return helper.make_model(graph, ir_version=11 if opset == 23 else 10,
                             opset_imports=[helper.make_opsetid("", opset)]), numbers * along


class Float8(KilnCase):
    def check(self, kind, activations, columns_scaled, transposed):
        made, weights = model(kind, activations, columns_scaled, transposed)
        onnx.save(made, self.path("m.onnx"))
        explained = self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), "--explain").stdout
        self.assertEqual("float8_contractions/float8_dot" in explained, activations)
        for rows in (1, 5, 40):
            x = np.random.default_rng(rows).normal(0, 1, [rows, 48]).astype(np.float32)
            np.save(self.path("x.npy"), x)
            self.kiln("run", self.path("m.kiln"), "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
            if activations:
                want = ort.InferenceSession(made.SerializeToString()).run(None, {"x": x})[0]
            else:
                want = np.maximum(x @ (weights.T if transposed else weights), 0)
            np.testing.assert_allclose(np.load(self.path("out/y.npy")), want, rtol=1e-4, atol=1e-4)

    def test_activations_and_weights(self):
        for kind in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2):
            for columns_scaled in (False, True):
                for transposed in (False, True):
                    with self.subTest(kind=kind, columns_scaled=columns_scaled, transposed=transposed):
                        self.check(kind, True, columns_scaled, transposed)

    def test_weights_alone(self):
        for kind in TYPES:
            for transposed in (False, True):
                with self.subTest(kind=kind, transposed=transposed):
                    self.check(kind, False, True, transposed)


if __name__ == "__main__":
    kiln_case.main()
