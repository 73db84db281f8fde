"""`compile --strip-weights` leaves the weights out, and `refit` gives them back, or others."""
import os

import numpy as np
import onnx
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, main, tensor


class Refit(KilnCase):
    def model(self, name, seed, width=32):
        """x[N, 64] -> MatMul, Add, Relu and MatMul with random weights."""
        random = np.random.default_rng(seed)
        sizes = {"a": (64, width), "b": (width,), "c": (width, 8)}
        weights = [numpy_helper.from_array(random.normal(size=size).astype(np.float32), label) for label, size in sizes.items()]
        steps = [("MatMul", ["x", "a"], "t"), ("Add", ["t", "b"], "u"), ("Relu", ["u"], "v"), ("MatMul", ["v", "c"], "y")]
        made = [helper.make_node(operator, inputs, [output]) for operator, inputs, output in steps]
        return self.save(name, made, [tensor("x", ["N", 64])], [tensor("y", ["N", 8])], weights)

    def plan(self, model, *options):
        plan = self.path("plan.kiln")
        self.kiln("compile", model, "-o", plan, "--strip-weights", *options)
        return plan

    def test_other_weights(self):
        first, second = self.model("first.onnx", 1), self.model("second.onnx", 2)
        plan = self.plan(first, "--dim", "N=5")
        whole = self.path("whole.kiln")
        self.kiln("compile", first, "-o", whole, "--dim", "N=5")
        self.assertLess(os.path.getsize(plan), os.path.getsize(whole) - 8000)  # 64 * 32 * 4 bytes and more
        for model in (first, second):
            self.kiln("compile", model, "-o", whole, "--dim", "N=5")
            document = self.json("refit", plan, "--weights", model, "-o", self.path("full.kiln"))
            self.assertEqual(document["bytes"], os.path.getsize(whole))
            # The same bytes as a file that never was without weights.
            with open(whole, "rb") as a, open(self.path("full.kiln"), "rb") as b:
                self.assertEqual(a.read(), b.read())

    def test_kernels_of_the_plan_are_found(self):
        plan, cache = self.plan(self.model("first.onnx", 1), "--dim", "N=5"), self.path("cache")
        self.kiln("finalize", plan, "--target", "native", "-o", self.path("objects"), "--cache", cache)
        self.kiln("refit", plan, "--weights", self.model("second.onnx", 2), "-o", self.path("full.kiln"))
        document = self.json("run", self.path("full.kiln"), "--device", "host", "--cache", cache)
        self.assertEqual(document["cache"]["misses"], 0)

    def test_objects_in_the_file_stay(self):
        plan = self.plan(self.model("first.onnx", 1), "--dim", "N=5")
        self.kiln("warm", plan, "--target", kiln_case.HOST, "--embed")
        document = self.json("refit", plan, "--weights", self.model("second.onnx", 2), "-o", self.path("full.kiln"))
        self.assertGreater(document["objects"], 0)

    def test_a_plan_does_not_run(self):
        plan = self.plan(self.model("first.onnx", 1))
        for command in ("run", "perf"):
            self.assertIn("kiln refit", self.kiln(command, plan, "--dim", "N=2", code=3).stderr)
        self.kiln("inspect", plan, "--check")

    def test_older_readers_refuse_it(self):
        # They know nothing of such files, and refuse a format version that they do not know.
        first = self.model("first.onnx", 1)
        self.kiln("compile", first, "-o", self.path("whole.kiln"))
        for file, version in ((self.plan(first), 2), (self.path("whole.kiln"), 1)):
            self.assertEqual(self.json("inspect", file)["format_version"], version)
            with open(file, "rb") as opened:
                self.assertEqual(opened.read(12)[8:], bytes([version, 0, 0, 0]))
        self.kiln("refit", self.path("plan.kiln"), "--weights", first, "-o", self.path("full.kiln"))
        self.assertEqual(self.json("inspect", self.path("full.kiln"))["format_version"], 1)

    def test_weights_for_one_run(self):
        first, second = self.model("first.onnx", 1), self.model("second.onnx", 2)
        plan = self.plan(first)
        x = np.random.default_rng(3).normal(size=(5, 64)).astype(np.float32)
        np.save(self.path("x.npy"), x)
        for model in (first, second):
            results = []
            self.kiln("compile", model, "-o", self.path("whole.kiln"))
            for folder, command in (("a", [plan, "--weights", model]), ("b", [self.path("whole.kiln")])):
                self.kiln("run", *command, "--input", f"x={self.path('x.npy')}", "--output-dir", self.path(folder))
                results.append(np.load(self.path(f"{folder}/y.npy")))
            np.testing.assert_array_equal(*results)
            a, b, c = (numpy_helper.to_array(t) for t in onnx.load(model).graph.initializer)
            np.testing.assert_allclose(results[0], np.maximum(x @ a + b, 0) @ c, rtol=1e-4, atol=1e-4)
        self.assertEqual(sorted(os.listdir(self.dir)), sorted({"a", "b", "first.onnx", "plan.kiln", "second.onnx", "whole.kiln", "x.npy"} | (set(os.listdir(self.dir)) & {"cache", "config"})))
        self.json("perf", plan, "--weights", first, "--dim", "N=2", "-n", "2")
        self.json("tune", plan, "--weights", first, "--dim", "N=2", "--budget", "1s", "--quick")

    def test_weights_for_the_kernels_of_the_plan(self):
        plan = self.plan(self.model("first.onnx", 1), "--dim", "N=5")
        self.kiln("warm", plan, "--target", "native", "--embed")
        document = self.json("run", plan, "--weights", self.model("second.onnx", 2), "--cache", self.path("other"))
        self.assertEqual(document["cache"]["misses"], 0)
        self.assertGreater(document["cache"]["layers"]["embedded"], 0)

    def test_a_plan_is_verified(self):
        first = self.model("first.onnx", 1)
        plan = self.plan(first, "--fp16")
        document = self.json("verify", plan, "--weights", first, "--dim", "N=3", "--per-kernel")
        self.assertTrue(document["ok"])
        self.assertEqual(document["model"], first)
        self.assertIn("as the file was", self.kiln("verify", plan, "--weights", first, "--bf16", code=2).stderr)
        self.assertIn("verify " + first, self.kiln("verify", plan, "--weights", first, "--bisect", self.path("p.onnx"), code=2).stderr)

    def test_weights_that_do_not_fit(self):
        first, other = self.model("first.onnx", 1), self.model("wide.onnx", 1, width=48)
        plan = self.plan(first)
        for command in ("run", "verify"):
            self.assertIn("another model", self.kiln(command, plan, "--weights", other, "--dim", "N=2", code=1).stderr)
        self.kiln("compile", first, "-o", self.path("whole.kiln"))
        done = self.kiln("run", self.path("whole.kiln"), "--weights", first, "--dim", "N=2", code=2)
        self.assertIn("has weights already", done.stderr)

    def test_another_model_is_refused(self):
        plan = self.plan(self.model("first.onnx", 1))
        other = self.model("wide.onnx", 1, width=48)
        self.assertIn("another model", self.kiln("refit", plan, "--weights", other, "-o", self.path("full.kiln"), code=1).stderr)
        self.assertFalse(os.path.exists(self.path("full.kiln")))
        self.kiln("compile", other, "-o", self.path("whole.kiln"))
        done = self.kiln("refit", self.path("whole.kiln"), "--weights", other, "-o", self.path("full.kiln"), code=2)
        self.assertIn("has weights already", done.stderr)

    def test_parts_of_a_model_need_one(self):
        self.assertIn("--weights", self.error_line(self.kiln("run", self.path("whole.kiln"), "--external-weights", self.dir, code=2)))


if __name__ == "__main__":
    main()
