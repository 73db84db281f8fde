"""Files whose payloads crash MLIR's reader or make it loop, behind right hashes: one line that names the kernel, exit
3, and no signal."""
import os
import subprocess
import time

from onnx import TensorProto, helper

import kiln_case
from kiln_case import KilnCase

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile")
DIMS = {"heap_corruption": ["--dim", "batch=3"], "endless_loop": ["--dim", "batch=3"], "segmentation_fault": ["--dim", "batch=3"], "abort": []}
CULPRITS = {"heap_corruption": "c265b6ceed1f4900", "endless_loop": "ecf96cda652caf4e", "segmentation_fault": "8147bc77795b0f39", "abort": "0c92b977f15d7843"}


class Hostile(KilnCase):
    def refused(self, name, *arguments):
        began = time.monotonic()
        line = self.error_line(self.kiln(*arguments, code=3))
        self.assertLess(time.monotonic() - began, 30)
        self.assertIn(CULPRITS[name], line)  # what a corrupted heap leads to varies: one of the reader's own errors, or the end of its process

    def test_every_command_that_reads_payloads(self):
        for name, dims in DIMS.items():
            file, culprit = os.path.join(FOLDER, name + ".kiln"), CULPRITS[name]
            with self.subTest(name):
                self.refused(name, "run", file, "--no-cache", *dims)
                self.refused(name, "inspect", file, "--kernel", culprit, "--emit", "mlir")
                if not dims:
                    for form in ["llvm", "asm"]:
                        self.refused(name, "inspect", file, "--kernel", culprit, "--emit", form)
                    self.refused(name, "inspect", file, "--kernel", culprit, "--candidates", kiln_case.HOST)
                for target in [kiln_case.HOST, "gfx942", "sm_90"]:
                    self.refused(name, "finalize", file, "--target", target, "-o", self.path("objects"), "--no-cache", *dims)
                self.refused(name, "tune", file, "--budget", "1s", "--no-cache", *dims)

    def test_the_other_kernels_are_compiled(self):
        for name, dims in DIMS.items():
            with self.subTest(name):
                file = os.path.join(FOLDER, name + ".kiln")
                done = self.kiln("warm", file, "--target", kiln_case.HOST, "--cache", self.path(name), "--json", *dims, code=3)
                self.assertIn(CULPRITS[name], self.error_line(done))
                stats = self.json("cache", "stats", "--cache", self.path(name))
                self.assertEqual(stats["kernels"], 3)

    @kiln_case.no_memory_limit
    def test_a_size_that_no_kernel_takes_costs_no_memory(self):
        """A file whose input has 1.3 GB, as it says. The kernels are asked before the input is made."""
        done = self.kiln("run", os.path.join(FOLDER, "large_input.kiln"), "--no-cache", "--memory-limit", "1GiB", code=3)
        self.assertIn("input 0 is f32[1, 2, 31981574, 5], the kernel has f32[1, 2, 6, 5]", self.error_line(done))

    @kiln_case.no_memory_limit
    def test_an_input_that_nothing_reads_costs_no_memory(self):
        inputs = [kiln_case.tensor("x", [2, 3]), kiln_case.tensor("unread", [1 << 29])]
        model = self.save("model.onnx", [helper.make_node("Relu", ["x"], ["y"])], inputs, [kiln_case.tensor("y", [2, 3])])
        self.kiln("compile", model, "-o", self.path("model.kiln"))
        child = subprocess.Popen([kiln_case.KILN, "run", self.path("model.kiln"), "--no-cache", "--quiet"])
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        if not kiln_case.SANITIZER:
            self.assertLess(usage.ru_maxrss, 1 << 20)  # KiB; the input has 2 GiB

    def test_a_pipe_without_a_writer(self):
        model = self.save("model.onnx", [helper.make_node("Relu", ["x"], ["y"])], [kiln_case.tensor("x", [2, 3])], [kiln_case.tensor("y", [2, 3])])
        self.kiln("compile", model, "-o", self.path("model.kiln"))
        os.mkfifo(self.path("pipe"))
        for arguments in [["compile", model, "-o", self.path("x.kiln"), "--custom-op", self.path("pipe")],
                          ["warm", self.path("model.kiln"), "--replay", self.path("pipe"), "--target", kiln_case.HOST, "--cache", self.path("cache")]]:
            with self.subTest(arguments):
                began = time.monotonic()
                self.assertIn("nobody writes to it", self.error_line(self.kiln(*arguments, code=3)))
                self.assertLess(time.monotonic() - began, 30)

    def test_a_long_name_in_a_custom_operator(self):
        with open(self.path("long.hip"), "w") as source:
            source.write("int x = " + "a" * (1 << 20) + ";\n")
        model = self.save("model.onnx", [helper.make_node("Relu", ["x"], ["y"])], [kiln_case.tensor("x", [2, 3])], [kiln_case.tensor("y", [2, 3])])
        began = time.monotonic()
        self.kiln("compile", model, "-o", self.path("x.kiln"), "--custom-op", self.path("long.hip"), code=3)
        self.assertLess(time.monotonic() - began, 30)

    def test_files_without_an_end(self):
        """A sparse file of a terabyte and /dev/zero: refused before they are copied."""
        model = self.save("model.onnx", [helper.make_node("Relu", ["x"], ["y"])], [kiln_case.tensor("x", [2, 3])], [kiln_case.tensor("y", [2, 3])])
        self.kiln("compile", model, "-o", self.path("model.kiln"))
        os.mkdir(self.path("data"))
        sparse = [self.path("sparse"), self.path("data/input_0.pb")]
        for file in sparse:
            open(file, "wb").close()
            os.truncate(file, 1 << 40)
        limits = [] if kiln_case.SANITIZER else ["--memory-limit", "2GiB"]
        for file in [sparse[0], "/dev/zero"]:
            for arguments in [["compile", file, "-o", self.path("x.kiln"), *limits], ["compile", model, "-o", self.path("x.kiln"), "--custom-op", file, *limits],
                              ["run", self.path("model.kiln"), "--no-cache", "--input", "x=" + file, *limits],
                              ["warm", "--manifest", file, "--target", kiln_case.HOST, "--cache", self.path("cache")],
                              ["warm", self.path("model.kiln"), "--replay", file, "--target", kiln_case.HOST, "--cache", self.path("cache")]]:
                with self.subTest(arguments):
                    began = time.monotonic()
                    self.error_line(self.kiln(*arguments, code=3))
                    self.assertLess(time.monotonic() - began, 30)
        self.error_line(self.kiln("verify", model, "--inputs", self.path("data"), *limits, code=3))

    def test_sparse_tensors_that_are_large_as_dense_ones(self):
        """200 bytes of a file, 2 GiB of memory: one of them, and six of 200 MiB."""
        for count, elements in (1, (1 << 29) - 8), (6, 50 << 20):
            graph = helper.make_graph([helper.make_node("Add", ["x", f"w{i}"], [f"y{i}"]) for i in range(count)], "g", [kiln_case.tensor("x", [1])], [kiln_case.tensor(f"y{i}", [elements]) for i in range(count)])
            for i in range(count):
                graph.sparse_initializer.append(helper.make_sparse_tensor(helper.make_tensor(f"w{i}", TensorProto.FLOAT, [1], [1.0]), helper.make_tensor(f"i{i}", TensorProto.INT64, [1], [5]), [elements]))
            with open(self.path("m.onnx"), "wb") as file:
                file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
            limits = [] if kiln_case.SANITIZER else ["--memory-limit", "1GiB"]
            self.assertIn("sparse tensors take more than 256 MiB", self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), *limits, code=3)))

    def test_many_opsets(self):
        model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [kiln_case.tensor("x", [2])], [kiln_case.tensor("y", [2])]), opset_imports=[helper.make_opsetid("", 21)] + [helper.make_opsetid(f"d{i}", 1) for i in range(1 << 16)])
        with open(self.path("m.onnx"), "wb") as file:
            file.write(model.SerializeToString())
        self.assertIn("more than 1024 opsets", self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3)))

    def test_many_assumptions_about_a_long_model(self):
        """Each attempt to import it fails at its end, and finds one dimension more that must be equal."""
        names, nodes = ["x0"], []
        for i in range(1 << 15):
            nodes.append(helper.make_node("Relu", [names[-1]], [f"c{i}"]))
            names.append(f"c{i}")
        for i in range(1, 255):
            nodes.append(helper.make_node("Add", [names[-1], f"x{i}"], [f"s{i}"]))
            names.append(f"s{i}")
        model = self.save("m.onnx", nodes, [kiln_case.tensor(f"x{i}", [f"d{i}"]) for i in range(255)], [kiln_case.tensor(names[-1], ["d0"])])
        self.assertIn("do not suffice", self.error_line(self.kiln("compile", model, "-o", self.path("m.kiln"), code=3)))


if __name__ == "__main__":
    kiln_case.main()
