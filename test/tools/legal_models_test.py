"""Models that are legal although few exporters write them like this: functions with overloads, external data in several
files, sparse initializers, wrong types
beside values, arguments that are data. Against onnxruntime, or onnx's reference where onnxruntime refuses them."""
import json
import os
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import kiln_case
from kiln_case import tensor
from operator_case import OperatorCase, reference

rng = np.random.default_rng(11)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def model_of(nodes, inputs, outputs, initializers=(), functions=(), opset=18, domains=(), **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), **more)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def function(name, inputs, outputs, nodes, attributes=(), defaults=(), overload=None, domains=()):
    opsets = [helper.make_opsetid("", 18), *(helper.make_opsetid(d, 1) for d in domains)]
    made = helper.make_function("mine", name, inputs, outputs, nodes, opsets, attributes=list(attributes), attribute_protos=list(defaults))
    if overload:
        made.overload = overload
    return made


def refers(node, name, to, kind):
    a = node.attribute.add()
    a.name, a.ref_attr_name, a.type = name, to, kind
    return node


class LegalModels(OperatorCase):
    def compare(self, model, feeds, dims=(), by_reference=False):
        want = dict(zip([o.name for o in model.graph.output], ReferenceEvaluator(model).run(None, feeds))) if by_reference else reference(model, feeds)
        self.agree(want, self.run_kiln(model, feeds, dims))

    def test_functions(self):
        int_kind, float_kind = onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT
        scaled = function("Scaled", ["a"], ["b"], [refers(helper.make_node("LeakyRelu", ["a"], ["t"]), "alpha", "slope", float_kind), helper.make_node("Neg", ["t"], ["b"])],
                          defaults=[helper.make_attribute("slope", 0.25)])
        # A name of the graph denotes another value inside the function; the attribute is passed through two functions.
        twice = function("Twice", ["x"], ["y"], [refers(helper.make_node("Scaled", ["x"], ["t"], domain="mine"), "slope", "steepness", float_kind),
                                                 refers(helper.make_node("Softmax", ["t"], ["y"]), "axis", "along", int_kind)],
                         attributes=["steepness"], defaults=[helper.make_attribute("along", -1)], domains=["mine"])
        nodes = [helper.make_node("Twice", ["x"], ["t"], domain="mine", steepness=0.5, along=0), helper.make_node("Twice", ["t"], ["u"], domain="mine", steepness=0.1),
                 helper.make_node("Scaled", ["u"], ["y"], domain="mine")]
        model = model_of(nodes, [tensor("x", [3, 4])], [tensor("y", [3, 4])], functions=[scaled, twice], domains=["mine"])
        self.compare(model, {"x": normal(3, 4)})

    def test_the_lowest_opset_that_the_operators_have(self):
        """skl2onnx declares the lowest opset in which all operators of the model are, which may be 5."""
        nodes = [helper.make_node("Reshape", ["x", "dims"], ["a"]), helper.make_node("Transpose", ["a"], ["b"], perm=[1, 0, 2]), helper.make_node("Squeeze", ["b"], ["c"], axes=[2]),
                 helper.make_node("Slice", ["c"], ["d"], axes=[1], starts=[0], ends=[2]), helper.make_node("Unsqueeze", ["d"], ["e"], axes=[0]), helper.make_node("Flatten", ["e"], ["f"]),
                 helper.make_node("MatMul", ["f", "w"], ["g"]), helper.make_node("Concat", ["g", "g"], ["h"], axis=1), helper.make_node("Identity", ["h"], ["y"]),
                 helper.make_node("ArgMax", ["h"], ["most"], axis=1, keepdims=0), helper.make_node("Shape", ["h"], ["shape"])]
        given = [numpy_helper.from_array(np.array([2, 3, 1]), "dims"), numpy_helper.from_array(normal(6, 4), "w")]
        outputs = [tensor("y", [1, 8]), tensor("most", [1], TensorProto.INT64), tensor("shape", [2], TensorProto.INT64)]
        model = model_of(nodes, [tensor("x", [6])], outputs, given, opset=5)
        self.compare(model, {"x": normal(6)})

    def test_overloads(self):
        one = function("Act", ["a"], ["b"], [helper.make_node("Tanh", ["a"], ["b"])])
        other = function("Act", ["a"], ["b"], [helper.make_node("Exp", ["a"], ["b"])], overload="exp")
        second = helper.make_node("Act", ["x"], ["z"], domain="mine")
        second.overload = "exp"
        x = normal(2, 3)
        model = model_of([helper.make_node("Act", ["x"], ["y"], domain="mine"), second], [tensor("x", [2, 3])], [tensor("y", [2, 3]), tensor("z", [2, 3])], functions=[one, other], domains=["mine"])
        self.agree({"y": np.tanh(x), "z": np.exp(x)}, self.run_kiln(model, {"x": x}))

    def test_a_branch_inside_a_function(self):
        yes = helper.make_graph([helper.make_node("Add", ["a", "a"], ["r"])], "yes", [], [tensor("r", None)])
        no = helper.make_graph([refers(helper.make_node("LeakyRelu", ["a"], ["s"]), "alpha", "slope", onnx.AttributeProto.FLOAT)], "no", [], [tensor("s", None)])
        picks = function("Picks", ["c", "a"], ["b"], [helper.make_node("If", ["c"], ["b"], then_branch=yes, else_branch=no)], attributes=["slope"])
        model = model_of([helper.make_node("Picks", ["c", "x"], ["y"], domain="mine", slope=0.5)], [tensor("c", [], TensorProto.BOOL), tensor("x", [4])], [tensor("y", [4])], functions=[picks], domains=["mine"])
        x = normal(4)
        for c in (True, False):
            self.agree({"y": x + x if c else np.where(x < 0, x * np.float32(0.5), x)}, self.run_kiln(model, {"c": np.array(c), "x": x}))

    def external(self, name, array, location, offset):
        t = onnx.TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape, data_location=TensorProto.EXTERNAL)
        for key, v in (("location", location), ("offset", str(offset)), ("length", str(array.nbytes))):
            t.external_data.add(key=key, value=v)
        return t

    def test_external_data_in_several_files(self):
        a, b, c = normal(4, 5), normal(5, 6), normal(6)
        os.makedirs(self.path("weights"), exist_ok=True)
        with open(self.path("weights/one.bin"), "wb") as f:
            f.write(b"\0" * 3 + a.tobytes() + b"\0" + b.tobytes())  # not aligned
        with open(self.path("two.bin"), "wb") as f:
            f.write(c.tobytes())
        initializers = [self.external("a", a, "weights/one.bin", 3), self.external("b", b, "weights/one.bin", 4 + a.nbytes), self.external("c", c, "two.bin", 0)]
        model = model_of([helper.make_node("MatMul", ["x", "a"], ["t"]), helper.make_node("Gemm", ["t", "b", "c"], ["y"])], [tensor("x", [3, 4])], [tensor("y", [3, 6])], initializers)
        x = normal(3, 4)
        self.agree({"y": x @ a @ b + c}, self.run_kiln(model, {"x": x}))

    def test_large_tensors_everywhere(self):
        """Tensors that are read from the mapped file: an initializer, a constant, one in a branch, one in a
        function."""
        a, b, c, d = (normal(160, 160) for _ in range(4))
        yes = helper.make_graph([helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(c)), helper.make_node("Add", ["t", "k"], ["r"])], "yes", [], [tensor("r", [160, 160])])
        no = helper.make_graph([helper.make_node("Neg", ["t"], ["s"])], "no", [], [tensor("s", [160, 160])])
        inside = function("Inside", ["p"], ["q"], [helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(d)), helper.make_node("Mul", ["p", "k"], ["q"])])
        nodes = [helper.make_node("Constant", [], ["b"], value=numpy_helper.from_array(b)), helper.make_node("Add", ["x", "a"], ["s"]), helper.make_node("Sub", ["s", "b"], ["t"]),
                 helper.make_node("If", ["c"], ["u"], then_branch=yes, else_branch=no), helper.make_node("Inside", ["u"], ["y"], domain="mine")]
        model = model_of(nodes, [tensor("x", [160, 160]), tensor("c", [], TensorProto.BOOL)], [tensor("y", [160, 160])], [numpy_helper.from_array(a, "a")], [inside], domains=["mine"])
        x = normal(160, 160)
        self.agree({"y": (x + a - b + c) * d}, self.run_kiln(model, {"x": x, "c": np.array(True)}))

    def test_sparse_tensors(self):
        dense = np.zeros((4, 5), np.float32)
        dense[1, 2], dense[3, 0] = 2.5, -1.0
        values = numpy_helper.from_array(np.array([2.5, -1.0], np.float32), "w")
        flat = onnx.SparseTensorProto(values=values, indices=numpy_helper.from_array(np.array([7, 15])), dims=[4, 5])
        pairs = onnx.SparseTensorProto(values=numpy_helper.from_array(np.array([2.5, -1.0], np.float32)), indices=numpy_helper.from_array(np.array([[1, 2], [3, 0]])), dims=[4, 5])
        model = model_of([helper.make_node("Constant", [], ["k"], sparse_value=pairs), helper.make_node("Add", ["w", "k"], ["s"]), helper.make_node("MatMul", ["x", "s"], ["y"])],
                         [tensor("x", [3, 4])], [tensor("y", [3, 5])], sparse_initializer=[flat])
        x = normal(3, 4)
        self.agree({"y": x @ (2 * dense)}, self.run_kiln(model, {"x": x}))
        flat.indices.CopyFrom(numpy_helper.from_array(np.array([7, 20])))
        model.graph.sparse_initializer[0].CopyFrom(flat)
        onnx.save(model, self.path("m.onnx"))
        self.assertIn("index 20 is out of range", self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3)))

    def test_wrong_types_beside_values(self):
        infos = [tensor("t", [9, 9], TensorProto.INT64), tensor("t", [3, 4]), tensor("nobody", [1]), onnx.ValueInfoProto(name="u")]
        model = model_of([helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["u"]), helper.make_node("Abs", ["u"], ["y"])], [tensor("x", [3, 4])],
                         [onnx.ValueInfoProto(name="y"), tensor("u", [7])], value_info=infos)
        x = normal(3, 4)
        self.agree({"y": np.maximum(x, 0), "u": -np.maximum(x, 0)}, self.run_kiln(model, {"x": x}))
        shown = self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), "--verbose").stderr
        self.assertIn("value 't' is f32[3, 4], although the model declares i64", shown)
        self.assertIn("value 'u' is f32[3, 4], although the model declares rank 1", shown)

    def test_nodes_in_another_order(self):
        """Nodes that come before their producers: onnxruntime sorts the nodes, and its float16 converter relies on that."""
        yes = helper.make_graph([helper.make_node("Add", ["b", "b"], ["r"])], "yes", [], [tensor("r", None)])
        no = helper.make_graph([helper.make_node("Neg", ["b"], ["s"])], "no", [], [tensor("s", None)])
        nodes = [helper.make_node("Mul", ["d", "a"], ["y"]), helper.make_node("If", ["c"], ["d"], then_branch=yes, else_branch=no), helper.make_node("Exp", ["x"], ["a"]),
                 helper.make_node("Abs", ["a"], ["b"])]
        self.compare(model_of(nodes, [tensor("x", [3]), tensor("c", [], TensorProto.BOOL)], [tensor("y", [3])]), {"x": normal(3), "c": np.array(True)})

    def test_leftovers(self):
        """Remains of training and old converters: dropout, normalization in inference, unused and repeated
        definitions, empty names."""
        g, b, m, v = normal(3), normal(3), normal(3), np.abs(normal(3)) + 1
        constants = [numpy_helper.from_array(a, n) for n, a in zip("gbmv", (g, b, m, v))]
        constants += [numpy_helper.from_array(np.array(0.5, np.float32), "ratio"), numpy_helper.from_array(np.array(False), "training"), numpy_helper.from_array(normal(2), "unused")]
        nodes = [helper.make_node("BatchNormalization", ["x", *"gbmv"], ["t"], training_mode=0, momentum=0.9), helper.make_node("Dropout", ["t", "ratio", "training"], ["u", "mask"]),
                 helper.make_node("Identity", ["u"], ["v w/é"]), helper.make_node("Sqrt", ["x"], ["dead"]), helper.make_node("Clip", ["v w/é", "", "six"], ["y"], domain="ai.onnx")]
        constants.append(numpy_helper.from_array(np.array(0.6, np.float32), "six"))
        inputs = [tensor("x", [2, 3, 4, 4]), tensor("g", [3]), tensor("six", [])]  # initializers among the inputs, as before IR version 4
        self.compare(model_of(nodes, inputs, [tensor("y", [2, 3, 4, 4])], constants), {"x": normal(2, 3, 4, 4)})

    # Arguments that are data.

    CASES = [
        ("Squeeze", [("x", normal(2, 1, 3)), ("axes", np.array([1]))], {}),
        ("Unsqueeze", [("x", normal(2, 3)), ("axes", np.array([0, -1]))], {}),
        ("ReduceSum", [("x", normal(2, 3, 4)), ("axes", np.array([-1, 0]))], {"keepdims": 0}),
        ("Pad", [("x", normal(2, 3)), ("pads", np.array([0, 1, 2, 0]))], {}),
        ("TopK", [("x", normal(2, 6)), ("k", np.array([3]))], {}),
        ("Slice", [("x", normal(5, 6)), ("starts", np.array([1, -2])), ("ends", np.array([4, 9])), ("axes", np.array([0, 1]))], {}),
        ("Split", [("x", normal(6, 2)), ("split", np.array([4, 2]))], {}),
        ("Tile", [("x", normal(2, 3)), ("repeats", np.array([2, 1]))], {}),
        ("Expand", [("x", normal(3, 1)), ("shape", np.array([2, 3, 4]))], {}),
        ("Reshape", [("x", normal(4, 6)), ("shape", np.array([2, -1, 3]))], {}),
        ("Resize", [("x", normal(1, 2, 3, 4)), None, None, ("sizes", np.array([1, 2, 6, 5]))], {"mode": "nearest"}),
        ("OneHot", [("x", np.array([0, 2, 1])), ("depth", np.array([3])), ("values", np.array([0, 1], np.float32))], {}),
        ("CumSum", [("x", normal(3, 4)), ("axis", np.array(1))], {}),
        ("Trilu", [("x", normal(4, 4)), ("k", np.array(1))], {}),
        ("Range", [("start", np.array(1)), ("limit", np.array(9)), ("delta", np.array(3))], {}),
        ("ConstantOfShape", [("shape", np.array([2, 3]))], {}),
    ]

    def test_arguments_given_at_compile_time(self):
        for op, given, attributes in self.CASES:
            with self.subTest(op):
                inputs = [g for g in given if g]
                outputs = ["y", "z"] if op in ("TopK", "Split") else ["y"]
                node = helper.make_node(op, [g[0] if g else "" for g in given], outputs, **attributes)
                model = model_of([node], [tensor(n, a.shape if n == "x" or op == "Resize" else [None] * a.ndim, helper.np_dtype_to_tensor_dtype(a.dtype)) for n, a in inputs],
                                 [onnx.helper.make_empty_tensor_value_info(o) for o in outputs])
                feeds = dict(inputs)
                want = reference(model, feeds)
                onnx.save(model, self.path("m.onnx"))
                values = [word for n, a in inputs if n != "x" for word in ("--value", f"{n}=" + ",".join(str(e) for e in a.ravel()))]
                self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), *values)
                more = []
                if "x" in feeds:
                    np.save(self.path("x.npy"), feeds["x"])
                    more = ["--input", f"x={self.path('x.npy')}"]
                self.kiln("run", self.path("m.kiln"), "--quiet", "--output-dir", self.path("out"), *more)
                self.agree(want, {o: np.load(self.path(f"out/{o}.npy")) for o in outputs})

    def test_negative_numbers_among_inputs_that_decide_sizes(self):
        nodes = [helper.make_node("Slice", ["x", "start", "end"], ["part"]), helper.make_node("Reshape", ["part", "sizes"], ["t"]), helper.make_node("Exp", ["t"], ["y"])]
        inputs = [tensor("x", ["n"]), *(helper.make_tensor_value_info(name, TensorProto.INT64, [count]) for name, count in (("start", 1), ("end", 1), ("sizes", 2)))]
        model = model_of(nodes, inputs, [tensor("y", ["a", "b"])])
        for start, end, sizes in ((0, 12, [3, 4]), (-6, 12, [3, -1]), (1, -1, [-1, 5]), (-8, -2, [-1, 1])):
            self.compare(model, {"x": normal(12), "start": np.array([start]), "end": np.array([end]), "sizes": np.array(sizes)})

    def test_the_refusal_names_the_input_and_the_flag(self):
        model = model_of([helper.make_node("Cast", ["axes"], ["t"], to=TensorProto.INT64), helper.make_node("ReduceSum", ["x", "t"], ["y"])],
                         [tensor("x", [2, 3]), tensor("axes", [None], TensorProto.INT32)], [onnx.helper.make_empty_tensor_value_info("y")])
        onnx.save(model, self.path("m.onnx"))
        compile = lambda *more, code: self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), *more, code=code))
        self.assertIn("depends on input 'axes'; give it at compile time with --value axes=", compile(code=3))
        self.assertIn("did you mean 'axes'?", compile("--value", "axis=1", code=2))
        self.assertIn("'one' is not an integer", compile("--value", "axes=one", code=2))
        self.assertIn("give it once", compile("--value", "axes=1", "--value", "axes=0", code=2))
        self.assertIn("2 elements", compile("--value", "x=1,2", code=2))

    # Text.

    def test_text_labels(self):
        labels = ["no", "ja", "vielleicht \u00fc\u20ac\U0001f600"]
        nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml", coefficients=normal(12).tolist(), intercepts=[0.1, 0.0, -0.1], classlabels_strings=labels),
                 helper.make_node("ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", classlabels_strings=labels)]
        outputs = [tensor("label", [None], TensorProto.STRING), onnx.helper.make_empty_tensor_value_info("maps")]
        model = model_of(nodes, [tensor("x", ["N", 4])], outputs, domains=["ai.onnx.ml"])
        x = normal(9, 4)
        del model.graph.node[1], model.graph.output[1]
        want = reference(model, {"x": x})["label"]
        model = model_of(nodes, [tensor("x", ["N", 4])], outputs, domains=["ai.onnx.ml"])
        got = self.run_kiln(model, {"x": x})
        np.testing.assert_array_equal(got["label"], want.astype(str))
        metadata = self.json("inspect", self.path("m.kiln"))["manifest"]["metadata"]
        self.assertEqual(json.loads(metadata["texts:label"]), labels)
        self.assertEqual(json.loads(metadata["classes:maps"]), labels)

    def test_text_inputs_are_refused(self):
        model = model_of([helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["a"], values_int64s=[1])], [tensor("x", [3], TensorProto.STRING)],
                         [tensor("y", [3], TensorProto.INT64)], domains=["ai.onnx.ml"])
        onnx.save(model, self.path("m.onnx"))
        line = self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3))
        self.assertIn("input 'x' has element type string", line)
        self.assertIn("extract_model", line)


if __name__ == "__main__":
    kiln_case.main()
