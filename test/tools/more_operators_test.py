"""Operators that are made of many others: sampling, unpooling, determinants, recurrent layers with options, trees,
sequences; by kernels of the host against
onnxruntime, or the onnx package where onnxruntime has no such operator."""
import itertools
import os
import unittest

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import kiln_case
from kiln_case import tensor
from operator_case import OperatorCase

rng = np.random.default_rng(11)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def by_onnx(model, feeds):
    evaluator = ReferenceEvaluator(model)
    return dict(zip(evaluator.output_names, evaluator.run(None, feeds)))


class ByOnnxruntime(OperatorCase):
    def test_grid_sample_3d(self):
        x, grid = normal(2, 3, 4, 5, 6), rng.uniform(-1.3, 1.3, (2, 3, 2, 4, 3)).astype(np.float32)
        for mode, pads, corners in itertools.product(("linear", "nearest"), ("zeros", "border", "reflection"), (0, 1)):
            self.check("GridSample", [("x", x), ("g", grid)], domain="", standard=20, mode=mode, padding_mode=pads, align_corners=corners)

    def test_experimental_operators_of_the_first_opsets(self):
        x, old = ("x", normal(2, 3, 6, 5)), {"domain": "", "standard": 9}
        self.check("Affine", [x], **old, alpha=2.0, beta=-0.5)
        self.check("Scale", [x], **old, scale=0.3)
        self.check("ImageScaler", [x], **old, scale=0.5, bias=[0.1, -0.2, 0.3])
        self.check("ParametricSoftplus", [("x", normal(3, 4) * 20)], **old, alpha=0.7, beta=1.3)
        self.check("ScaledTanh", [x], **old, alpha=1.7, beta=0.6)
        self.check("Crop", [x], **old, border=[1, 2, 1, 1])
        self.check("Crop", [x], **old, border=[1, 2, 0, 0], scale=[3, 2])

    def test_quantized_product_with_a_scale_for_each_column(self):
        a, w = rng.integers(0, 256, (2, 3, 6)).astype(np.uint8), rng.integers(-128, 128, (6, 5)).astype(np.int8)
        scales = [("bs", rng.uniform(0.01, 0.1, 5).astype(np.float32)), ("bz", np.zeros(5, np.int8)), ("ys", np.array(0.7, np.float32)), ("yz", np.array(120, np.uint8))]
        inputs = [("a", a), ("as", np.array(0.1, np.float32)), ("az", np.array(128, np.uint8)), ("b", w), *scales]
        self.check("QLinearMatMul", inputs, domain="", standard=10, constants=["b", "bs", "bz"], tolerance=1)

    def test_det(self):
        for n in (1, 2, 5, 9):
            self.check("Det", [("x", normal(4, n, n))], domain="", standard=11, tolerance=1e-3)
        self.check("Det", [("x", np.zeros((3, 3), np.float32))], domain="", standard=11)

    def test_positions_of_maxima(self):
        for shape, kernel, more in (((2, 3, 9, 7), [3, 2], {"strides": [2, 1], "pads": [1, 0, 1, 1]}), ((1, 2, 11), [3], {"dilations": [2]}),
                                    ((1, 2, 5, 6, 7), [2, 2, 2], {"strides": [2, 2, 2], "ceil_mode": 1})):
            self.check("MaxPool", [("x", normal(*shape))], ("y", "i"), domain="", standard=12, kernel_shape=kernel, **more)
        self.check("MaxPool", [("x", normal(1, 2, 6, 6))], ("y", "i"), domain="", standard=12, kernel_shape=[2, 2], strides=[2, 2], storage_order=1)
        self.check("MaxPool", [("x", rng.integers(0, 9, (1, 2, 6, 6)).astype(np.uint8))], ("y", "i"), domain="", standard=12, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def test_max_unpool(self):
        places = np.array([[[[0, 3], [9, 14]]], [[[1, 6], [8, 10]]]], np.int64)
        self.check("MaxUnpool", [("x", normal(2, 1, 2, 2)), ("i", places % 16)], domain="", standard=11, kernel_shape=[2, 2], strides=[2, 2])

    def test_max_roi_pool(self):
        rois = np.array([[0, 0, 0, 5, 6], [1, 2, 1, 9, 4], [0, 3, 3, 3, 3], [1, 4.4, 0.6, 5.2, 20]], np.float32)
        for scale in (1.0, 0.5):
            self.check("MaxRoiPool", [("x", normal(2, 3, 8, 9)), ("r", rois)], domain="", standard=11, pooled_shape=[2, 3], spatial_scale=scale)

    def test_unique_along_an_axis(self):
        x = rng.integers(0, 2, (4, 3, 5)).astype(np.float32)
        for axis, ordered in itertools.product((0, 1, -1), (0, 1)):
            model, feeds = self.model("Unique", [("x", x)], ["y", "first", "inverse", "counts"], domain="", standard=11, axis=axis, sorted=ordered)
            got = {k: v for k, v in self.run_kiln(model, feeds).items()}
            self.agree(self.reference(model, feeds), got, about=f"axis {axis} sorted {ordered}")

    def test_ngrams(self):
        x = rng.integers(0, 4, (3, 12)).astype(np.int64)
        pool = dict(pool_int64s=[2, 3, 1, 0, 1, 1, 2, 0, 3, 3, 2, 1], ngram_counts=[0, 4], ngram_indexes=[5, 0, 2, 7, 1, 3, 4, 6])
        for mode, skip, lengths in itertools.product(("TF", "IDF", "TFIDF"), (0, 2), ((1, 1), (1, 2), (2, 2))):
            self.check("TfIdfVectorizer", [("x", x)], domain="", standard=9, mode=mode, max_skip_count=skip, min_gram_length=lengths[0], max_gram_length=lengths[1],
                       weights=[float(v) for v in range(1, 9)], **pool)
        self.check("TfIdfVectorizer", [("x", x[0])], domain="", standard=9, mode="TF", max_skip_count=0, min_gram_length=2, max_gram_length=2, **pool)

    def layer(self, op, gates, directions, peepholes=False, lengths=None, recurrence=1, **attributes):
        steps, batch, features, hidden = 5, 3, 4, 6
        inputs = [("x", normal(steps, batch, features)), ("w", normal(directions, gates * hidden, features)), ("r", recurrence * normal(directions, gates * hidden, hidden)),
                  ("b", normal(directions, 2 * gates * hidden)), lengths is not None and ("l", np.array(lengths, np.int32)), ("h", normal(directions, batch, hidden))]
        outputs = ["y", "yh"]
        if op == "LSTM":
            inputs += [("c", normal(directions, batch, hidden)), peepholes and ("p", normal(directions, 3 * hidden))]
            outputs.append("yc")
        while not inputs[-1]:
            inputs.pop()
        way = {1: "forward", 2: "bidirectional"}[directions]
        self.check(op, inputs, outputs, domain="", standard=14, hidden_size=hidden, **{"direction": way, **attributes})

    def test_recurrent_layers_with_options(self):
        self.layer("LSTM", 4, 1, peepholes=True)
        self.layer("LSTM", 4, 2, peepholes=True, clip=0.7)
        self.layer("LSTM", 4, 1, input_forget=1, activations=["HardSigmoid", "Softsign", "Relu"])
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            for way in ("forward", "reverse", "bidirectional"):
                self.layer(op, gates, 2 if way == "bidirectional" else 1, lengths=[5, 2, 3], direction=way)
        self.layer("GRU", 3, 1, activations=["Sigmoid", "LeakyRelu"], activation_alpha=[0.3], linear_before_reset=1)
        self.layer("GRU", 3, 2, activations=["Sigmoid", "Elu", "HardSigmoid", "Tanh"], activation_alpha=[0.7, 0.3], activation_beta=[0.4], clip=1.5)
        # Small weights of the state: Softplus has no upper bound, and onnxruntime's is infinite from 89 on (it computes log1p(exp(x))).
        self.layer("RNN", 1, 1, recurrence=np.float32(0.2), activations=["Softplus"])

    def test_deform_conv(self):
        for groups, offset_groups, mask, bias in ((1, 1, True, True), (2, 1, False, True), (2, 4, True, False)):
            height, width = 4, 3  # of the result
            inputs = [("x", normal(2, 4, 5, 5)), ("w", normal(6, 4 // groups, 2, 3)), ("o", normal(2, offset_groups * 12, height, width)),
                      bias and ("b", normal(6)), mask and ("m", normal(2, offset_groups * 6, height, width))]
            while not inputs[-1]:
                inputs.pop()
            model, feeds = self.model("DeformConv", inputs, ["y"], domain="", standard=19, group=groups, offset_group=offset_groups, strides=[1, 2], pads=[0, 1, 0, 2],
                                      dilations=[1, 1], kernel_shape=[2, 3])
            self.agree(by_onnx(model, feeds), self.run_kiln(model, feeds), about=f"{groups} groups, {offset_groups} offset groups")

    def test_bernoulli_and_multinomial(self):
        chances = np.tile(np.array([0, 0.25, 0.75, 1], np.float32), (5000, 1))
        model, feeds = self.model("Bernoulli", [("x", chances)], ["y"], domain="", standard=15, seed=3.0)
        drawn = self.run_kiln(model, feeds)["y"]
        self.assertEqual(set(np.unique(drawn)), {0, 1})
        np.testing.assert_allclose(drawn.mean(0), [0, 0.25, 0.75, 1], atol=0.03)
        shares = np.array([[0.1, 0.6, 0.3], [0, 0, 1]], np.float32)
        model, feeds = self.model("Multinomial", [("x", np.log(shares + 1e-30))], ["y"], domain="", standard=7, sample_size=8000, seed=2.0)
        drawn = self.run_kiln(model, feeds)["y"]
        self.assertEqual(drawn.dtype, np.int32)
        for row, share in zip(drawn, shares):
            np.testing.assert_allclose(np.bincount(row, minlength=3) / 8000, share, atol=0.03)


class OpenImages(OperatorCase):
    """Windows over images of open size: with auto_pad and strides, the padding follows from the size when the model runs."""

    def check_images(self, op, image, more_inputs=(), tolerance=1e-4, standard=19, outputs=("y",), **attributes):
        model, feeds = self.model(op, [("x", image), *more_inputs], list(outputs), domain="", standard=standard, constants=[n for n, _ in more_inputs], **attributes)
        for axis, size in ((2, "height"), (3, "width")):
            model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = size
        for height, width in ((7, 8), (8, 9), (5, 6)):
            feeds["x"] = np.resize(image, (*image.shape[:2], height, width))
            self.agree(self.reference(model, feeds), self.run_kiln(model, feeds), tolerance, f"{op} {attributes} {height}x{width}")

    def test_average_pool(self):
        for pads, counted in itertools.product(("SAME_UPPER", "SAME_LOWER"), (0, 1)):
            self.check_images("AveragePool", normal(2, 3, 7, 8), kernel_shape=[3, 4], strides=[2, 3], auto_pad=pads, count_include_pad=counted)

    def test_positions_of_maxima(self):
        for more in ({"kernel_shape": [2, 2], "strides": [2, 2]}, {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}, {"kernel_shape": [2, 3], "strides": [3, 2], "ceil_mode": 1},
                     {"kernel_shape": [2, 2], "strides": [2, 2], "storage_order": 1}):
            self.check_images("MaxPool", normal(2, 3, 7, 8), standard=12, outputs=("y", "i"), **more)

    def test_max_roi_pool(self):
        rois = np.array([[0, 0, 0, 5, 6], [1, 2, 1, 9, 4], [0, 3, 3, 3, 3], [1, 4.4, 0.6, 5.2, 20]], np.float32)
        self.check_images("MaxRoiPool", normal(2, 3, 7, 8), [("rois", rois)], pooled_shape=[2, 3], spatial_scale=0.5)

    def test_lp_pool(self):
        self.check_images("LpPool", normal(1, 2, 7, 8), standard=18, kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER", p=2)

    def test_transposed_convolution(self):
        for pads, kernel, strides in itertools.product(("SAME_UPPER", "SAME_LOWER"), ((3, 3), (4, 2)), ((2, 2), (1, 2))):
            self.check_images("ConvTranspose", normal(1, 3, 7, 8), [("w", normal(3, 2, *kernel))], kernel_shape=kernel, strides=strides, auto_pad=pads)

    def test_quantized_convolution(self):
        image = rng.integers(0, 256, (1, 3, 7, 8)).astype(np.uint8)
        weights = [("xs", np.array(0.1, np.float32)), ("xz", np.array(100, np.uint8)), ("w", rng.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8)), ("ws", np.array(0.02, np.float32)),
                   ("wz", np.array(0, np.int8)), ("ys", np.array(3, np.float32)), ("yz", np.array(128, np.uint8))]
        self.check_images("QLinearConv", image, weights, 1, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")


class Quotients(OperatorCase):
    def test_quotients_that_become_integers(self):
        """Flat positions become rows of 41 columns: 41 / 41 must not be less than 1."""
        nodes = [helper.make_node("Div", ["x", "columns"], ["q"]), helper.make_node("Floor", ["q"], ["row"]), helper.make_node("Relu", ["q"], ["r"]), helper.make_node("Cast", ["r"], ["index"], to=TensorProto.INT64),
                 helper.make_node("GreaterOrEqual", ["q", "one"], ["later"])]
        constants = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("columns", 41), ("one", 1))]
        for size in ("N", 5000):
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size])], [helper.make_empty_tensor_value_info(o) for o in ("row", "index", "later")], constants)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
            feeds = {"x": np.arange(5000, dtype=np.float32)}
            self.agree(self.reference(model, feeds), self.run_kiln(model, feeds), 1e-6)


