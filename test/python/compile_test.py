"""kiln.compile, Model.save, kiln.open, Session.run: from a model in any form to onnxruntime's answers."""
import os
import subprocess
import sys
import unittest

import kiln
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from python_case import PythonCase, add_model, conv_model, model_of, reference, tensor


class Compile(PythonCase):
    def test_a_saved_file_gives_the_answers_of_onnxruntime(self):
        onnx_model = conv_model(batch=2)
        model = kiln.compile(onnx_model)
        saved = model.save(self.path("conv.kiln"))
        model.close()
        self.assertFalse(os.path.exists(model.path))
        self.assertEqual(saved.path, self.path("conv.kiln"))
        x = np.random.default_rng(2).standard_normal((2, 3, 9, 7)).astype(np.float32)
        with kiln.open(self.path("conv.kiln")).session() as session:
            results = session.run({"x": x})
        self.assertEqual(list(results), ["y"])
        self.assert_close(results["y"], reference(onnx_model, {"x": x})["y"])

    def test_models_come_in_many_forms(self):
        proto = add_model()
        onnx.save(proto, self.path("add.onnx"))
        a, b = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
        for form in [proto, proto.SerializeToString(), bytearray(proto.SerializeToString()), self.path("add.onnx")]:
            with kiln.compile(form) as model, model.session(threads=1) as session:
                total, difference = session(a, b)
                self.assertTrue((total == 3).all())
                self.assertTrue((difference == -1).all())

    def test_weights_are_given_to_a_file_without(self):
        def scaled(factor):
            proto = conv_model()
            values = numpy_helper.to_array(proto.graph.initializer[0])
            proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(values * np.float32(factor), "w"))
            return proto

        x = np.random.default_rng(2).standard_normal((2, 3, 9, 7)).astype(np.float32)
        plan = kiln.compile(scaled(1), self.path("plan.kiln"), strip_weights=True)
        self.assertFalse(plan.has_weights)
        self.assertIn("without weights", repr(plan))
        with self.assertRaisesRegex(kiln.errors.UnsupportedError, "its weights were stripped"):
            plan.session(threads=1).run({"x": x})
        onnx.save(scaled(3), self.path("other.onnx"))
        for weights, factor in [(scaled(1), 1), (self.path("other.onnx"), 3)]:
            expected = reference(scaled(factor), {"x": x})["y"]
            for whole in (plan.refit(weights), plan.refit(weights, self.path("whole.kiln")), kiln.open(plan.path, weights=weights)):
                self.assertTrue(whole.has_weights)
                with whole, whole.session(threads=1) as session:
                    self.assert_close(session(x), expected)
        self.assertTrue(os.path.exists(self.path("whole.kiln")))
        with self.assertRaisesRegex(kiln.errors.MismatchError, "another model"):
            plan.refit(add_model())
        with self.assertRaisesRegex(kiln.errors.UsageError, "has weights already"):
            kiln.open(self.path("whole.kiln"), weights=scaled(1))

    def test_a_network_runs(self):
        path = os.path.join(os.environ["KILN_MODELS"], "squeezenet1_1.onnx")
        with kiln.compile(path) as model, model.session() as session:
            x = np.random.default_rng(3).random((1, 3, 224, 224), np.float32)
            self.assert_close(session(x), next(iter(reference(path, {"input": x}).values())))

    def test_output_names_the_file(self):
        model = kiln.compile(add_model(), self.path("add.kiln"))
        model.close()
        self.assertTrue(os.path.exists(self.path("add.kiln")))

    def test_a_temporary_model_goes_with_its_last_reference(self):
        model = kiln.compile(add_model())
        path = model.path
        session = model.session(threads=1)
        del model
        self.assertTrue(os.path.exists(path))  # the session holds it
        session.close()
        del session
        self.assertFalse(os.path.exists(os.path.dirname(path)))

    def test_the_compiler_takes_the_options_of_the_command(self):
        model = conv_model()
        fixed = kiln.compile(model, dims={"N": 4})
        self.assertEqual(fixed.inputs[0].shape, (4, 3, 9, 7))
        ranged = kiln.compile(model, dims={"N": (1, 8)})
        self.assertEqual(ranged.dims, {"N": (1, 8)})
        self.assertEqual(kiln.compile(model, dims={"N": (1, 8, [2, 4])}).dims["N"].max, 8)
        self.assertEqual(kiln.compile(model, dims={"N": "2:3"}).dims["N"], (2, 3))
        half = kiln.compile(model, dims={"N": 1}, precision="fp16")
        x = np.random.default_rng(4).standard_normal((1, 3, 9, 7)).astype(np.float32)
        with half.session() as session:
            got = session(x)
        self.assertEqual(got.dtype, np.float32)
        expected = reference(model, {"x": x})["y"]
        self.assert_close(got, expected, 0.05)
        self.assertTrue((got != expected).any())

    def test_values_make_inputs_constants(self):
        nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
        model = model_of(nodes, [tensor("x", [2, 3]), tensor("axes", ["n"], TensorProto.INT64)], [tensor("y", None)])
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for axes in [np.array([1]), [1], (0, 1)]:
            with kiln.compile(model, values={"axes": axes}).session(threads=1) as session:
                self.assertTrue(np.array_equal(session(x), x.sum(tuple(axes))))

    def test_models_and_sessions_tell_their_shapes(self):
        model = kiln.compile(conv_model())
        self.assertEqual(str(model.inputs[0]), "x: f32[N, 3, 9, 7]")
        self.assertEqual(model.inputs[0].dtype, np.float32)
        self.assertIn("(x: f32[N, 3, 9, 7]) -> (y: f32[N, 5, 9, 7])", repr(model))
        session = model.session(threads=1)
        self.assertIn("on host: (x: f32[N, 3, 9, 7])", repr(session))
        self.assertIsNone(session.last_program())
        session(np.zeros((1, 3, 9, 7), np.float32))
        self.assertGreaterEqual(session.last_program()["kernels"], 1)
        self.assertIn("arena_bytes", session._repr_html_())
        session.close()
        self.assertIn("closed", repr(session))

    def test_notebooks_show_every_kernel(self):
        model = kiln.compile(conv_model())
        kernels = model.kernels()
        html = model._repr_html_()
        self.assertGreaterEqual(len(kernels), 1)
        for kernel in kernels:
            self.assertIn(kernel["hash"][:10], html)
        self.assertEqual(html.count("<svg"), len(kernels))
        self.assertIn("N × 3 × 9 × 7", html)

    def test_the_module_is_the_command_line(self):
        shown = subprocess.run([sys.executable, "-m", "kiln", "--version"], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        wrong = subprocess.run([sys.executable, "-m", "kiln", "compile"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertTrue(wrong.stderr.startswith("kiln: usage: "), wrong.stderr)


if __name__ == "__main__":
    unittest.main()
