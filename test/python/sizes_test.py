"""Open dimensions: one session, many sizes; sizes that depend on values and on data."""
import unittest

import kiln
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from python_case import PythonCase, conv_model, model_of, reference, tensor


class Sizes(PythonCase):
    def test_one_session_takes_any_size(self):
        model = conv_model()
        rng = np.random.default_rng(5)
        for specialization in ["lazy", "eager"]:
            with kiln.compile(model).session(specialization=specialization, most_programs=2) as session:
                for n in [1, 3, 2, 5, 1, 3]:  # more sizes than programs are kept
                    x = rng.standard_normal((n, 3, 9, 7)).astype(np.float32)
                    self.assert_close(session(x), reference(model, {"x": x})["y"])

    def test_sizes_outside_of_the_range_are_refused(self):
        with kiln.compile(conv_model(), dims={"N": (2, 4)}).session(threads=1) as session:
            session(np.zeros((2, 3, 9, 7), np.float32))
            with self.assertRaisesRegex(kiln.errors.InvalidShapeError, "'N'"):
                session(np.zeros((5, 3, 9, 7), np.float32))
            with self.assertRaisesRegex(kiln.errors.InvalidShapeError, "'x'"):
                session(np.zeros((2, 3, 9, 8), np.float32))
            with self.assertRaisesRegex(kiln.errors.InvalidShapeError, "'x'"):
                session(np.zeros((2, 3, 9), np.float32))
            session(np.zeros((4, 3, 9, 7), np.float32))  # it stays usable

    def test_inputs_that_contradict_each_other_are_refused(self):
        nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
        model = model_of(nodes, [tensor("x", ["N", 2]), tensor("z", ["N", 2])], [tensor("y", ["N", 2])])
        with kiln.compile(model).session(threads=1) as session:
            with self.assertRaisesRegex(kiln.errors.InvalidShapeError, "input 'z'.*'N' is 4 here and 3 in 'x'"):
                session(np.zeros((3, 2), np.float32), np.zeros((4, 2), np.float32))
            self.assertEqual(session(np.zeros((3, 2), np.float32), np.zeros((3, 2), np.float32)).shape, (3, 2))

    def test_sizes_that_break_a_rule_of_the_model_are_refused(self):
        shape = numpy_helper.from_array(np.array([-1, 4], np.int64), "shape")
        nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
        model = model_of(nodes, [tensor("x", ["N", 3])], [tensor("y", [None, 4])], [shape])
        with kiln.compile(model).session(threads=1) as session:
            with self.assertRaisesRegex(kiln.errors.InvalidShapeError, "N = 5"):
                session(np.zeros((5, 3), np.float32))
            self.assertEqual(session(np.zeros((8, 3), np.float32)).shape, (6, 4))

    def test_elements_of_an_input_may_be_sizes(self):
        nodes = [helper.make_node("Expand", ["x", "shape"], ["y"])]
        model = model_of(nodes, [tensor("x", [1]), tensor("shape", [2], TensorProto.INT64)], [tensor("y", None)])
        x = np.array([7], np.float32)
        with kiln.compile(model).session(threads=1) as session:
            for shape in [(2, 3), (4, 1), (2, 3), (1, 1)]:
                got = session.run({"x": x, "shape": np.array(shape, np.int64)})["y"]
                self.assertEqual(got.shape, shape)
                self.assertTrue((got == 7).all())

    def test_dims_that_no_input_decides_are_given_with_the_session(self):
        nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
        model = model_of(nodes, [tensor("x", ["N", "M"])], [tensor("y", ["N", "M"])])
        with kiln.compile(model).session(threads=1, dims={"N": 2}) as session:
            self.assertEqual(session(np.zeros((2, 5), np.float32)).shape, (2, 5))
            with self.assertRaisesRegex(kiln.errors.InvalidShapeError, "'N' is 3 here and was given as 2"):
                session(np.zeros((3, 5), np.float32))

    def test_outputs_whose_size_depends_on_data_are_cut(self):
        nodes = [helper.make_node("NonZero", ["x"], ["where"]), helper.make_node("Add", ["x", "x"], ["twice"])]
        model = model_of(nodes, [tensor("x", [3, 4])], [tensor("where", [2, None], TensorProto.INT64), tensor("twice", [3, 4])])
        with kiln.compile(model).session(threads=1) as session:
            for x in [np.eye(3, 4, dtype=np.float32), np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)]:
                got = session.run({"x": x})
                expected = reference(model, {"x": x})
                self.assertEqual(sorted(got), ["twice", "where"])
                self.assertTrue(np.array_equal(got["where"], expected["where"]))
            where, twice = session(x)
            self.assertEqual(where.shape, (2, 0))

    def test_data_decide_sizes_without_a_bound(self):
        nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Cast", ["sum"], ["end"], to=TensorProto.INT64), helper.make_node("Range", ["zero", "end", "one"], ["y"])]
        numbers = [numpy_helper.from_array(np.array(v), n) for v, n in ((0, "zero"), (1, "one"))]
        model = model_of(nodes, [tensor("x", ["N"])], [tensor("y", [None], TensorProto.INT64)], numbers)
        with kiln.compile(model).session(threads=1) as session:
            for x in ([1, 2, 3], [4, 0, 0], [2.5], [1, 2, 3], [0]):
                self.assertTrue(np.array_equal(session(np.array(x, np.float32)), np.arange(int(sum(x)))))

    def test_empty_and_scalar_tensors(self):
        axes = numpy_helper.from_array(np.array([0], np.int64), "axes")
        nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
        model = model_of(nodes, [tensor("x", ["N"])], [tensor("y", [])], [axes])
        with kiln.compile(model, dims={"N": "0:10"}).session(threads=1) as session:
            got = session(np.zeros(0, np.float32))
            self.assertEqual((got.shape, float(got)), ((), 0.0))
            self.assertEqual(float(session(np.arange(4, dtype=np.float32))), 6.0)


if __name__ == "__main__":
    unittest.main()