class SizesThatMustBeEqual(OperatorCase):
    """Sizes with different names that an operator needs to be equal are checked when the model runs."""

    def named(self, op, inputs, names, **more):
        model, feeds = self.model(op, inputs, ["y"], domain="", **more)
        for given in model.graph.input:
            for axis, name in names[given.name].items():
                given.type.tensor_type.shape.dim[axis].dim_param = name
        return model, feeds

    def test_boxes_and_scores(self):
        corners = rng.random((2, 9, 2)).astype(np.float32)
        inputs = [("b", np.concatenate([corners, corners + 0.4], 2)), ("s", rng.random((2, 3, 9)).astype(np.float32)), ("most", np.array([4], np.int64)), ("overlap", np.array([0.3], np.float32))]
        model, feeds = self.named("NonMaxSuppression", inputs, {"b": {0: "images", 1: "boxes"}, "s": {0: "rows", 2: "columns"}}, standard=11, constants=["most", "overlap"])
        self.agree(self.reference(model, feeds), self.run_kiln(model, feeds))

    def test_matrices(self):
        model, feeds = self.named("Det", [("x", normal(4, 3, 3))], {"x": {0: "batch", 1: "rows"}}, standard=11)
        self.agree(self.reference(model, feeds), self.run_kiln(model, feeds), 1e-3)


