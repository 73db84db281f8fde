"""Models that cannot be compiled, and files that cannot be read: one line that names the culprit, exit 3."""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor


class Errors(KilnCase):
    def refused(self, model, *words):
        line = self.error_line(self.kiln("compile", model, "-o", self.path("out.kiln"), code=3))
        for word in words:
            self.assertIn(word, line)
        self.assertFalse(os.path.exists(self.path("out.kiln")))

    def test_unknown_operator(self):
        self.refused(self.save("m.onnx", [helper.make_node("Frobnicate", ["x"], ["y"], name="odd_one")], [tensor("x", [2])], [tensor("y", [2])]), "odd_one", "Frobnicate")

    def test_unknown_domain(self):
        self.refused(self.save("m.onnx", [helper.make_node("Relu", ["x"], ["y"], name="odd_one", domain="com.example")], [tensor("x", [2])], [tensor("y", [2])]), "odd_one", "com.example")

    def test_wrong_shape(self):
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
        w = numpy_helper.from_array(np.zeros((4, 5), np.float32), "w")
        self.refused(self.save("m.onnx", nodes, [tensor("x", [2, 3])], [tensor("y", [2, 5])], [w]), "product")

    def test_wrong_broadcast(self):
        nodes = [helper.make_node("Add", ["a", "b"], ["y"], name="sum")]
        self.refused(self.save("m.onnx", nodes, [tensor("a", [2, 3]), tensor("b", [4])], [tensor("y", [2, 3])]), "sum")

    def test_missing_external_data(self):
        w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
        w.external_data.add(key="location", value="nowhere.bin")
        self.refused(self.save("m.onnx", [helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [tensor("x", [3])], [tensor("y", [3])], [w]), "w", "nowhere.bin")

    def test_external_data_in_another_file(self):
        w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
        w.external_data.add(key="location", value="nowhere.bin")
        model = self.save("m.onnx", [helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [tensor("x", [3])], [tensor("y", [3])], [w])
        np.array([1, 2, 3], np.float32).tofile(self.path("elsewhere.bin"))
        self.kiln("compile", model, "-o", self.path("m.kiln"), "--external-weights", self.path("elsewhere.bin"))
        np.save(self.path("x.npy"), np.array([10, 20, 30], np.float32))
        self.kiln("run", self.path("m.kiln"), "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
        np.testing.assert_array_equal(np.load(self.path("out/y.npy")), [11, 22, 33])

    def test_external_data_outside_the_folder(self):
        w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
        w.external_data.add(key="location", value="../../../../etc/passwd")
        self.refused(self.save("m.onnx", [helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [tensor("x", [3])], [tensor("y", [3])], [w]), "w")

    def test_undefined_input(self):
        self.refused(self.save("m.onnx", [helper.make_node("Add", ["x", "ghost"], ["y"], name="sum")], [tensor("x", [3])], [tensor("y", [3])]), "ghost")

    def test_not_a_model(self):
        for content in [b"", b"hello", os.urandom(4096)]:
            with open(self.path("m.onnx"), "wb") as f:
                f.write(content)
            self.refused(self.path("m.onnx"), "m.onnx")

    def test_missing_files(self):
        self.assertIn("none.onnx", self.error_line(self.kiln("compile", self.path("none.onnx"), "-o", self.path("o.kiln"), code=3)))
        for command in ["run", "perf", "inspect"]:
            self.assertIn("none.kiln", self.error_line(self.kiln(command, self.path("none.kiln"), code=3)))

    def test_absurd_dimensions(self):
        self.kiln("compile", self.save("m.onnx", [helper.make_node("Sigmoid", ["x"], ["y"])], [tensor("x", ["n"])], [tensor("y", ["n"])]), "-o", self.path("m.kiln"), "--dim", f"n=1:{2**63 - 1}")
        for n in [2**62, 2**62 + 1, 2**63 - 1, 10**13]:  # four bytes each wrap to 0, 4 and -4; the last is only too much
            self.error_line(self.kiln("run", self.path("m.kiln"), "--no-cache", "--quiet", "--dim", f"n={n}", code=3))

    def test_named_pipes(self):
        os.mkfifo(self.path("pipe.onnx"))
        self.refused(self.path("pipe.onnx"), "pipe.onnx", "not a regular file")
        w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
        w.external_data.add(key="location", value="pipe.onnx")
        self.refused(self.save("m.onnx", [helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [tensor("x", [3])], [tensor("y", [3])], [w]), "w", "pipe.onnx")
        self.assertIn("pipe.onnx", self.error_line(self.kiln("run", self.path("pipe.onnx"), code=3)))

    def test_truncated_models(self):
        with open(self.conv_model(), "rb") as f:
            whole = f.read()
        for size in range(0, len(whole), 37):
            with open(self.path("cut.onnx"), "wb") as f:
                f.write(whole[:size])
            self.error_line(self.kiln("compile", self.path("cut.onnx"), "-o", self.path("cut.kiln"), code=3))

    def test_unwritable_output(self):
        self.error_line(self.kiln("compile", self.conv_model(), "-o", self.path("no/such/folder/o.kiln"), code=3))


if __name__ == "__main__":
    kiln_case.main()
