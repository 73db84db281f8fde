"""Models that cannot be compiled, and files that cannot be read: one line that names the culprit, exit 3."""
import json
import os
import resource
import stat
import subprocess
import unittest

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

    @unittest.skipIf(kiln_case.SANITIZER == "thread", "ThreadSanitizer ends the process instead of throwing bad_alloc")
    def test_absurd_dimensions(self):
        self.kiln("compile", self.save("m.onnx", [helper.make_node("Sigmoid", ["x"], ["y"])], [tensor("x", ["n"])], [tensor("y", ["n"])]), "-o", self.path("m.kiln"), "--dim", f"n=1:{2**63 - 1}")
        codes = {2**62: 3, 2**62 + 1: 3, 2**63 - 1: 3}  # four bytes each wrap to 0, 4 and -4
        if kiln_case.SANITIZER != "address":  # whose operator new ends the process
            codes[10**13] = 4  # only too much
        for n, code in codes.items():
            self.error_line(self.kiln("run", self.path("m.kiln"), "--no-cache", "--quiet", "--dim", f"n={n}", code=code))

    def test_named_pipes(self):
        os.mkfifo(self.path("pipe.onnx"))
        self.refused(self.path("pipe.onnx"), "pipe.onnx", "not a regular file")
        w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
        w.external_data.add(key="location", value="pipe.onnx")
        self.refused(self.save("m.onnx", [helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [tensor("x", [3])], [tensor("y", [3])], [w]), "w", "pipe.onnx")
        self.assertIn("pipe.onnx", self.error_line(self.kiln("run", self.path("pipe.onnx"), code=3)))
        w.external_data[0].value = "a\0b"
        self.refused(self.save("m.onnx", [helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [tensor("x", [3])], [tensor("y", [3])], [w]), "w", "a\\x00b", "leaves the folder")

    def test_truncated_models(self):
        with open(self.conv_model(), "rb") as f:
            whole = f.read()
        for size in range(0, len(whole), 37):
            with open(self.path("cut.onnx"), "wb") as f:
                f.write(whole[:size])
            self.error_line(self.kiln("compile", self.path("cut.onnx"), "-o", self.path("cut.kiln"), code=3))

    def test_what_is_printed_has_to_arrive(self):
        file = self.compiled()
        with open("/dev/full", "w") as full:
            for arguments in [["run", file], ["run", file, "--json"], ["inspect", file], ["ops"], ["devices", "--json"], ["--help"], ["--version"]]:
                done = subprocess.run([kiln_case.KILN, *arguments, *(["--no-cache"] if "run" in arguments else [])], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (3, 1), arguments)
            # Nor does anything else depend on someone listening.
            self.assertEqual(subprocess.run([kiln_case.KILN, "run", "nosuch.kiln"], stderr=full).returncode, 3)
        closed = lambda: [os.close(stream) for stream in (0, 1, 2)]
        self.assertEqual(subprocess.run([kiln_case.KILN, "compile", self.conv_model(), "-o", self.path("again.kiln")], preexec_fn=closed).returncode, 3)  # its text did not arrive
        with open(file, "rb") as a, open(self.path("again.kiln"), "rb") as b:
            self.assertEqual(a.read(), b.read(), "what was printed must not land in the file")

    def test_names_that_are_not_text_or_not_different(self):
        file = self.compiled()
        odd = os.path.join(os.fsencode(self.dir), b"odd\xff.kiln")
        os.rename(file, odd)
        done = subprocess.run([kiln_case.KILN, "run", odd, "--json", "--no-cache"], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("odd\ufffd.kiln", json.loads(done.stdout)["file"])
        nodes = [helper.make_node("Relu", ["x"], ["a/b"]), helper.make_node("Neg", ["x"], ["a:b"])]
        file = self.compiled(self.save("m.onnx", nodes, [tensor("x", [2])], [tensor("a/b", [2]), tensor("a:b", [2])]))
        line = self.error_line(self.kiln("run", file, "--output-dir", self.path("out"), code=3))
        self.assertIn("a/b", line)
        self.assertIn("a:b", line)
        self.assertIn("twice", self.error_line(self.kiln("run", file, "--input", "x=" + self.vector(), "--input", "x=" + self.vector(), code=2)))

    def vector(self):
        np.save(self.path("x.npy"), np.ones(2, np.float32))
        return self.path("x.npy")

    def test_a_compile_that_is_killed_leaves_nothing(self):
        model = self.save("m.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", [1 << 23])], [tensor("y", [1 << 23])],
                          [numpy_helper.from_array(np.random.default_rng(0).standard_normal(1 << 23).astype(np.float32), "w")])
        os.mkdir(self.path("out"))
        for wait in [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]:
            running = subprocess.Popen([kiln_case.KILN, "compile", model, "-o", self.path("out/m.kiln")], stdout=subprocess.DEVNULL)
            try:
                running.wait(wait)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
            self.assertLessEqual(set(os.listdir(self.path("out"))), {"m.kiln"})
        limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        done = subprocess.run([kiln_case.KILN, "compile", model, "-o", self.path("out/large.kiln")], preexec_fn=limited, capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("large.kiln", self.error_line(done))
        self.assertLessEqual(set(os.listdir(self.path("out"))), {"m.kiln"})

    def test_unwritable_output(self):
        os.mkfifo(self.path("pipe"))
        for place in [self.path("pipe"), self.dir]:
            self.assertIn("not a regular file", self.error_line(self.kiln("compile", self.conv_model(), "-o", place, code=3)))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))
        self.error_line(self.kiln("compile", self.conv_model(), "-o", self.path("no/such/folder/o.kiln"), code=3))


if __name__ == "__main__":
    kiln_case.main()
