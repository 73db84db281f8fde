"""Sizes that a model does not take: exit 5 and one line that names the dimension and both values. Sizes that it does
take run afterwards, beside onnxruntime."""
import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor

node = helper.make_node
rng = np.random.default_rng(5)


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def constant(name, *values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype), name)


class InvalidShape(KilnCase):
    def arguments(self, inputs):
        result = []
        for name, data in inputs.items():
            np.save(self.path(f"{name}.npy"), data)
            result += ["--input", f"{name}={self.path(name + '.npy')}"]
        return result

    def refused(self, inputs, *words, dims=(), code=5):
        done = self.kiln("run", self.path("m.kiln"), *self.arguments(inputs), *(o for d in dims for o in ("--dim", d)), code=code)
        line = self.error_line(done)
        self.assertTrue(line.startswith("kiln: invalid_shape: "), line)
        for word in words:
            self.assertIn(word, line)

    def right(self, model, inputs, dims=()):
        self.kiln("run", self.path("m.kiln"), *self.arguments(inputs), *(o for d in dims for o in ("--dim", d)), "--output-dir", self.path("out"))
        session = onnxruntime.InferenceSession(model)
        for output, want in zip(session.get_outputs(), session.run(None, inputs)):
            np.testing.assert_allclose(np.load(self.path(f"out/{output.name}.npy")), want, rtol=1e-4, atol=1e-5)

    def model(self, nodes, inputs, initializers=(), *options, rank=2):
        # The importer infers the dimensions of the output.
        model = self.save("m.onnx", nodes, [tensor(n, d) for n, d in inputs.items()], [tensor("y", [None] * rank)], initializers)
        self.kiln("compile", model, "-o", self.path("m.kiln"), *options)
        return model

    def test_ranges(self):
        model = self.model([node("Tanh", ["x"], ["y"])], {"x": ["batch", 4]}, (), "--dim", "batch=2:6")
        for batch in (1, 7):
            self.refused({"x": f(batch, 4)}, "'batch'", f"= {batch} ", "[2, 6]")
            self.refused({}, "'batch'", f"= {batch} ", "[2, 6]", dims=[f"batch={batch}"])
        self.right(model, {"x": f(6, 4)})

    def test_two_inputs_that_contradict_each_other(self):
        model = self.model([node("Add", ["x", "z"], ["y"])], {"x": ["batch", 4], "z": ["batch", 4]})
        self.refused({"x": f(3, 4), "z": f(5, 4)}, "'batch'", "5 here and 3 in 'x'", "input 'z'")
        self.right(model, {"x": f(3, 4), "z": f(3, 4)})

    def test_a_dimension_that_may_be_one(self):
        nodes = [node("Add", ["x", "z"], ["a"]), node("Mul", ["a", "w"], ["y"])]
        inputs, weights = {"x": ["n", 4], "z": ["m", 4]}, [constant("w", 1, 2, 3, 4, dtype=np.float32)]
        self.model(nodes, inputs, weights)
        self.refused({"x": f(1, 4), "z": f(5, 4)}, "5 here and 1 in 'x'", "--may-be-one")
        model = self.model(nodes, inputs, weights, "--may-be-one", "n", "--may-be-one", "m")
        for n, m in ((1, 5), (5, 1), (5, 5), (1, 1), (7, 1)):
            self.right(model, {"x": f(n, 4), "z": f(m, 4)})
        self.refused({"x": f(2, 4), "z": f(6, 4)}, "do not broadcast", "m = 6, n = 2")

    def test_expressions_that_contradict_other_inputs(self):
        model = self.model([node("Concat", ["x", "z"], ["c"], axis=0), node("Add", ["c", "m"], ["y"])], {"x": ["past", 4], "z": ["seq", 4], "m": ["past + seq", 4]})
        self.refused({"x": f(3, 4), "z": f(5, 4), "m": f(9, 4)}, "past+seq", "9 here and 8 by the other dimensions", "input 'm'")
        self.refused({"x": f(3, 4), "m": f(9, 4)}, "past+seq", "9", "8", dims=["seq=5"])
        self.right(model, {"x": f(3, 4), "z": f(5, 4), "m": f(8, 4)})

    def test_inputs_that_contradict_an_option(self):
        model = self.model([node("Tanh", ["x"], ["y"])], {"x": ["batch", 4]})
        self.refused({"x": f(3, 4)}, "'batch'", "3 here and was given as 5", "input 'x'", dims=["batch=5"])
        self.right(model, {"x": f(3, 4)}, dims=["batch=3"])

    def test_an_option_and_an_input_give_the_rest(self):
        model = self.model([node("Concat", ["x", "z"], ["c"], axis=0), node("Add", ["c", "m"], ["y"])], {"x": ["past", 4], "z": ["seq", 4], "m": ["past + seq", 4]})
        done = self.kiln("run", self.path("m.kiln"), *self.arguments({"m": f(9, 4)}), "--dim", "past=7", "--output-dir", self.path("out"))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(np.load(self.path("out/y.npy")).shape, (9, 4))

    def test_an_image_that_is_smaller_than_a_window(self):
        model = self.model([node("Conv", ["x", "w"], ["y"])], {"x": [1, 3, "height", 9]}, [numpy_helper.from_array(f(4, 3, 3, 3), "w")], rank=4)
        self.refused({"x": f(1, 3, 1, 9)}, "a window of 3 does not fit into height", "height = 1")
        self.right(model, {"x": f(1, 3, 3, 9)})

    def test_a_choice_of_more_than_there_is(self):
        """The shape rule of an operator that is part of a kernel."""
        nodes = [node("TopK", ["x", "k"], ["y", "where"])]
        model = self.model(nodes, {"x": [2, "time"]}, [numpy_helper.from_array(np.array([3], np.int64), "k")])
        self.refused({"x": f(2, 2)}, "cannot choose 3 of 2")
        self.right(model, {"x": f(2, 3)})

    def test_ranks_types_and_fixed_dimensions(self):
        model = self.model([node("Tanh", ["x"], ["y"])], {"x": ["batch", 4]})
        self.refused({"x": f(3, 4, 1)}, "input 'x'", "[3, 4, 1]", "[batch, 4]")
        self.refused({"x": f(3, 4).astype(np.float64)}, "input 'x'", "f64", "f32")
        self.refused({"x": f(3, 5)}, "input 'x'", "5 and must be 4")
        self.right(model, {"x": f(3, 4)})

    def test_models_without_open_dimensions(self):
        model = self.model([node("Tanh", ["x"], ["y"])], {"x": [3, 4]})
        self.refused({"x": f(3, 5)}, "input 'x'", "5 and must be 4")
        self.right(model, {"x": f(3, 4)})

    def test_a_reshape_that_needs_a_multiple(self):
        model = self.model([node("Reshape", ["x", "s"], ["y"])], {"x": ["n", 3]}, [constant("s", -1, 4)])
        self.refused({"x": f(5, 3)}, "n = 5")
        self.right(model, {"x": f(8, 3)})

    def test_halves_that_must_meet(self):
        """Concat of 2 * ceil(h / 4) rows with ceil(h / 2) rows: right for h = 3, 4, 7, 8, ..."""
        pool = {"kernel_shape": [1, 1], "ceil_mode": 0}
        nodes = [node("MaxPool", ["x"], ["half"], strides=[2, 1], **pool), node("MaxPool", ["x"], ["quarter"], strides=[4, 1], **pool), node("Resize", ["quarter", "", "scales"], ["twice"], mode="nearest"),
                 node("Concat", ["half", "twice"], ["y"], axis=1)]
        model = self.model(nodes, {"x": [1, 2, "h", 3]}, [constant("scales", 1, 1, 2, 1, dtype=np.float32)], rank=4)
        for h in (5, 9, 10):
            self.refused({"x": f(1, 2, h, 3)}, "h = %d" % h)
        for h in (8, 12, 7):
            self.right(model, {"x": f(1, 2, h, 3)})

    def test_sizes_that_must_be_equal(self):
        """An addition of rows and columns, which no declaration relates."""
        model = self.model([node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Concat", ["x", "t"], ["y"], axis=1)], {"x": ["a", "b"]})
        self.refused({"x": f(3, 5)}, "3", "5")
        self.right(model, {"x": f(4, 4)})

    def test_values_that_break_a_guard(self):
        """Sizes that are elements of an input."""
        nodes = [node("Reshape", ["x", "shape"], ["y"])]
        inputs = [tensor("x", ["n", 6]), helper.make_tensor_value_info("shape", T.INT64, [2])]
        model = self.save("m.onnx", nodes, inputs, [tensor("y", [None, None])])
        self.kiln("compile", model, "-o", self.path("m.kiln"))
        self.refused({"x": f(4, 6), "shape": np.array([5, 5])}, "f32[4, 6]", "f32[5, 5]", "value.shape.0 = 5")
        self.right(model, {"x": f(4, 6), "shape": np.array([8, 3])})

    def test_perf_and_verify(self):
        model = self.model([node("Tanh", ["x"], ["y"])], {"x": ["batch", 4]}, (), "--dim", "batch=2:6")
        self.assertIn("'batch' = 7", self.error_line(self.kiln("perf", self.path("m.kiln"), "--dim", "batch=7", code=5)))
        self.assertIn("'batch' = 7", self.error_line(self.kiln("finalize", self.path("m.kiln"), "--target", "sm_90", "-o", self.path("objects"), "--dim", "batch=7", code=5)))


if __name__ == "__main__":
    kiln_case.main()
