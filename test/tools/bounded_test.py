"""Results whose size depends on data (NonZero, Unique, NonMaxSuppression, Compress) beside onnxruntime."""
import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase

node = helper.make_node


def constants(**arrays):
    return [numpy_helper.from_array(a, name) for name, a in arrays.items()]


class Counted(KilnCase):
    def agrees(self, nodes, inputs, outputs, initializers=(), options=(), tolerance=1e-5):
        """Compiles, runs and verifies; returns the shapes that `run` tells."""
        model = self.save("m.onnx", nodes, [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()],
                          [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()], initializers)
        wanted = onnxruntime.InferenceSession(model).run(list(outputs), inputs)
        given = []
        for name, array in inputs.items():
            np.save(self.path(f"{name}.npy"), array)
            given += ["--input", f"{name}={self.path(name + '.npy')}"]
        self.kiln("compile", model, "-o", self.path("m.kiln"), *options)
        told = self.json("run", self.path("m.kiln"), "--output-dir", self.path("out"), *given)["outputs"]
        for name, want in zip(outputs, wanted):
            got = np.load(self.path(f"out/{name}.npy"))
            self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype), name)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        if not options:
            self.assertTrue(self.json("verify", model, "--per-kernel", *given)["ok"])
        return {row["name"]: row["shape"] for row in told}

    def sparse(self, dtype=np.float32):
        rng = np.random.default_rng(0)
        return ((rng.random((5, 7, 3)) > 0.6) * rng.integers(1, 9, (5, 7, 3))).astype(dtype)

    def test_non_zero(self):
        for dtype in (np.float32, np.int32, np.int64, np.bool_, np.uint8, np.float16):
            with self.subTest(dtype=dtype):
                x = self.sparse(dtype)
                shapes = self.agrees([node("NonZero", ["x"], ["y"])], {"x": x}, {"y": T.INT64})
                self.assertEqual(shapes, {"y": f"i64[3, {np.count_nonzero(x)}]", "y.count": "i64[1]"})

    def test_what_follows(self):
        nodes = [node("NonZero", ["x"], ["i"]), node("Transpose", ["i"], ["t"], perm=[1, 0]), node("GatherND", ["x", "t"], ["v"]), node("Exp", ["v"], ["e"]), node("Shape", ["e"], ["s"]),
                 node("Cast", ["t"], ["f"], to=T.FLOAT), node("MatMul", ["f", "w"], ["p"]), node("Softmax", ["p"], ["z"], axis=1)]
        w = constants(w=np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32))
        for x in (self.sparse(), np.zeros((5, 7, 3), np.float32)):
            self.agrees(nodes, {"x": x}, {"e": T.FLOAT, "s": T.INT64, "z": T.FLOAT}, w)

    # What is scattered is computed for the elements that there are; the branch around the rest must not change them.
    def test_scattered_computations(self):
        rng = np.random.default_rng(11)
        nodes = [node("NonZero", ["x"], ["i"]), node("Transpose", ["i"], ["t"], perm=[1, 0]), node("GatherND", ["x", "t"], ["v"])]
        for k, kind in enumerate(("Exp", "Sin", "Tanh", "Sigmoid", "Cos", "Erf", "Softplus", "Sqrt")):
            nodes.append(node(kind, ["v" if k == 0 else f"v{k - 1}"], [f"v{k}"]))
        nodes += [node("Gather", ["i", "first"], ["rows"], axis=0), node("ScatterElements", ["zeros", "rows", "v7"], ["y"], axis=0),
                  node("ScatterElements", ["zeros", "rows", "v7"], ["z"], axis=0, reduction="add")]
        given = constants(first=np.int64(0), zeros=rng.standard_normal(70).astype(np.float32))
        for chance in (0, 0.05, 0.5, 1):
            x = np.where(rng.random(70) < chance, rng.uniform(0.5, 2, 70), 0).astype(np.float32)
            self.agrees(nodes, {"x": x}, {"y": T.FLOAT, "z": T.FLOAT}, given)

    def test_unique(self):
        x = np.random.default_rng(2).integers(-4, 5, (6, 9))
        for dtype, sorted_ in ((np.float32, 0), (np.float32, 1), (np.int64, 1), (np.int8, 0)):
            with self.subTest(dtype=dtype, sorted=sorted_):
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
                shapes = self.agrees([node("Unique", ["x"], ["y", "first", "inverse", "counts"], sorted=sorted_)], {"x": x.astype(dtype)},
                                     {"y": kind, "first": T.INT64, "inverse": T.INT64, "counts": T.INT64})
                self.assertEqual(list(shapes), ["y", "first", "inverse", "counts", "y.count"])

    def test_compress(self):
        keep = np.random.default_rng(3).random(105) > 0.5
        self.agrees([node("Compress", ["x", "q"], ["y"])], {"x": self.sparse(), "q": keep}, {"y": T.FLOAT})
        self.agrees([node("Compress", ["x", "q"], ["y"], axis=1)], {"x": self.sparse(), "q": keep[:7]}, {"y": T.FLOAT})

    def test_one_mask_for_several_tensors(self):
        rng = np.random.default_rng(8)
        inputs = {"b": rng.random((30, 4)).astype(np.float32), "s": rng.random((30, 1)).astype(np.float32), "q": rng.random(30) > 0.5}
        nodes = [node("Compress", ["b", "q"], ["kept"], axis=0), node("NonZero", ["q"], ["i"]), node("Transpose", ["i"], ["t"]), node("GatherND", ["s", "t"], ["scores"]),
                 node("Concat", ["kept", "scores"], ["y"], axis=1)]
        self.agrees(nodes, inputs, {"y": T.FLOAT})
        long = {"b": inputs["b"], "q": np.concatenate([inputs["q"], np.ones(3, np.bool_)])}
        self.agrees([node("Compress", ["b", "q"], ["y"], axis=0)], long, {"y": T.FLOAT})

    def test_limits_of_non_max_suppression(self):
        rng = np.random.default_rng(9)
        inputs = {"b": rng.random((1, 20, 4)).astype(np.float32), "s": (-3.2e38 * rng.random((1, 2, 20))).astype(np.float32)}
        most = constants(most=np.array([2**63 - 1], np.int64), overlap=np.array([0.5], np.float32))
        self.agrees([node("NonMaxSuppression", ["b", "s", "most", "overlap"], ["y"])], inputs, {"y": T.INT64}, most)
        for boxes, scores, overlap in [([1, 20, 5], [1, 2, 20], 0.5), ([1, 20, 4], [1, 2, 21], 0.5), ([2, 20, 4], [1, 2, 20], 0.5), ([1, 20, 4], [1, 2, 20], 1.5)]:
            model = self.save("m.onnx", [node("NonMaxSuppression", ["b", "s", "most", "overlap"], ["y"])], [helper.make_tensor_value_info("b", T.FLOAT, boxes), helper.make_tensor_value_info("s", T.FLOAT, scores)],
                              [helper.make_tensor_value_info("y", T.INT64, None)], constants(most=np.array([2], np.int64), overlap=np.array([overlap], np.float32)))
            self.assertIn("NonMaxSuppression", self.error_line(self.kiln("compile", model, "-o", self.path("m.kiln"), code=3)))

    def test_the_end_of_a_detector(self):
        """The boxes that are left and their scores, as detectors are exported."""
        rng = np.random.default_rng(4)
        boxes = rng.random((2, 50, 4)).astype(np.float32)
        boxes[..., 2:] = boxes[..., :2] + 0.5 * boxes[..., 2:]
        inputs = {"b": boxes, "s": rng.random((2, 3, 50)).astype(np.float32)}
        nodes = [node("NonMaxSuppression", ["b", "s", "most", "overlap", "score"], ["y"]), node("Gather", ["y", "zero"], ["image"], axis=1), node("Gather", ["y", "two"], ["box"], axis=1),
                 node("Concat", ["image", "box"], ["where"], axis=1), node("GatherND", ["b", "where"], ["kept"]), node("GatherND", ["s", "y"], ["scores"]),
                 node("Unsqueeze", ["scores", "one"], ["column"]), node("Concat", ["kept", "column"], ["found"], axis=1)]
        numbers = constants(most=np.array([20], np.int64), overlap=np.array([0.3], np.float32), score=np.array([0.5], np.float32), zero=np.array([0], np.int64), one=np.array([1], np.int64),
                            two=np.array([2], np.int64))
        shapes = self.agrees(nodes, inputs, {"found": T.FLOAT, "y": T.INT64}, numbers)
        self.assertNotEqual(shapes["y"], "i64[120, 3]", "some boxes are dropped")
        self.agrees(nodes, inputs, {"found": T.FLOAT}, numbers, ["--fp16"], 1e-2)

    def test_what_combines_places_is_masked(self):
        nodes = [node("Compress", ["x", "q"], ["v"], axis=0)]
        nodes += [node(f"Reduce{kind}", ["v"], [kind], axes=[0, 2], keepdims=0) for kind in ("Max", "Min", "Mean")]
        nodes += [node("Softmax", ["v"], ["soft"], axis=0), node("ReduceSum", ["v", "zero"], ["Sum"], keepdims=1)]
        keep = np.random.default_rng(5).random(40) > 0.5
        x = np.random.default_rng(6).standard_normal((40, 7, 3)).astype(np.float32)
        self.agrees(nodes, {"x": x, "q": keep}, {name: T.FLOAT for name in ("Max", "Min", "Mean", "soft", "Sum")}, constants(zero=np.array([0], np.int64)))

    def test_the_end_of_a_torch_detector(self):
        """Candidates by score, the best of each class, boxes moved apart by class, an If for the case that nothing is
        left: as torchvision exports it."""
        rng = np.random.default_rng(11)
        boxes = rng.random((30, 4)).astype(np.float32) * 20
        boxes[:, 2:] += boxes[:, :2]
        numbers = constants(threshold=np.float32(0.6), zero=np.array([0], np.int64), five=np.array([5], np.int64), flat=np.array([-1], np.int64), last=np.array([2], np.int64), one=np.array([1], np.int64), none=np.int64(0),
                            unit=np.float32(1), all=np.array([2**63 - 1], np.int64), overlap=np.array([0.4], np.float32), seven=np.array([7], np.int64))
        nodes, parts = [], []
        for c in range(2):
            names = {k: f"{k}{c}" for k in ("column", "score", "above", "i", "t", "s", "b", "size", "both", "k", "best", "order", "kept", "shape", "label")}
            at = names.get
            numbers += constants(**{at("column"): np.int64(c)}) + constants(**{f"label_value{c}": np.array([c], np.int64)})
            nodes += [node("Gather", ["scores", at("column")], [at("score")], axis=1), node("Greater", [at("score"), "threshold"], [at("above")]), node("NonZero", [at("above")], [at("i")]), node("Transpose", [at("i")], [at("t")], perm=[1, 0]),
                      node("GatherND", [at("score"), at("t")], [at("s")]), node("GatherND", ["boxes", at("t")], [at("b")]), node("Shape", [at("s")], [at("size")]), node("Concat", [at("size"), "five"], [at("both")], axis=0),
                      node("ReduceMin", [at("both")], [at("k") + "_"], keepdims=0), node("Reshape", [at("k") + "_", "flat"], [at("k")]), node("TopK", [at("s"), at("k")], [at("best"), at("order")]),
                      node("Gather", [at("b"), at("order")], [at("kept")], axis=0), node("Shape", [at("best")], [at("shape")]), node("Expand", [f"label_value{c}", at("shape")], [at("label")])]
            parts.append(names)
        join = lambda key, name: node("Concat", [p[key] for p in parts], [name], axis=0)
        nodes += [join("kept", "cb"), join("best", "cs"), join("label", "cl"), node("Shape", ["cb"], ["n"]), node("ReduceProd", ["n"], ["product"], keepdims=0), node("Equal", ["product", "none"], ["empty"])]
        info = helper.make_tensor_value_info
        nothing = helper.make_graph([node("Identity", ["no_boxes"], ["keep_t"])], "then", [], [info("keep_t", T.INT64, None)], constants(no_boxes=np.zeros(0, np.int64)))
        some = helper.make_graph([node("ReduceMax", ["cb"], ["most"], keepdims=0), node("Cast", ["cl"], ["class"], to=T.FLOAT), node("Add", ["most", "unit"], ["far"]), node("Mul", ["class", "far"], ["offset"]), node("Unsqueeze", ["offset", "one"], ["offsets"]),
                                  node("Add", ["cb", "offsets"], ["apart"]), node("Unsqueeze", ["apart", "zero"], ["nms_boxes"]), node("Unsqueeze", ["cs", "zero"], ["row"]), node("Unsqueeze", ["row", "zero"], ["nms_scores"]),
                                  node("NonMaxSuppression", ["nms_boxes", "nms_scores", "all", "overlap"], ["selected"]), node("Gather", ["selected", "last"], ["picked"], axis=1), node("Squeeze", ["picked", "one"], ["keep_e"])],
                                 "else", [], [info("keep_e", T.INT64, None)])
        nodes += [node("If", ["empty"], ["keep"], then_branch=nothing, else_branch=some), node("Slice", ["keep", "zero", "seven", "zero"], ["first"]), node("Gather", ["cb", "first"], ["y"], axis=0), node("Gather", ["cl", "first"], ["labels"], axis=0)]
        for high in (1.0, 0.65, 0.5):
            scores = (rng.random((30, 2)) * high).astype(np.float32)
            self.agrees(nodes, {"boxes": boxes, "scores": scores}, {"y": T.FLOAT, "labels": T.INT64}, numbers)

    def test_open_dimensions(self):
        """CTC decoding: frames that are not blank, for any number of frames."""
        nodes = [node("ArgMax", ["x"], ["a"], axis=-1, keepdims=0), node("Reshape", ["a", "flat"], ["f"]), node("Equal", ["f", "zero"], ["blank"]), node("Not", ["blank"], ["keep"]), node("Compress", ["f", "keep"], ["ids"], axis=0)]
        info = helper.make_tensor_value_info
        model = self.save("m.onnx", nodes, [info("x", T.FLOAT, ["B", "T", 4])], [info("ids", T.INT64, None)], constants(flat=np.array([-1], np.int64), zero=np.int64(0)))
        self.kiln("compile", model, "-o", self.path("m.kiln"))
        for b, t in ((1, 20), (2, 7)):
            np.save(self.path("x.npy"), x := np.random.default_rng(t).standard_normal((b, t, 4)).astype(np.float32))
            self.kiln("run", self.path("m.kiln"), "--input", "x=" + self.path("x.npy"), "--output-dir", self.path("out"))
            np.testing.assert_array_equal(np.load(self.path("out/ids.npy")), onnxruntime.InferenceSession(model).run(None, {"x": x})[0])

    def test_rows_are_moved_and_padded(self):
        keep = np.random.default_rng(12).random(40) > 0.5
        x = np.random.default_rng(13).standard_normal((40, 4)).astype(np.float32)
        nodes = [node("Compress", ["x", "q"], ["v"], axis=0), node("Tile", ["v", "twice"], ["tiled"]), node("Pad", ["v", "pads"], ["padded"]), node("Transpose", ["v"], ["t"], perm=[1, 0]), node("Reshape", ["t", "flat"], ["line"]), node("Slice", ["v", "minus", "far", "zero"], ["last"])]
        numbers = constants(twice=np.array([2, 1], np.int64), pads=np.array([1, 0, 2, 0], np.int64), flat=np.array([-1], np.int64), minus=np.array([-3], np.int64), far=np.array([2**63 - 1], np.int64), zero=np.array([0], np.int64))
        for mask in (keep, np.arange(40) == 7):
            self.agrees(nodes, {"x": x, "q": mask}, {name: T.FLOAT for name in ("tiled", "padded", "line", "last")}, numbers)

    def test_a_trip_for_each_row(self):
        info = helper.make_tensor_value_info
        body = helper.make_graph([node("Gather", ["x", "k"], ["r"], axis=0), node("Exp", ["r"], ["e"]), node("Identity", ["go"], ["go_on"])], "body", [info("k", T.INT64, []), info("go", T.BOOL, [])], [info("go_on", T.BOOL, []), info("e", T.FLOAT, [4])])
        nodes = [node("NonZero", ["q"], ["i"]), node("Shape", ["i"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Loop", ["n", "yes"], ["y"], body=body)]
        x = np.random.default_rng(14).standard_normal((9, 4)).astype(np.float32)
        for q in (np.arange(9) > 5, np.arange(9) > 9):
            self.agrees(nodes, {"x": x, "q": q}, {"y": T.FLOAT}, constants(one=np.int64(1), yes=np.array(True)))

    def test_a_use_that_cannot_mask_padding(self):
        """The size is exact then (data_sizes_test.py)."""
        nodes = [node("NonZero", ["x"], ["i"]), node("ArgMax", ["i"], ["y"], axis=1, select_last_index=1)]
        x = np.random.default_rng(9).integers(0, 2, (4, 4)).astype(np.float32)
        self.assertEqual(self.agrees(nodes, {"x": x}, {"y": T.INT64}), {"y": "i64[2, 1]"})


if __name__ == "__main__":
    kiln_case.main()
