"""Resize with weights (antialias, crops) of images whose sizes are open, beside onnxruntime and beside the same model
with fixed sizes."""
import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor


class OpenResize(KilnCase):
    def model(self, sizes=None, scales=None, roi=None, **attributes):
        given = {"roi": roi and np.array(roi, np.float32), "scales": scales and np.array(scales, np.float32), "sizes": sizes and np.array(sizes, np.int64)}
        inputs = [name if given[name] is not None else "" for name in ("roi", "scales", "sizes")]
        return self.save("m.onnx", [helper.make_node("Resize", ["x", *inputs], ["y"], **attributes)], [tensor("x", [1, 2, "H", "W"])], [helper.make_tensor_value_info("y", T.FLOAT, None)],
                         [numpy_helper.from_array(a, n) for n, a in given.items() if a is not None], opset=19)

    def agrees(self, images, by_runtime=True, **what):
        model = self.model(**what)
        self.kiln("compile", model, "-o", self.path("open.kiln"))
        for h, w in images:
            x = np.random.default_rng(h * w).standard_normal((1, 2, h, w)).astype(np.float32)
            np.save(self.path("x.npy"), x)
            if by_runtime:
                want = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
            else:
                self.kiln("compile", model, "-o", self.path("fixed.kiln"), "--dim", f"H={h}", "--dim", f"W={w}")
                want = self.result("fixed.kiln")
            np.testing.assert_allclose(self.result("open.kiln"), want, rtol=1e-4, atol=1e-5, err_msg=f"{what} {h} x {w}")

    def result(self, file):
        self.kiln("run", self.path(file), "--input", "x=" + self.path("x.npy"), "--output-dir", self.path("out"))
        return np.load(self.path("out/y.npy"))

    def test_antialias(self):
        for mode in ("linear", "cubic"):
            with self.subTest(mode=mode):
                self.agrees([(30, 17), (6, 40)], sizes=[1, 2, 8, 9], mode=mode, antialias=1)
        self.agrees([(30, 17)], scales=[1, 1, 0.4, 0.5], mode="cubic", antialias=1, cubic_coeff_a=-0.5, exclude_outside=1)

    def test_coordinates(self):
        for coordinates in ("asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"):
            with self.subTest(coordinates=coordinates):
                self.agrees([(11, 20)], by_runtime=False, sizes=[1, 2, 6, 30], mode="cubic", antialias=1, coordinate_transformation_mode=coordinates)

    def test_aspect_ratio(self):
        for policy in ("not_larger", "not_smaller"):
            for mode, coordinates in (("linear", "half_pixel"), ("nearest", "asymmetric")):
                with self.subTest(policy=policy, mode=mode):
                    self.agrees([(30, 17), (12, 12), (9, 12), (15, 44)], sizes=[10, 14], axes=[2, 3], keep_aspect_ratio_policy=policy, mode=mode, coordinate_transformation_mode=coordinates,
                                nearest_mode="floor")

    def test_scales_computed_from_the_image(self):
        for mode, coordinates in (("linear", "half_pixel"), ("nearest", "asymmetric"), ("cubic", "pytorch_half_pixel"), ("linear", "align_corners")):
            nodes = [helper.make_node("Shape", ["x"], ["shape"], start=2), helper.make_node("Cast", ["shape"], ["real"], to=T.FLOAT), helper.make_node("ReduceMin", ["real"], ["least"], keepdims=1),
                     helper.make_node("Div", ["wanted", "least"], ["scale"]), helper.make_node("Concat", ["ones", "scale", "scale"], ["scales"], axis=0),
                     helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor")]
            constants = [numpy_helper.from_array(np.array(a, np.float32), n) for n, a in (("wanted", [12]), ("ones", [1, 1]))]
            model = self.save("m.onnx", nodes, [tensor("x", [1, 2, "H", "W"])], [helper.make_tensor_value_info("y", T.FLOAT, None)], constants, opset=19)
            self.kiln("compile", model, "-o", self.path("open.kiln"))
            for h, w in ((30, 17), (12, 12), (7, 31), (15, 44)):
                with self.subTest(mode=mode, coordinates=coordinates, h=h, w=w):
                    x = np.random.default_rng(h * w).standard_normal((1, 2, h, w)).astype(np.float32)
                    np.save(self.path("x.npy"), x)
                    np.testing.assert_allclose(self.result("open.kiln"), onnxruntime.InferenceSession(model).run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)

    def test_crops(self):
        crop = {"roi": [0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1], "sizes": [1, 2, 7, 5], "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}
        self.agrees([(12, 9)], mode="linear", **crop)
        self.agrees([(12, 9)], by_runtime=False, mode="nearest", **crop)
        self.agrees([(12, 9)], by_runtime=False, sizes=[1, 2, 7, 5], mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn")


if __name__ == "__main__":
    kiln_case.main()