class ArgumentsThatAreData(OperatorCase):
    """Arguments that other operators need at import, here inputs of the model."""

    def test_the_axis_of_a_sum(self):
        for op, standard, axis in itertools.product(("CumSum", "CumProd"), (26,), (0, 1, -1, -3)):
            if op == "CumSum":
                standard = 14
            model, feeds = self.model(op, [("x", normal(3, 4, 5)), ("axis", np.array(axis, np.int32))], ["y"], domain="", standard=standard, exclusive=1)
            self.agree(by_onnx(model, feeds), self.run_kiln(model, feeds), about=f"{op} {axis}")

    def test_the_value_of_a_pad(self):
        for dtype, value in ((np.float32, -1.5), (np.int64, (1 << 60) + 1), (bool, True)):
            x = normal(3, 4).astype(dtype)
            model, feeds = self.model("Pad", [("x", x), ("pads", np.array([1, -1, 0, 2], np.int64)), ("v", np.array(value, dtype))], ["y"], domain="", standard=18, constants=["pads"])
            self.agree(self.reference(model, feeds), self.run_kiln(model, feeds), about=f"{dtype}")

    def test_a_range_of_floats_up_to_a_size(self):
        scalar = {"start": 0.5, "half": 2.0, "step": 0.25}
        nodes = [helper.make_node("Shape", ["x"], ["size"], start=1, end=2), helper.make_node("Cast", ["size"], ["real"], to=TensorProto.FLOAT), helper.make_node("Squeeze", ["real"], ["width"]),
                 helper.make_node("Div", ["width", "half"], ["limit"]), helper.make_node("Range", ["start", "limit", "step"], ["y"])]
        constants = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in scalar.items()]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "W"])], [helper.make_empty_tensor_value_info("y")], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        for width in (1, 2, 9, 10):
            feeds = {"x": np.zeros((1, width), np.float32)}
            self.agree(self.reference(model, feeds), self.run_kiln(model, feeds), about=f"width {width}")

    def test_the_size_of_a_window(self):
        for op, size, periodic in itertools.product(("HannWindow", "HammingWindow", "BlackmanWindow"), (3, 11), (0, 1)):
            model, feeds = self.model(op, [("size", np.array(size, np.int64))], ["y"], domain="", standard=17, periodic=periodic)
            self.agree(by_onnx(model, feeds), self.run_kiln(model, feeds), 1e-5, f"{op} {size} {periodic}")


