"""`compile --strip-weights` leaves the weights out, and `refit` gives them back, or others."""
import os

import numpy as np
import onnx
from onnx import helper, numpy_helper

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
        self.kiln("warm", plan, "--target", "x86-64-v3", "--embed")
        document = self.json("refit", plan, "--weights", self.model("second.onnx", 2), "-o", self.path("full.kiln"))
        self.assertGreater(document["objects"], 0)

    def test_a_plan_does_not_run(self):
        plan = self.plan(self.model("first.onnx", 1))
        for command in ("run", "perf"):
            self.assertIn("kiln refit", self.kiln(command, plan, "--dim", "N=2", code=3).stderr)
        self.kiln("inspect", plan, "--check")

    def test_another_model_is_refused(self):
        plan = self.plan(self.model("first.onnx", 1))
        other = self.model("wide.onnx", 1, width=48)
        self.assertIn("another model", self.kiln("refit", plan, "--weights", other, "-o", self.path("full.kiln"), code=1).stderr)
        self.assertFalse(os.path.exists(self.path("full.kiln")))
        self.kiln("compile", other, "-o", self.path("whole.kiln"))
        done = self.kiln("refit", self.path("whole.kiln"), "--weights", other, "-o", self.path("full.kiln"), code=2)
        self.assertIn("has weights already", done.stderr)


if __name__ == "__main__":
    main()
