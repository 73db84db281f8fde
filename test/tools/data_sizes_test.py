"""Sizes that data decide without a bound (lengths of speech, counts that convolutions follow), beside onnxruntime."""
import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase

node = helper.make_node


def constants(**arrays):
    return [numpy_helper.from_array(np.asarray(a), name) for name, a in arrays.items()]


def weights(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def speech():
    """ids [batch, seq] -> sound: durations, the path by their running sums, a convolution and a transposed one."""
    nodes = [node("Gather", ["table", "ids"], ["h"]), node("MatMul", ["h", "wd"], ["d"]), node("Squeeze", ["d", "two"], ["d2"]), node("Exp", ["d2"], ["e"]), node("Ceil", ["e"], ["w"]),
             node("ReduceSum", ["w", "one"], ["sum"], keepdims=0), node("Clip", ["sum", "least"], ["atleast"]), node("Cast", ["atleast"], ["lengths"], to=T.INT64),
             node("ReduceMax", ["lengths"], ["longest"], keepdims=0), node("Range", ["zero", "longest", "step"], ["frames"]), node("Cast", ["frames"], ["t"], to=T.FLOAT),
             node("CumSum", ["w", "step"], ["ends"]), node("Unsqueeze", ["ends", "two"], ["ends3"]), node("Less", ["t", "ends3"], ["before"]), node("Cast", ["before"], ["p"], to=T.FLOAT),
             node("Pad", ["p", "pads"], ["padded"]), node("Slice", ["padded", "nothing", "last", "one"], ["previous"]),
             node("Sub", ["p", "previous"], ["path"]), node("Transpose", ["h"], ["ht"], perm=[0, 2, 1]), node("MatMul", ["ht", "path"], ["mel"]),
             node("Conv", ["mel", "wc"], ["c"], pads=[1, 1]), node("LeakyRelu", ["c"], ["r"]), node("ConvTranspose", ["r", "wt"], ["sound"], strides=[2], pads=[1, 1])]
    given = constants(table=weights(9, 4) * 0.6, wd=weights(4, 1, seed=1), wc=weights(6, 4, 3, seed=2), wt=weights(6, 1, 4, seed=3), two=np.array([2]), one=np.array([1]), least=np.float32(1),
                      zero=np.array(0), step=np.array(1), pads=np.array([0, 1, 0, 0, 0, 0]), nothing=np.array([0]), last=np.array([-1]))
    return nodes, [("ids", T.INT64, ["batch", "seq"])], [("sound", T.FLOAT), ("lengths", T.INT64)], given


class DataSizes(KilnCase):
    def make(self, nodes, inputs, outputs, given):
        return self.save("m.onnx", nodes, [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(n, t, None) for n, t in outputs], given, opset=17)

    def arguments(self, inputs):
        given = []
        for name, array in inputs.items():
            np.save(self.path(f"{name}.npy"), array)
            given += ["--input", f"{name}={self.path(name + '.npy')}"]
        return given

    def agrees(self, model, cases, file="m.kiln", options=()):
        session = onnxruntime.InferenceSession(model)
        names = [o.name for o in session.get_outputs()]
        for inputs in cases:
            told = self.json("run", self.path(file), "--output-dir", self.path("out"), *options, *self.arguments(inputs))["outputs"]
            self.assertEqual([row["name"] for row in told], names)
            for name, want in zip(names, session.run(None, inputs)):
                got = np.load(self.path(f"out/{name}.npy"))
                self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype), name)
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    sentences = [{"ids": np.random.default_rng(n).integers(0, 9, (b, s))} for n, (b, s) in enumerate([(1, 5), (1, 5), (2, 11), (3, 1)])]

    def test_speech(self):
        model = self.make(*speech())
        self.kiln("compile", model, "-o", self.path("m.kiln"))
        self.agrees(model, self.sentences)
        self.agrees(model, self.sentences, options=["--specialize", "off"])
        self.assertTrue(self.json("verify", model, "--per-kernel", *self.arguments(self.sentences[2]))["ok"])
        names = self.json("inspect", self.path("m.kiln"))["data_sizes"]
        self.assertEqual(names, ["value.longest.0"])
        self.kiln("finalize", self.path("m.kiln"), "--target", "x86-64-v3", "--native-file", self.path("native.kiln"), "--specialize", "off")
        self.agrees(model, self.sentences, "native.kiln", ["--allow-unsigned-native"])

    def test_a_wrong_size_is_noticed(self):
        self.kiln("compile", self.make(*speech()), "-o", self.path("m.kiln"))
        done = self.kiln("run", self.path("m.kiln"), "--dim", "value.longest.0=100", *self.arguments(self.sentences[0]), code=5)
        self.assertIn("the data of this run make a size", self.error_line(done))

    def test_two_stages(self):
        """The rows whose first element is positive, a convolution over them, and the places where that is positive."""
        nodes = [node("Gather", ["x", "zero"], ["first"], axis=1), node("Greater", ["first", "nil"], ["kept"]), node("Compress", ["x", "kept"], ["rows"], axis=0),
                 node("Transpose", ["rows"], ["t"], perm=[1, 0]), node("Unsqueeze", ["t", "front"], ["image"]), node("Conv", ["image", "w"], ["c"], pads=[1, 1]), node("Relu", ["c"], ["r"]),
                 node("NonZero", ["r"], ["places"]), node("Transpose", ["places"], ["pt"], perm=[1, 0]), node("GatherND", ["r", "pt"], ["values"]),
                 node("Unsqueeze", ["values", "fronts"], ["again"]), node("Conv", ["again", "v"], ["y"], pads=[2, 2])]
        given = constants(zero=np.array(0), nil=np.float32(0), front=np.array([0]), fronts=np.array([0, 1]), w=weights(5, 3, 3), v=weights(2, 1, 5, seed=4))
        model = self.make(nodes, [("x", T.FLOAT, ["n", 3])], [("y", T.FLOAT), ("places", T.INT64)], given)
        self.kiln("compile", model, "-o", self.path("m.kiln"))
        self.agrees(model, [{"x": weights(n, 3, seed=n)} for n in (9, 20, 20, 4)])
        self.assertEqual(len(self.json("inspect", self.path("m.kiln"))["data_sizes"]), 2)

    def repeat_interleave(self, axis):
        """What TorchScript writes for repeat_interleave: a Loop that appends each part, repeated, to a sequence."""
        body_shape = [0, -1, 3] if axis else [-1, 3]
        body = [node("SequenceAt", ["counts", "i"], ["n"]), node("SequenceAt", ["parts", "i"], ["part"]), node("Constant", [], ["axes"], value_ints=[axis + 1]),
                node("Unsqueeze", ["part", "axes"], ["apart"]), node("Constant", [], ["front"], value=numpy_helper.from_array(np.array([-1] * axis + [1]))),
                node("Constant", [], ["width"], value=numpy_helper.from_array(np.array([3]))), node("Concat", ["front", "n", "width"], ["to"], axis=0), node("Shape", ["to"], ["k"]),
                node("ConstantOfShape", ["k"], ["ones"], value=helper.make_tensor("v", T.INT64, [1], [1])), node("Neg", ["ones"], ["minus"]), node("Equal", ["to", "minus"], ["any"]),
                node("Where", ["any", "ones", "to"], ["whole"]), node("Expand", ["apart", "whole"], ["wide"]),
                node("Constant", [], ["joined"], value=numpy_helper.from_array(np.array(body_shape))), node("Reshape", ["wide", "joined"], ["piece"]),
                node("SequenceInsert", ["before", "piece"], ["after"]), node("Identity", ["c"], ["go"])]
        sequence = helper.make_tensor_sequence_value_info("before", T.FLOAT, None)
        graph = helper.make_graph(body, "body", [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("c", T.BOOL, []), sequence],
                                  [helper.make_tensor_value_info("go", T.BOOL, []), helper.make_tensor_sequence_value_info("after", T.FLOAT, None)])
        nodes = [node("Shape", ["d"], ["count"]), node("ConstantOfShape", ["count"], ["each"], value=helper.make_tensor("v", T.INT64, [1], [1])),
                 node("SplitToSequence", ["d", "each"], ["counts"], axis=0), node("SplitToSequence", ["x", "each"], ["parts"], axis=axis), node("SequenceEmpty", [], ["none"]),
                 node("Loop", ["count", "yes", "none"], ["pieces"], body=graph), node("ConcatFromSequence", ["pieces"], ["z"], axis=axis), node("MatMul", ["z", "w"], ["y"])]
        return self.make(nodes, [("x", T.FLOAT, ["b"] * axis + ["t", 3]), ("d", T.INT64, ["t"])], [("y", T.FLOAT)], constants(yes=np.array(True), w=weights(3, 4)))

    def test_repeat_interleave_of_torchscript(self):
        for axis in (0, 1):
            model = self.repeat_interleave(axis)
            self.kiln("compile", model, "-o", self.path("m.kiln"))
            r = np.random.default_rng(axis)
            self.agrees(model, [{"x": weights(*[b] * axis, t, 3, seed=t), "d": r.integers(0, 4, t) + (t == 1)} for b, t in [(1, 5), (2, 9), (1, 1), (2, 300)]])

    def loop(self, nodes, result, inputs, more=(), **numbers):
        """A Loop over the rows of `d`, whose body is `nodes`; `result` is collected, or appended to a sequence that is then joined."""
        io = [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("c", T.BOOL, [])]
        outer = [*more, node("Shape", ["d"], ["sizes"]), node("Gather", ["sizes", "zero"], ["count"])]
        go = [node("Identity", ["c"], ["go"])]
        if result == "piece":
            graph = helper.make_graph([*nodes, node("SequenceInsert", ["before", "piece"], ["after"]), *go], "body", [*io, helper.make_tensor_sequence_value_info("before", T.FLOAT, None)],
                                      [helper.make_tensor_value_info("go", T.BOOL, []), helper.make_tensor_sequence_value_info("after", T.FLOAT, None)])
            outer += [node("SequenceEmpty", [], ["none"]), node("Loop", ["count", "yes", "none"], ["all"], body=graph), node("ConcatFromSequence", ["all"], ["y"], axis=0)]
            kind = T.FLOAT
        else:
            graph = helper.make_graph([*nodes, *go], "body", io, [helper.make_tensor_value_info("go", T.BOOL, []), helper.make_tensor_value_info(result, T.INT64, None)])
            outer += [node("Loop", ["count", "yes"], ["y"], body=graph)]
            kind = T.INT64
        return self.make(outer, inputs, [("y", kind)], constants(yes=np.array(True), zero=np.array(0), **{n: np.array(v) for n, v in numbers.items()}))

    def test_sizes_that_a_trip_takes_from_data(self):
        """A row repeated as often as its number says; the highest place of a map that is resized to the size of its region."""
        rows = self.loop([node("Gather", ["x", "i"], ["row"]), node("Gather", ["d", "i"], ["n"]), node("Unsqueeze", ["n", "axis0"], ["n1"]), node("Concat", ["n1", "one"], ["to"], axis=0), node("Unsqueeze", ["row", "axis0"], ["wide"]),
                          node("Expand", ["wide", "to"], ["copies"]), node("CumSum", ["copies", "zero"], ["piece"])], "piece", [("x", T.FLOAT, ["t", 3]), ("d", T.INT64, ["t"])], axis0=[0], one=[1])
        self.kiln("compile", rows, "-o", self.path("m.kiln"))
        r = np.random.default_rng(7)
        self.agrees(rows, [{"x": weights(t, 3, seed=t), "d": r.integers(0, 5, t) + (t == 1)} for t in (4, 1, 9)])
        places = self.loop([node("Gather", ["maps", "i"], ["map"]), node("Unsqueeze", ["map", "axis0"], ["image"]), node("Gather", ["whole", "i"], ["hw"]), node("Concat", ["first", "hw"], ["to"], axis=0),
                            node("Resize", ["image", "", "", "to"], ["large"], mode="cubic"), node("Reshape", ["large", "flat"], ["pixels"]), node("ArgMax", ["pixels"], ["best"], axis=1, keepdims=0)], "best",
                           [("maps", T.FLOAT, ["t", 2, 5, 6]), ("d", T.FLOAT, ["t", 2])], [node("Ceil", ["d"], ["up"]), node("Cast", ["up"], ["whole"], to=T.INT64)], axis0=[0], first=[1, 2], flat=[2, -1])
        self.kiln("compile", places, "-o", self.path("m.kiln"))
        self.agrees(places, [{"maps": weights(t, 2, 5, 6, seed=t), "d": (4 + 20 * r.random((t, 2))).astype(np.float32)} for t in (3, 1, 6)])


if __name__ == "__main__":
    kiln_case.main()