class ByOnnx(OperatorCase):
    reference = staticmethod(by_onnx)

    def test_bits(self):
        for source, target in ((np.float32, TensorProto.INT32), (np.int64, TensorProto.DOUBLE), (np.uint16, TensorProto.FLOAT16), (np.int8, TensorProto.UINT8)):
            x = rng.integers(0, 100, (3, 5)).astype(source)
            self.check("BitCast", [("x", x)], domain="", standard=26, to=target)

    def test_optimizers(self):
        pairs = [("r", np.array(0.1, np.float32)), ("t", np.array(3, np.int64)), *((n, normal(4, 3)) for n in ("x1", "x2", "g1", "g2", "v1", "v2"))]
        domain = "ai.onnx.preview.training"
        for mode in ("standard", "nesterov"):
            self.check("Momentum", pairs, ["x3", "x4", "v3", "v4"], domain=domain, alpha=0.9, beta=1.1, mode=mode, norm_coefficient=0.01)
        squares = pairs[:6] + [("h1", abs(normal(4, 3))), ("h2", abs(normal(4, 3)))]
        self.check("Adagrad", squares, ["x3", "x4", "h3", "h4"], domain=domain, norm_coefficient=0.01, epsilon=1e-5, decay_factor=0.1)
        self.check("Adam", pairs + squares[6:], ["x3", "x4", "v3", "v4", "h3", "h4"], domain=domain, norm_coefficient=0.01, norm_coefficient_post=0.02, alpha=0.95, beta=0.8)


