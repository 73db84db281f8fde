"""TopK and CumSum of open sizes: compiled once, right at every size beside onnxruntime, and finalized for GPUs."""
import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor

SIZES = [{"b": 4, "s": 5}, {"b": 5, "s": 7}, {"b": 17, "s": 700}, {"b": 6, "s": 1500}]
rng = np.random.default_rng(1)


class OpenOrders(KilnCase):
    def check(self, operator, dims, kind, constant, outputs, **attributes):
        with self.subTest(operator=operator, dims=dims, **attributes):
            values = [helper.make_tensor_value_info(o, T.INT64 if o == "i" else kind, None) for o in outputs]
            model = self.save("m.onnx", [helper.make_node(operator, ["x", "c"], outputs, **attributes)], [tensor("x", dims, kind)], values, [numpy_helper.from_array(np.array(constant, np.int64), "c")])
            file = self.compiled(model)
            shown = self.json("inspect", file)
            self.assertEqual((shown["missing_forms"], shown["gpu_missing_forms"]), ({}, {}))
            for count, sizes in enumerate(SIZES):
                shape = [sizes.get(d, d) for d in dims]
                x = rng.integers(-50, 50, shape) if kind == T.INT64 else rng.standard_normal(shape)
                x = x.astype(helper.tensor_dtype_to_np_dtype(kind))
                np.save(self.path("x.npy"), x)
                done = self.json("run", file, "--input", f"x={self.path('x.npy')}", "--specialize", "off", "--output-dir", self.path("out"))
                self.assertTrue(count == 0 or done["cache"]["misses"] == 0, sizes)
                for output, want in zip(outputs, onnxruntime.InferenceSession(model).run(None, {"x": x})):
                    np.testing.assert_allclose(np.load(self.path(f"out/{output}.npy")), want, rtol=1e-4, atol=1e-3, err_msg=f"{output} {shape}")
            for target in ("sm_90", "gfx942"):
                self.kiln("finalize", file, "--target", target, "-o", self.path("objects"), "--specialize", "off", "--dim", "b=7", "--dim", "s=90")

    def test_top_k(self):
        for dims, kind, k, axis, largest in [(["b", "s"], T.FLOAT, 3, 1, 1), (["b", "s", 4], T.FLOAT, 2, 1, 0), (["s", "b"], T.FLOAT, 4, 0, 1), (["b", "s"], T.INT64, 3, -1, 1), (["b", 3, "s"], T.FLOAT, 1, 1, 1)]:
            self.check("TopK", dims, kind, [k], ["y", "i"], axis=axis, largest=largest)

    def test_cumulative_sum(self):
        for dims, kind, axis, reverse, exclusive in [(["b", "s"], T.FLOAT, 1, 0, 0), (["b", "s", 5], T.FLOAT, 1, 1, 0), (["s", "b"], T.FLOAT, 0, 0, 1), (["b", "s"], T.INT64, 1, 1, 1), (["b", 6, "s"], T.DOUBLE, 1, 0, 0)]:
            self.check("CumSum", dims, kind, axis, ["y"], reverse=reverse, exclusive=exclusive)


if __name__ == "__main__":
    kiln_case.main()
