"""Files of native kernels that serve all sizes of the open dimensions."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor


class NativeSizes(KilnCase):
    def array(self, name, *dims):
        np.save(self.path(name + ".npy"), np.random.default_rng(3).standard_normal(dims).astype(np.float32))
        return f"{name}={self.path(name + '.npy')}"

    def compiled(self, model, *arguments):
        self.kiln("compile", model, "-o", self.path("m.kiln"), *arguments)
        return self.path("m.kiln")

    def sum(self, *arguments):
        nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Tanh", ["s"], ["y"])]
        return self.compiled(self.save("m.onnx", nodes, [tensor("a", ["batch", 4]), tensor("b", ["batch", 4])], [tensor("y", ["batch", 4])]), *arguments)

    def test_a_native_file_for_all_sizes(self):
        file, native = self.sum("--dim", "batch=2:64"), self.path("native.kiln")
        self.kiln("finalize", file, "--target", "x86-64-v3", "--specialize", "off", "--native-file", native)
        for batch in (2, 7, 33, 64):
            given = [word for name in ("a", "b") for word in ("--input", self.array(name, batch, 4))]
            for each, folder in ((file, "portable"), (native, "native")):
                self.kiln("run", each, *given, "--output-dir", self.path(folder))
            np.testing.assert_allclose(np.load(self.path("native/y.npy")), np.load(self.path("portable/y.npy")), rtol=1e-5)
        self.assertIn("'batch' = 65", self.error_line(self.kiln("run", native, "--dim", "batch=65", code=5)))

    def test_a_kernel_for_one_set_of_sizes_is_named(self):
        nodes = [helper.make_node("CumSum", ["x", "axis"], ["y"], name="running")]
        model = self.save("m.onnx", nodes, [tensor("x", ["n", 4])], [tensor("y", ["n", 4])], [numpy_helper.from_array(np.array(0, np.int64), "axis")])
        file = self.compiled(model)
        if "cumulative_sum" not in self.json("inspect", file)["missing_forms"]:
            self.skipTest("this kind has a form for all sizes by now")
        line = self.error_line(self.kiln("finalize", file, "--target", "x86-64-v3", "--specialize", "off", "--native-file", self.path("n.kiln"), code=3))
        self.assertIn("running", line)
        self.assertIn("--dim", line)


if __name__ == "__main__":
    kiln_case.main()