class StorageTypes(OperatorCase):
    """Floats of 8 bits go through kernels; numpy files hold their bits."""

    def test_casts_there_and_back(self):
        x = np.concatenate([normal(500) * s for s in (1e-3, 1, 30, 1e4)] + [np.array([0, np.inf, -np.inf, np.nan], np.float32)])
        kinds = {TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz, TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz, TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
                 TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2}
        for kind, dtype in kinds.items():
            nodes = [helper.make_node("Cast", ["x"], ["y"], to=kind, saturate=0), helper.make_node("Cast", ["z"], ["w"], to=TensorProto.FLOAT)]
            codes = np.arange(256, dtype=np.uint8)
            path = self.save("m.onnx", nodes, [tensor("x", x.shape), tensor("z", [256], kind)], [tensor("y", x.shape, kind), tensor("w", [256])], opset=21)
            self.kiln("compile", path, "-o", self.path("m.kiln"))
            np.save(self.path("x.npy"), x)
            np.save(self.path("z.npy"), codes)
            self.kiln("run", self.path("m.kiln"), "--quiet", "--output-dir", self.path("out"), "--input", f"x={self.path('x.npy')}", "--input", f"z={self.path('z.npy')}")
            with np.errstate(invalid="ignore"):
                want = x.astype(dtype)
            np.testing.assert_array_equal(np.load(self.path("out/y.npy")).view(dtype).astype(np.float32), want.astype(np.float32))
            np.testing.assert_array_equal(np.load(self.path("out/w.npy")), codes.view(dtype).astype(np.float32))

    def test_packed_inputs_are_files_of_bytes(self):
        values = {TensorProto.INT2: np.array([-2, -1, 0, 1, 1], np.int8), TensorProto.UINT2: np.array([0, 1, 2, 3, 1], np.uint8),
                  TensorProto.INT4: np.array([-8, 7, 0, 1, -1], np.int8), TensorProto.FLOAT4E2M1: np.array([0, 1, 7, 9, 15], np.uint8)}
        for kind, given in values.items():
            path = self.save("m.onnx", [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], [tensor("x", [5], kind)], [tensor("y", [5])], opset=25)
            self.kiln("compile", path, "-o", self.path("m.kiln"))
            np.save(self.path("x.npy"), given)
            self.kiln("run", self.path("m.kiln"), "--quiet", "--output-dir", self.path("out"), "--input", f"x={self.path('x.npy')}")
            want = given.view(ml_dtypes.float4_e2m1fn).astype(np.float32) if kind == TensorProto.FLOAT4E2M1 else given.astype(np.float32)
            np.testing.assert_array_equal(np.load(self.path("out/y.npy")), want)
        np.save(self.path("x.npy"), np.array([0, 1, 2, 3, 4], np.uint8))
        path = self.save("m.onnx", [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], [tensor("x", [5], TensorProto.UINT2)], [tensor("y", [5])], opset=25)
        self.kiln("compile", path, "-o", self.path("m.kiln"))
        self.assertIn("u2 takes 0 to 3", self.error_line(self.kiln("run", self.path("m.kiln"), "--input", f"x={self.path('x.npy')}", code=2)))

    def test_packed_outputs_are_files_of_bytes(self):
        x = np.array([1, -2, 0, -1, 1], np.float32)
        np.save(self.path("x.npy"), x)
        for kind, dtype in [(TensorProto.INT2, np.int8), (TensorProto.INT4, np.int8)]:
            path = self.save("m.onnx", [helper.make_node("Cast", ["x"], ["y"], to=kind)], [tensor("x", [5])], [tensor("y", [5], kind)], opset=25)
            self.kiln("compile", path, "-o", self.path("m.kiln"))
            self.kiln("run", self.path("m.kiln"), "--quiet", "--output-dir", self.path("out"), "--input", f"x={self.path('x.npy')}")
            y = np.load(self.path("out/y.npy"))
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_array_equal(y, x)


