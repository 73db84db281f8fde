"""The options that those who switch look for, and every command of docs/migrate.md."""
import json
import os
import re
import shlex

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Migrate(KilnCase):
    def open_model(self):
        """x[batch, 3, 8, 8] -> Conv, Relu -> y."""
        weights = numpy_helper.from_array(np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
        self.save("model.onnx", nodes, [tensor("x", ["batch", 3, 8, 8])], [tensor("y", ["batch", 4, 8, 8])], [weights])
        os.mkdir(self.path("inputs"))
        x = np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype(np.float32)
        np.save(self.path("inputs/x.npy"), x)
        return self.path("model.onnx")

    def open_file(self):
        self.kiln("compile", self.open_model(), "-o", self.path("model.kiln"))
        return self.path("model.kiln")

    def test_every_command_of_the_page(self):
        self.open_model()
        with open(os.path.join(TOP, "docs/migrate.md")) as page:
            lines = page.read().splitlines()
        commands = [(c, 1 if "(exit code 1)" in line else 0) for line in lines for c in re.findall(r"`kiln ([^`]+)`", line) if line.startswith("|")]
        self.assertGreater(len(commands), 40)
        for command, code in dict.fromkeys(commands):
            with self.subTest(command):
                self.kiln(*shlex.split(command), cwd=self.dir, code=code)

    def test_compile_takes_shapes(self):
        model = self.conv_model(batch="N")
        self.kiln("compile", model, "-o", self.path("five.kiln"), "--shape", "x:5x3x9x7")
        self.assertEqual(self.json("inspect", self.path("five.kiln"))["inputs"], [{"name": "x", "shape": "f32[5, 3, 9, 7]"}])
        self.kiln("compile", model, "-o", self.path("fixed.kiln"), "--dim", "N=5")
        self.kiln("diff", self.path("five.kiln"), self.path("fixed.kiln"))
        for more, code, words in [(["--shape", "x:5x4x9x7"], 5, "'x'"), (["--shape", "z:5"], 2, "has none of this name"), (["--shape", "x:5x3x9x7", "--dim", "N=3"], 5, "'x'")]:
            with self.subTest(more=more):
                self.assertIn(words, self.error_line(self.kiln("compile", model, "-o", self.path("x.kiln"), *more, code=code)))

    def test_a_shape_gives_open_dimensions(self):
        file = self.open_file()
        self.assertEqual(self.json("run", file, "--shape", "x:5x3x8x8")["outputs"], [{"name": "y", "shape": "f32[5, 4, 8, 8]"}])
        for text, code, words in [("x:5x4x8x8", 5, "'x'"), ("x:5", 5, "'x'"), ("z:1x3", 2, "has none of this name"), ("x", 2, "--shape takes"), ("x:5x", 2, "is not sizes"), ("x:-1x3x8x8", 2, "is not sizes"), ("x:1x3x8x8,x:1x3x8x8", 2, "give it once")]:
            with self.subTest(text):
                self.assertIn(words, self.error_line(self.kiln("run", file, "--shape", text, code=code)))
        self.assertIn("3", self.error_line(self.kiln("run", file, "--shape", "x:5x3x8x8", "--dim", "batch=3", code=5)))

    def test_inputs_are_filled(self):
        nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
        model = self.save("add.onnx", nodes, [tensor("a", ["n", 4]), tensor("b", [4])], [tensor("y", ["n", 4])])
        self.kiln("compile", model, "-o", self.path("add.kiln"))
        document = self.json("run", self.path("add.kiln"), "--dim", "n=2", "--fill", "a=0.5", "--fill", "b=-3", "--dump-output")
        self.assertEqual(document["outputs"][0]["elements"], [-2.5] * 8)
        for given, words in [(["c=1"], "has none of this name"), (["a"], "NAME=VALUE"), (["a=x"], "is not a number"), (["a=1", "--fill", "a=2"], "given twice")]:
            with self.subTest(given):
                self.assertIn(words, self.error_line(self.kiln("run", self.path("add.kiln"), "--dim", "n=2", "--fill", *given, code=2)))
        # Elements that are sizes.
        nodes = [helper.make_node("Expand", ["x", "sizes"], ["y"])]
        model = self.save("expand.onnx", nodes, [tensor("x", [1]), tensor("sizes", [2], TensorProto.INT64)], [tensor("y", ["m", "n"])])
        self.kiln("compile", model, "-o", self.path("expand.kiln"))
        document = self.json("run", self.path("expand.kiln"), "--fill", "sizes=3", "--fill", "x=2", "--dump-output")
        self.assertEqual(document["outputs"], [{"name": "y", "shape": "f32[3, 3]", "elements": [2] * 9}])
        self.assertIn("is not a number of type i64", self.error_line(self.kiln("run", self.path("expand.kiln"), "--fill", "sizes=2.5", code=2)))

    def test_words_of_other_tools(self):
        file = self.open_file()
        for arguments, words in [
            (["perf", file, "--exportTimes=t.json"], "--exportTimes: kiln perf has no such option; here it is: --times FILE"),
            (["run", file, "--fill1", "x"], "here it is: --fill INPUT=1"),
            (["compile", "--onnx=model.onnx"], "here it is: the model is an argument without an option"),
            (["help", "run"], "help: kiln has no such command; here it is: kiln COMMAND --help"),
            (["run", file, "-o", "out"], "-o: kiln run has no such option"),
            (["run", file, "--device", "cpu"], "the processor is host"),
        ]:
            with self.subTest(arguments):
                self.assertIn(words, self.error_line(self.kiln(*arguments, code=2)))
        self.assertIn("is a compiled .kiln file", self.error_line(self.kiln("verify", file, code=3)))

    def test_every_time_is_written(self):
        self.kiln("perf", self.open_file(), "--shape", "x:1x3x8x8", "-n", "7", "--times", self.path("times.json"))
        with open(self.path("times.json")) as file:
            times = json.load(file)
        self.assertEqual(len(times), 7)
        self.assertTrue(all(t > 0 for t in times))

    def test_names_with_colons_and_several_inputs(self):
        nodes = [helper.make_node("Add", ["a:0", "b"], ["y"])]
        model = self.save("add.onnx", nodes, [tensor("a:0", ["n", 4]), tensor("b", ["m", 4])], [tensor("y", [None, 4])])
        self.kiln("compile", model, "-o", self.path("add.kiln"))
        told = self.json("run", self.path("add.kiln"), "--shape", "a:0:6x4,b:6x4")
        self.assertEqual(told["outputs"][0]["shape"], "f32[6, 4]")

    def test_inputs_of_a_folder_and_printed_outputs(self):
        file = self.open_file()
        told = self.json("run", file, "--load-inputs", self.path("inputs"), "--output-dir", self.path("out"), "--dump-output")
        y = np.load(self.path("out/y.npy"))
        np.testing.assert_allclose(np.array(told["outputs"][0]["elements"]).reshape(y.shape), y, rtol=1e-6)
        text = self.kiln("run", file, "--load-inputs", self.path("inputs"), "--dump-output").stdout
        printed = np.array([float(n) for line in text.splitlines() if re.match(r"    \S", line) for n in line.split()])
        np.testing.assert_allclose(printed, y.ravel(), rtol=1e-5)
        os.mkdir(self.path("empty"))
        self.assertIn("lacks input 'x'", self.error_line(self.kiln("run", file, "--load-inputs", self.path("empty"), code=3)))

    def test_how_long_to_measure(self):
        file = self.open_file()
        self.assertEqual(self.json("perf", file, "--dim", "batch=1", "--iterations", "7")["runs"], 7)
        short = self.json("perf", file, "--dim", "batch=1", "--duration", "300ms")
        self.assertGreaterEqual(short["runs"] * short["mean_ms"], 200)
        self.assertGreaterEqual(self.json("perf", file, "--dim", "batch=1", "--duration", "1ms", "-n", "50")["runs"], 50)
        self.assertIn("not a duration", self.error_line(self.kiln("perf", file, "--dim", "batch=1", "--duration", "soon", code=2)))

    def test_several_callers(self):
        file = self.open_file()
        told = self.json("perf", file, "--dim", "batch=1", "-n", "20", "--concurrency", "3")["concurrency"]
        self.assertEqual((told["streams"], told["runs"]), (3, 60))
        self.assertGreater(told["runs_per_second"], 0)
        self.assertLessEqual(told["p50_ms"], told["p90_ms"])
        self.assertLessEqual(told["p99_ms"], told["max_ms"])
        self.assertNotIn("concurrency", self.json("perf", file, "--dim", "batch=1", "-n", "3"))

    def test_differences_of_files(self):
        file = self.open_file()
        same = self.json("diff", file, file)
        self.assertEqual((same["equal"], same["changed"], same["kernels"], same["common_kernels"]), (True, [], [], len(self.json("inspect", file)["kernels"])))
        self.kiln("compile", self.path("model.onnx"), "-o", self.path("four.kiln"), "--dim", "batch=4")
        told = self.json("diff", file, self.path("four.kiln"), code=1)
        self.assertFalse(told["equal"])
        self.assertIn({"what": "input x", "before": "f32[batch, 3, 8, 8]", "after": "f32[4, 3, 8, 8]"}, told["changed"])
        self.assertNotIn("weights", [c["what"] for c in told["changed"]])
        self.kiln("diff", file, self.path("none.kiln"), code=3)

    def test_other_weights_are_a_difference(self):
        files = []
        for seed in (1, 2):
            weights = numpy_helper.from_array(np.random.default_rng(seed).standard_normal((8, 8)).astype(np.float32), "w")
            model = self.save(f"{seed}.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [2, 8])], [tensor("y", [2, 8])], [weights])
            files.append(self.path(f"{seed}.kiln"))
            self.kiln("compile", model, "-o", files[-1])
        self.assertEqual([c["what"] for c in self.json("diff", *files, code=1)["changed"]], ["weights"])


if __name__ == "__main__":
    kiln_case.main()
