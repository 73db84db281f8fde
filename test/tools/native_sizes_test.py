"""Files of native kernels that serve all sizes of the open dimensions."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper

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
        self.kiln("finalize", file, "--target", kiln_case.HOST, "--specialize", "off", "--native-file", native)
        for batch in (2, 7, 33, 64):
            given = [word for name in ("a", "b") for word in ("--input", self.array(name, batch, 4))]
            for each, folder in ((file, "portable"), (native, "native")):
                self.kiln("run", each, *given, "--output-dir", self.path(folder))
            np.testing.assert_allclose(np.load(self.path("native/y.npy")), np.load(self.path("portable/y.npy")), rtol=1e-5)
        self.assertIn("'batch' = 65", self.error_line(self.kiln("run", native, "--dim", "batch=65", code=5)))

    def test_a_native_file_for_one_set_of_sizes_needs_no_folder(self):
        file, native = self.sum("--dim", "batch=4"), self.path("native.kiln")
        self.assertIn("1 kernel on", self.kiln("finalize", file, "--target", kiln_case.HOST, "--native-file", native).stdout)
        self.kiln("run", native)
        self.assertIn("--native-file", self.error_line(self.kiln("finalize", file, "--target", kiln_case.HOST, code=2)))

    # A convolution has no form for all sizes of its weights.
    def test_a_kernel_for_one_set_of_sizes_is_named(self):
        nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="dense")]
        model = self.save("m.onnx", nodes, [tensor("x", [1, 2, 8, 5]), tensor("w", ["features", 2, 3, 3])], [helper.make_tensor_value_info("y", T.FLOAT, None)])
        line = self.error_line(self.kiln("finalize", self.compiled(model), "--target", kiln_case.HOST, "--specialize", "off", "--native-file", self.path("n.kiln"), code=3))
        self.assertIn("dense", line)
        self.assertIn("--dim", line)
        self.kiln("finalize", self.path("m.kiln"), "--target", kiln_case.HOST, "--specialize", "off", "--native-file", self.path("n.kiln"), "--dim", "features=4")
        self.kiln("run", self.path("n.kiln"))


if __name__ == "__main__":
    kiln_case.main()