class Sequences(OperatorCase):
    def model_of_a_sequence(self):
        x = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
        nodes = [helper.make_node("SequenceAt", ["x", "last"], ["a"]), helper.make_node("SequenceErase", ["x", "first"], ["rest"]),
                 helper.make_node("SequenceInsert", ["rest", "a", "first"], ["s"]), helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)]
        graph = helper.make_graph(nodes, "g", [x], [tensor("y", [None, 3]), helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("first", 0), ("last", -1))])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.path("m.onnx"))

    def test_inputs_and_outputs(self):
        self.model_of_a_sequence()
        line = self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3))
        self.assertIn("--sequence x=", line)
        self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), "--sequence", "x=[2,3][1,3][4,3]")
        parts = [normal(2, 3), normal(1, 3), normal(4, 3)]
        given = []
        for i, part in enumerate(parts):
            np.save(self.path(f"x{i}.npy"), part)
            given += ["--input", f"x.{i}={self.path(f'x{i}.npy')}"]
        self.kiln("run", self.path("m.kiln"), "--quiet", "--output-dir", self.path("out"), *given)
        want = [parts[2], parts[1], parts[2]]
        np.testing.assert_array_equal(np.load(self.path("out/y.npy")), np.concatenate(want))
        for i, part in enumerate(want):
            np.testing.assert_array_equal(np.load(self.path(f"out/s.{i}.npy")), part)

    def test_wrong_specifications(self):
        self.model_of_a_sequence()
        for text in ("x", "x=2,3", "x=[2,]", "x=[a]", "z=[1]"):
            line = self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), "--sequence", text, code=2))
            self.assertIn("--sequence", line)


class Supplied(OperatorCase):
    def test_verify_needs_every_input_of_a_folder(self):
        path = self.save("m.onnx", [helper.make_node("Add", ["a", "b"], ["y"])], [tensor("a", [3]), tensor("b", [3])], [tensor("y", [3])])
        line = self.error_line(self.kiln("verify", path, "--inputs", self.path("nowhere"), code=3))
        self.assertIn("is not a folder", line)
        os.mkdir(self.path("data"))
        np.save(self.path("data/a.npy"), normal(3))
        self.assertIn("lacks input 'b'", self.error_line(self.kiln("verify", path, "--inputs", self.path("data"), code=3)))
        np.save(self.path("b.npy"), normal(3))
        self.kiln("verify", path, "--inputs", self.path("data"), "--input", f"b={self.path('b.npy')}")


if __name__ == "__main__":
    kiln_case.main()
