"""If and Loop: kernels inside their bodies are finalized and give onnxruntime's answers."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor


class ControlFlow(KilnCase):
    def compare(self, model, inputs):
        arguments = []
        for name, a in inputs.items():
            np.save(self.path(name + ".npy"), a)
            arguments += ["--input", f"{name}={self.path(name + '.npy')}"]
        file = self.compiled(model)
        document = self.json("run", file, "--output-dir", self.path("out"), *arguments)
        session = onnxruntime.InferenceSession(model)
        for out, want in zip(session.get_outputs(), session.run(None, inputs)):
            np.testing.assert_allclose(np.load(self.path(f"out/{out.name}.npy")), want, rtol=1e-5, atol=1e-6)
        return file, document

    def if_model(self):
        w = numpy_helper.from_array(np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32), "w")
        then = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Sigmoid", ["t"], ["a"])], "then", [], [tensor("a", [3, 5])])
        other = helper.make_graph([helper.make_node("Slice", ["x", "s0", "s5", "s1"], ["u"]), helper.make_node("Exp", ["u"], ["b"])], "else", [], [tensor("b", [3, 5])])
        constants = [numpy_helper.from_array(np.array([v], np.int64), n) for v, n in [(0, "s0"), (5, "s5"), (1, "s1")]]
        nodes = [helper.make_node("If", ["flag"], ["y"], name="choice", then_branch=then, else_branch=other)]
        return self.save("if.onnx", nodes, [tensor("flag", [], TensorProto.BOOL), tensor("x", [3, 7])], [tensor("y", [3, 5])], [w, *constants])

    def test_if(self):
        model = self.if_model()
        x = np.random.default_rng(2).standard_normal((3, 7)).astype(np.float32)
        for flag in [True, False]:
            file, _ = self.compare(model, {"flag": np.array(flag), "x": x})
        # Both branches hold kernels, and finalizing makes all of them native.
        symbols = {k["symbol"] for k in self.json("inspect", file)["kernels"]}
        self.assertTrue(any("dot" in s for s in symbols), symbols)
        self.assertTrue(any("exp" in s for s in symbols), symbols)
        self.assertEqual(self.json("run", file)["cache"]["misses"], 0)

    def test_loop_with_carried_and_scanned_values(self):
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("MatMul", ["h", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["h2"]),
             helper.make_node("ReduceSum", ["h2"], ["total"], keepdims=0)],
            "body", [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("h", [2, 9])],
            [tensor("go_on", [], TensorProto.BOOL), tensor("h2", [2, 9]), tensor("total", [])])
        w = numpy_helper.from_array((np.random.default_rng(1).standard_normal((9, 9)) / 3).astype(np.float32), "w")
        trips = numpy_helper.from_array(np.array(6, np.int64), "trips")
        always = numpy_helper.from_array(np.array(True), "always")
        model = self.save("loop.onnx", [helper.make_node("Loop", ["trips", "always", "x"], ["last", "totals"], name="again", body=body)],
                          [tensor("x", [2, 9])], [tensor("last", [2, 9]), tensor("totals", [6])], [w, trips, always])
        self.compare(model, {"x": np.random.default_rng(5).standard_normal((2, 9)).astype(np.float32)})

    def test_a_condition_that_compares_the_trip_with_an_input(self):
        """do ... while (trip < limit), where an input says whether it begins."""
        body = helper.make_graph(
            [helper.make_node("Less", ["i", "limit"], ["go_on"]), helper.make_node("Add", ["a", "x"], ["sum"]), helper.make_node("Identity", ["sum"], ["each"])],
            "body", [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("a", [4])],
            [tensor("go_on", [], TensorProto.BOOL), tensor("sum", [4]), tensor("each", [4])])
        model = self.save("trip.onnx", [helper.make_node("Loop", ["", "begin", "x"], ["last", "all"], body=body)],
                          [tensor("x", [4]), tensor("limit", [], TensorProto.INT64), tensor("begin", [], TensorProto.BOOL)], [tensor("last", [4]), tensor("all", [None, 4])], [])
        for limit, begin in ((0, True), (3, True), (3, False)):
            self.compare(model, {"x": np.arange(4, dtype=np.float32), "limit": np.array(limit), "begin": np.array(begin)})

    def greedy_model(self):
        """Appends the most likely next token until token 3 appears; collects the scores."""
        node, i64 = helper.make_node, TensorProto.INT64
        body = helper.make_graph(
            [node("Slice", ["tokens", "minus", "far", "one"], ["last"]), node("Gather", ["table", "last"], ["scores"], axis=0), node("ArgMax", ["scores"], ["next"], axis=-1, keepdims=0), node("Concat", ["tokens", "next"], ["grown"], axis=1),
             node("ReduceMax", ["scores"], ["best"], axes=[2], keepdims=0), node("Equal", ["next", "end"], ["ends"]), node("Cast", ["ends"], ["number"], to=i64), node("ReduceMin", ["number"], ["all"], keepdims=0),
             node("Cast", ["all"], ["done"], to=TensorProto.BOOL), node("Not", ["done"], ["go_on"])],
            "body", [tensor("i", [], i64), tensor("go", [], TensorProto.BOOL), tensor("tokens", ["B", None], i64)],
            [tensor("go_on", [], TensorProto.BOOL), tensor("grown", ["B", None], i64), tensor("best", ["B", 1])])
        numbers = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("minus", [-1]), ("far", [2**63 - 1]), ("one", [1]), ("end", 3))] + [numpy_helper.from_array(np.array(True), "yes")]
        return self.save("greedy.onnx", [helper.make_node("Loop", ["most", "yes", "ids"], ["out", "best_scores"], name="decode", body=body)],
                         [tensor("ids", ["B", "S"], i64), tensor("table", [20, 20]), tensor("most", [], i64)], [tensor("out", ["B", None], i64), tensor("best_scores", [None, "B", 1])], numbers)

    def test_a_loop_that_generates_tokens(self):
        model = self.greedy_model()
        table = np.random.default_rng(7).standard_normal((20, 20)).astype(np.float32)
        table[5, 3] = table[9, 5] = table[2, 9] = 9
        for ids, most in (([[1, 2]], 10), ([[4, 2, 9]], 1), ([[0, 1], [7, 8]], 6), ([[6, 2], [1, 9]], 12)):
            self.compare(model, {"ids": np.array(ids, np.int64), "table": table, "most": np.array(most, np.int64)})

    def test_loops_that_collect_over_an_open_axis(self):
        """A scripted recurrence appends to a sequence; bags of any length are averaged, an empty one among them."""
        node, i64 = helper.make_node, TensorProto.INT64
        numbers = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("zero", 0), ("first", [0]))] + [numpy_helper.from_array(np.array(True), "yes")]
        sequence = helper.make_tensor_sequence_value_info
        body = helper.make_graph([node("Gather", ["x", "t"], ["each"]), node("Add", ["h", "each"], ["sum"]), node("Tanh", ["sum"], ["next"]), node("SequenceInsert", ["all", "next"], ["more"])],
                                 "step", [tensor("t", [], i64), tensor("go", [], TensorProto.BOOL), tensor("h", [3]), sequence("all", TensorProto.FLOAT, None)],
                                 [tensor("go", [], TensorProto.BOOL), tensor("next", [3]), sequence("more", TensorProto.FLOAT, None)])
        nodes = [node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "zero"], ["trips"]), node("SequenceEmpty", [], ["none"]),
                 node("Loop", ["trips", "yes", "h0", "none"], ["last", "list"], body=body), node("ConcatFromSequence", ["list"], ["y"], axis=1, new_axis=1)]
        model = self.save("recurrence.onnx", nodes, [tensor("x", ["T", 3]), tensor("h0", [3])], [tensor("last", [3]), tensor("y", [3, "T"])], numbers)
        rng = np.random.default_rng(8)
        for length in (1, 4, 9):
            self.compare(model, {"x": rng.standard_normal((length, 3)).astype(np.float32), "h0": rng.standard_normal(3).astype(np.float32)})

        body = helper.make_graph([node("Gather", ["starts", "t"], ["from"]), node("Gather", ["ends", "t"], ["to"]), node("Unsqueeze", ["from", "first"], ["s"]), node("Unsqueeze", ["to", "first"], ["e"]),
                                  node("Slice", ["x", "s", "e", "first"], ["part"]), node("ReduceMean", ["part"], ["mean"], axes=[0], keepdims=0)],
                                 "bag", [tensor("t", [], i64), tensor("go", [], TensorProto.BOOL)], [tensor("go", [], TensorProto.BOOL), tensor("mean", [3])])
        nodes = [node("Size", ["starts"], ["trips"]), node("Loop", ["trips", "yes"], ["y"], body=body)]
        model = self.save("bags.onnx", nodes, [tensor("x", ["N", 3]), tensor("starts", ["B"], i64), tensor("ends", ["B"], i64)], [tensor("y", ["B", 3])], numbers)
        for count, ends in ((5, [2, 2, 5]), (8, [3, 8]), (1, [1])):
            self.compare(model, {"x": rng.standard_normal((count, 3)).astype(np.float32), "starts": np.array([0, *ends[:-1]], np.int64), "ends": np.array(ends, np.int64)})

    def test_the_loops_of_keras_layers(self):
        """tf2onnx: no trip count, the condition compares a carried index as a float, weights and the length are carried."""
        node, i64, boolean = helper.make_node, TensorProto.INT64, TensorProto.BOOL
        body = helper.make_graph(
            [node("Add", ["t", "one"], ["t2"]), node("Gather", ["x", "t"], ["each"]), node("MatMul", ["each", "w"], ["a"]), node("MatMul", ["h", "u"], ["b"]), node("Add", ["a", "b"], ["c"]), node("Tanh", ["c"], ["h2"]),
             node("Cast", ["t2"], ["t_float"], to=1), node("Cast", ["n"], ["n_float"], to=1), node("Less", ["t_float", "n_float"], ["go2"]), node("Identity", ["h2"], ["y"])],
            "step", [tensor("trip", [], i64), tensor("go", [], boolean), tensor("t", [], i64), tensor("h", ["B", 5]), tensor("n", [], i64), tensor("w", [3, 5]), tensor("u", [5, 5])],
            [tensor("go2", [], boolean), tensor("t2", [], i64), tensor("h2", ["B", 5]), tensor("n", [], i64), tensor("w", [3, 5]), tensor("u", [5, 5]), tensor("y", ["B", 5])],
            [numpy_helper.from_array(np.array(1, np.int64), "one")])
        rng = np.random.default_rng(3)
        constants = [numpy_helper.from_array((rng.standard_normal(shape) / 2).astype(np.float32), n) for n, shape in (("w0", (3, 5)), ("u0", (5, 5)))]
        constants += [numpy_helper.from_array(np.array(0, np.int64), "start"), numpy_helper.from_array(np.array(0, np.float32), "zero")]
        nodes = [node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "start"], ["length"]), node("Cast", ["length"], ["length_float"], to=1), node("Less", ["zero", "length_float"], ["any"]),
                 node("Loop", ["", "any", "start", "h0", "length", "w0", "u0"], ["t_end", "last", "n_end", "w_end", "u_end", "all"], name="layer", body=body)]
        model = self.save("layer.onnx", nodes, [tensor("x", ["T", "B", 3]), tensor("h0", ["B", 5])], [tensor("last", ["B", 5]), tensor("all", ["T", "B", 5])], constants)
        for length, batch in ((1, 1), (4, 2), (40, 1), (7, 3)):
            file, _ = self.compare(model, {"x": rng.standard_normal((length, batch, 3)).astype(np.float32), "h0": rng.standard_normal((batch, 5)).astype(np.float32)})
        # What a trip gives is stored once: no kernel of the body touches the whole result.
        self.assertFalse([k["symbol"] for k in self.json("inspect", file)["kernels"] if "iota" in k["symbol"]])

    def test_slices_at_the_index_of_an_open_while(self):
        """Paddle: `while i < T`, and x[:, i] is one step wide because i is at most T - 1."""
        node, i64, boolean = helper.make_node, TensorProto.INT64, TensorProto.BOOL
        body = helper.make_graph(
            [node("Unsqueeze", ["i", "first"], ["start"]), node("Add", ["start", "step"], ["end"]), node("Slice", ["x", "start", "end", "step"], ["column"]), node("Squeeze", ["column", "step"], ["each"]),
             node("Add", ["sum", "each"], ["sum2"]), node("Add", ["i", "one"], ["i2"]), node("Less", ["i2", "length"], ["go2"])],
            "step", [tensor("trip", [], i64), tensor("go", [], boolean), tensor("i", [], i64), tensor("sum", ["B", 3])],
            [tensor("go2", [], boolean), tensor("i2", [], i64), tensor("sum2", ["B", 3])])
        constants = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("zero", 0), ("one", 1), ("first", [0]), ("step", [1]))]
        nodes = [node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "one"], ["length"]), node("Less", ["zero", "length"], ["any"]),
                 node("Loop", ["", "any", "zero", "sum0"], ["i_end", "y"], name="columns", body=body)]
        model = self.save("columns.onnx", nodes, [tensor("x", ["B", "T", 3]), tensor("sum0", ["B", 3])], [tensor("y", ["B", 3])], constants)
        rng = np.random.default_rng(4)
        for batch, length in ((1, 1), (2, 5), (3, 17)):
            self.compare(model, {"x": rng.standard_normal((batch, length, 3)).astype(np.float32), "sum0": rng.standard_normal((batch, 3)).astype(np.float32)})

    def numbers(self, **given):
        return [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in given.items()] + [numpy_helper.from_array(np.array(True), "yes")]

    def parts(self, file, inputs, nodes, piece, graph_inputs, axis, numbers):
        """A Loop over `count` trips that appends `piece` to a sequence, whose parts are then joined."""
        node = helper.make_node
        body = helper.make_graph([*nodes, node("SequenceInsert", ["before", piece], ["after"]), node("Identity", ["go"], ["go2"])], "each",
                                 [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), helper.make_tensor_sequence_value_info("before", 1, None)],
                                 [tensor("go2", [], TensorProto.BOOL), helper.make_tensor_sequence_value_info("after", 1, None)])
        outer = [*inputs, node("SequenceEmpty", [], ["none"]), node("Loop", ["count", "yes", "none"], ["all"], name="pieces", body=body), node("ConcatFromSequence", ["all"], ["y"], axis=axis)]
        return self.save(file, outer, graph_inputs, [tensor("y", None)], numbers)

    def test_parts_of_different_sizes(self):
        """Strips of an image, the last of which is lower; products of each row with those behind it; chunks of a sequence."""
        node, rng = helper.make_node, np.random.default_rng(8)
        w = numpy_helper.from_array((rng.standard_normal((2, 3, 3, 3)) / 5).astype(np.float32), "w")
        strips = self.parts("strips.onnx", [node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "two"], ["h"]), node("Add", ["h", "seven"], ["h7"]), node("Div", ["h7", "eight"], ["count"])],
                            [node("Mul", ["i", "eight"], ["from"]), node("Add", ["from", "eight"], ["past"]), node("Min", ["past", "h"], ["to"]), node("Unsqueeze", ["from", "axis0"], ["from1"]), node("Unsqueeze", ["to", "axis0"], ["to1"]),
                             node("Slice", ["x", "from1", "to1", "axis2"], ["strip"]), node("Conv", ["strip", "w"], ["c"], pads=[1, 1, 1, 1]), node("MaxPool", ["c"], ["piece"], kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])],
                            "piece", [tensor("x", [1, 3, "H", "W"])], 2, [w, *self.numbers(two=2, seven=7, eight=8, axis0=[0], axis2=[2])])
        for height, width in ((21, 9), (8, 5), (3, 4), (40, 7)):
            self.compare(strips, {"x": rng.standard_normal((1, 3, height, width)).astype(np.float32)})
        pairs = self.parts("pairs.onnx", [node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "zero"], ["n"]), node("Sub", ["n", "one"], ["count"])],
                           [node("Gather", ["x", "i"], ["row"]), node("Add", ["i", "one"], ["next"]), node("Unsqueeze", ["next", "axis0"], ["from"]), node("Slice", ["x", "from", "far", "axis0"], ["rest"]), node("MatMul", ["rest", "row"], ["piece"])],
                           "piece", [tensor("x", ["N", 5])], 0, self.numbers(zero=0, one=1, axis0=[0], far=[2**62]))
        for count in (2, 3, 11):
            self.compare(pairs, {"x": rng.standard_normal((count, 5)).astype(np.float32)})
        chunks = self.parts("chunks.onnx", [node("SplitToSequence", ["x", "four"], ["split"], axis=1), node("SequenceLength", ["split"], ["count"])],
                            [node("SequenceAt", ["split", "i"], ["chunk"]), node("Softmax", ["chunk"], ["piece"], axis=1)], "piece", [tensor("x", [2, "T"])], 1, self.numbers(four=4))
        for length in (1, 4, 6, 19):
            self.compare(chunks, {"x": rng.standard_normal((2, length)).astype(np.float32)})

    def test_regions_of_any_size(self):
        """Each trip cuts a box out of the image and resizes it; positions of boxes are data."""
        node, rng = helper.make_node, np.random.default_rng(9)
        body = helper.make_graph(
            [node("Gather", ["boxes", "i"], ["box"]), node("Slice", ["box", "zero1", "two1"], ["from"]), node("Slice", ["box", "two1", "four1"], ["to"]), node("Slice", ["x", "from", "to", "axes"], ["part"]),
             node("Unsqueeze", ["part", "zero1"], ["image"]), node("Resize", ["image", "", "", "size"], ["large"], mode="linear"), node("Squeeze", ["large", "zero1"], ["y"]), node("Identity", ["go"], ["go2"])],
            "each", [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL)], [tensor("go2", [], TensorProto.BOOL), tensor("y", [3, 6, 7])])
        model = self.save("regions.onnx", [node("Shape", ["boxes"], ["counts"]), node("Gather", ["counts", "zero"], ["count"]), node("Loop", ["count", "yes"], ["all"], name="regions", body=body)],
                          [tensor("x", [3, "H", "W"]), tensor("boxes", ["N", 4], TensorProto.INT64)], [tensor("all", ["N", 3, 6, 7])],
                          self.numbers(zero=0, zero1=[0], two1=[2], four1=[4], axes=[1, 2], size=[1, 3, 6, 7]))
        for height, width, boxes in ((16, 20, [[0, 0, 16, 20], [3, 2, 4, 9], [5, 5, 11, 12]]), (7, 9, [[1, 2, 6, 3]])):
            self.compare(model, {"x": rng.standard_normal((3, height, width)).astype(np.float32), "boxes": np.array(boxes, np.int64)})

    def element_of_a_trip(self, computed_step):
        """tf2onnx writes x[i, :] as a slice whose bounds are vectors, of which only that of i is computed, with a step of 1e9
        so that one element is taken. A step that is carried by the loop is at least 1e9."""
        ends = [helper.make_node("Unsqueeze", ["i", "zero"], ["i1"]), helper.make_node("Concat", ["i1", "zero"], ["starts"], axis=0), helper.make_node("Cast", ["starts"], ["reals"], to=1),
                helper.make_node("Max", ["reals", "far"], ["most"]), helper.make_node("Cast", ["most"], ["whole"], to=7), helper.make_node("Equal", ["whole", "all"], ["whole_axis"]),
                helper.make_node("And", ["whole_axis", "never"], ["reversed"]), helper.make_node("Where", ["reversed", "low", "whole"], ["ends"])]
        steps = [helper.make_node("Cast", ["k"], ["kf"], to=1), helper.make_node("Max", ["kf", "far1"], ["km"]), helper.make_node("Cast", ["km"], ["first"], to=7),
                 helper.make_node("Concat", ["first", "one"], ["steps"], axis=0)] if computed_step else []
        rest = [helper.make_node("Slice", ["rows", "starts", "ends", "axes", "steps" if computed_step else "wide"], ["row"]), helper.make_node("Squeeze", ["row", "zero"], ["r"]),
                helper.make_node("Add", ["sum", "r"], ["after"]), helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Identity", ["rows"], ["same"]),
                helper.make_node("Identity", ["k"], ["kept"])]
        integer = lambda name, shape: tensor(name, shape, TensorProto.INT64)
        body = helper.make_graph([*ends, *steps, *rest], "body", [integer("i", []), tensor("go", [], TensorProto.BOOL), tensor("sum", [4]), tensor("rows", ["n", 4]), integer("k", [1])],
                                 [tensor("go_on", [], TensorProto.BOOL), tensor("after", [4]), tensor("same", ["n", 4]), integer("kept", [1])])
        far = 1_000_000_000
        given = {"zero": np.array([0]), "one": np.array([1]), "axes": np.array([0, 1]), "wide": np.array([far, 1]), "far": np.array([far, far], np.float32), "far1": np.array([far], np.float32),
                 "all": np.array([far]), "never": np.array([False, False]), "low": np.array([-far]), "yes": np.array(True), "nothing": np.zeros(4, np.float32), "stride": np.array([1])}
        nodes = [helper.make_node("Shape", ["x"], ["dims"]), helper.make_node("Gather", ["dims", "zero"], ["trips"]),
                 helper.make_node("Loop", ["trips", "yes", "nothing", "x", "stride"], ["y", "rows_end", "k_end"], body=body)]
        return self.save("m.onnx", nodes, [tensor("x", ["n", 4])], [tensor("y", [4])], [numpy_helper.from_array(a, name) for name, a in given.items()])

    def test_elements_of_trips_as_tensorflow_takes_them(self):
        for computed_step in (False, True):
            model = self.element_of_a_trip(computed_step)
            for n in (5, 1, 9):
                self.compare(model, {"x": np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)})


if __name__ == "__main__":
    kiln_case.main()
