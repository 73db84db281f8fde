"""Models, files and waits that do harm: names do not reach the terminal, commands end when they are told to, indices
are checked."""
import glob
import json
import os
import signal
import subprocess
import time
import unicodedata

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, no_memory_limit, tensor

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
EVIL = "\x1b]0;pwn\x07\x1b[31m\u202e\u2066\x9b2J\x7f\r\nkiln: fake: line\u2028"


def harmful(data):
    """Why `data` must not reach a terminal, or None."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        return f"not UTF-8: {e}"
    for c in text:
        if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp"):
            return f"{c!r} in {text[max(0, text.index(c) - 60):text.index(c) + 60]!r}"
    return None


class Limits(KilnCase):
    def run_raw(self, *arguments, **more):
        return subprocess.run([kiln_case.KILN, *arguments], capture_output=True, timeout=120, env={**os.environ, "KILN_CACHE_DIR": self.path("cache")}, **more)

    def endless(self):
        body = helper.make_graph([helper.make_node("Identity", ["c"], ["co"]), helper.make_node("Neg", ["acc"], ["ao"])], "b",
                                 [tensor("i", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), tensor("acc", [2])], [tensor("co", [], TensorProto.BOOL), tensor("ao", [2])])
        constants = [numpy_helper.from_array(np.array(1 << 60, np.int64), "t"), numpy_helper.from_array(np.array(True), "cc")]
        return self.save("endless.onnx", [helper.make_node("Loop", ["t", "cc", "x"], ["l"], body=body)], [tensor("x", [2])], [tensor("l", [2])], constants)

    def evil_model(self):
        rng = np.random.default_rng(1)
        w = numpy_helper.from_array(rng.standard_normal((4, 4)).astype(np.float32), "w" + EVIL)
        nodes = [helper.make_node("MatMul", ["x" + EVIL, "w" + EVIL], ["m" + EVIL], name="product" + EVIL), helper.make_node("Relu", ["m" + EVIL], ["../../y" + EVIL], name="relu" + EVIL)]
        return self.save("evil.onnx", nodes, [tensor("x" + EVIL, ["n" + EVIL, 4])], [tensor("../../y" + EVIL, ["n" + EVIL, 4])], [w])

    def test_names_do_not_reach_the_terminal(self):
        model, file = self.evil_model(), self.path("odd\x1b[5m\udcff.kiln")
        self.assertEqual(self.run_raw("compile", model, "-o", file, "--dump-ir", self.path("dump")).returncode, 0)
        page, folder = self.path("page.html"), self.path("native")
        first = self.run_raw("inspect", file, "--json")
        document = json.loads(first.stdout)
        dims = ["--dim", document["inputs"][0]["shape"].split("[")[1].split(",")[0] + "=3"]
        commands = [
            (["compile", model, "-o", file], 0), (["compile", model, "-o", file, "--verbose"], 0), (["compile", model, "-o", file, "--dim", "nosuch\x1b[2J=3"], 2),
            (["inspect", file, "--check"], 0), (["inspect", file, "--kernel", document["kernels"][0]["hash"], "--emit", "mlir"], 0),
            (["run", file, *dims, "--output-dir", self.path("out"), "--verbose"], 0), (["run", file], 2), (["run", file, *dims, "--input", "nosuch\x1b[2J=a.npy"], 2),
            (["perf", file, *dims, "-n", "2", "--per-kernel", "--html", page], 0), (["verify", model, *dims, "--per-kernel"], 0),
            (["finalize", file, "--target", kiln_case.HOST, "-o", folder, *dims], 0), (["tune", file, *dims, "--budget", "1s", "--quick"], 0),
            (["cache", "explain", file, *dims], 0), (["run", self.path("missing\x1b[2J\u202e.kiln")], 3), (["nosuch\x1b[2J"], 2), (["run", file, "--\x1b[2J"], 2),
        ]
        for arguments, code in commands:
            for json_too in [[], ["--json"]]:
                done = self.run_raw(*arguments, *json_too)
                self.assertEqual(done.returncode, code, (arguments, done.stderr))
                for stream in [done.stdout, done.stderr]:
                    self.assertIsNone(harmful(stream), arguments)
                if code:
                    self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
                if json_too and code == 0:
                    json.loads(done.stdout)
        for written in [page, os.path.join(folder, "kernels.json")]:
            with open(written, "rb") as f:
                self.assertIsNone(harmful(f.read()), written)
        for name in os.listdir(self.path("out")) + os.listdir(folder):
            self.assertIsNone(harmful(os.fsencode(name)), name)

    def test_errors_about_hostile_models(self):
        cases = [
            [helper.make_node("Frobnicate" + EVIL, ["x"], ["y"], name="odd" + EVIL)],
            [helper.make_node("Relu", ["ghost" + EVIL], ["y"], name="odd" + EVIL)],
            [helper.make_node("Relu", ["x"], ["y"], name="n" * 100000, domain="d" + EVIL)],
            [helper.make_node("Elu", ["x"], ["y"], name="odd" + EVIL, alpha="text" + EVIL)],
            [helper.make_node("Einsum", ["x"], ["y"], equation="i" * 50000 + "->i")],
        ]
        for nodes in cases:
            done = self.run_raw("compile", self.save("m.onnx", nodes, [tensor("x", [2])], [tensor("y", [2])]), "-o", self.path("m.kiln"))
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIsNone(harmful(done.stderr))
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertLess(len(done.stderr), 6000)

    def ends(self, arguments, code, within, signal_after=None, which=signal.SIGINT):
        began = time.time()
        running = subprocess.Popen([kiln_case.KILN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "KILN_CACHE_DIR": self.path("cache")})
        if signal_after:
            time.sleep(signal_after)
            began = time.time()
            running.send_signal(which)
        try:
            _, words = running.communicate(timeout=60)
        finally:
            running.kill()
        self.assertEqual(running.returncode, code, words)
        self.assertEqual(words.count(b"\n"), 1, words)
        self.assertLess(time.time() - began, within, words)
        return words.decode()

    def test_what_has_no_end_ends_at_its_time_limit(self):
        model, file = self.endless(), self.path("endless.kiln")
        self.kiln("compile", model, "-o", file, "--time-limit", "100s")
        for arguments in [["run", file], ["run", file, "--no-cache"], ["perf", file, "-n", "3"], ["verify", model]]:
            line = self.ends([*arguments, "--time-limit", "1s"], 4, 15)
            self.assertIn("--time-limit 1s", line)
        for option in [["--time-limit", "soon"], ["--time-limit", "-1s"], ["--memory-limit", "much"], ["--memory-limit", "0"]]:
            self.assertIn(option[0], self.error_line(self.kiln("run", file, *option, code=2)))

    def test_long_work_without_loops_ends_at_its_time_limit(self):
        nodes = [helper.make_node("Relu" if i % 2 else "Neg", ["x" if i == 0 else f"v{i}"], [f"v{i + 1}"]) for i in range(200000)]
        model = self.save("chain.onnx", nodes, [tensor("x", [2])], [tensor("v200000", [2])])
        os.mkdir(self.path("out"))
        self.ends(["compile", model, "-o", self.path("out/chain.kiln"), "--time-limit", "500ms"], 4, 15)
        self.ends(["compile", model, "-o", self.path("out/chain.kiln")], 130, 10, signal_after=0.5)
        self.assertEqual(os.listdir(self.path("out")), [])
        w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((3000, 3000)).astype(np.float32), "w")
        slow = self.save("slow.onnx", [helper.make_node("MatMul", ["x" if i == 0 else f"m{i}", "w"], [f"m{i + 1}"]) for i in range(100)], [tensor("x", [3000, 3000])], [tensor("m100", [3000, 3000])], [w])
        self.ends(["verify", slow, "--time-limit", "2s"], 4, 20)
        self.kiln("compile", slow, "-o", self.path("slow.kiln"))
        self.ends(["finalize", self.path("slow.kiln"), "--target", "gfx942", "-o", self.path("native"), "--no-cache", "--time-limit", "10ms"], 4, 15)

    def test_a_loop_ends_without_a_time_limit(self):
        self.assertIn("more than 134217728 trips", self.error_line(self.kiln("run", self.compiled(self.endless()), "--no-cache", code=3)))

    def test_control_c_ends_a_run(self):
        file = self.compiled(self.endless())
        for which in [signal.SIGINT, signal.SIGTERM]:
            self.assertIn("interrupted", self.ends(["run", file, "--output-dir", self.path("out")], 130, 10, signal_after=1.5, which=which))
        self.assertEqual([f for f in glob.glob(self.path("**/*"), recursive=True) if ".tmp" in f], [])

    @no_memory_limit
    def test_memory_is_limited(self):
        large = self.save("large.onnx", [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("MatMul", ["e", "x"], ["y"])], [tensor("x", [8000, 8000])], [tensor("y", [8000, 8000])])
        file = self.compiled(large)
        done = self.run_raw("run", file, "--no-cache", "--memory-limit", "300MiB", "--threads", "1")
        self.assertIn(done.returncode, (3, 4), done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertIn(b"memory", done.stderr)
        self.kiln("run", self.compiled(), "--no-cache", "--memory-limit", "2GiB")

    def test_finalize_checks_the_kernels_of_a_file(self):
        done = self.run_raw("finalize", os.path.join(DATA, "finalize_argument_index.kiln"), "--target", kiln_case.HOST, "-o", self.path("native"))
        self.assertIn(done.returncode, (0, 3), done.stderr)

    def test_what_cannot_be_read_is_not_written(self):
        body = helper.make_graph([helper.make_node("Identity", ["c"], ["co"]), helper.make_node("Identity", ["acc"], ["ao"]), helper.make_node("Identity", ["acc"], ["sc"])], "b",
                                 [tensor("i", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), tensor("acc", [2])],
                                 [tensor("co", [], TensorProto.BOOL), tensor("ao", [2]), tensor("sc", [2])])
        constants = [numpy_helper.from_array(np.array(1 << 60, np.int64), "t"), numpy_helper.from_array(np.array(True), "cc")]
        trips = self.save("trips.onnx", [helper.make_node("Loop", ["t", "cc", "x"], ["l", "s"], name="odd_one", body=body)], [tensor("x", [2])], [tensor("l", [2]), tensor("s", None)], constants)
        shape = numpy_helper.from_array(np.ones(500, np.int64), "s")
        ranks = self.save("ranks.onnx", [helper.make_node("Reshape", ["x", "s"], ["y"], name="odd_one")], [tensor("x", [1])], [tensor("y", None)], [shape])
        for model in [trips, ranks]:
            self.assertIn("odd_one", self.error_line(self.kiln("compile", model, "-o", self.path("m.kiln"), code=3)))
            self.assertFalse(os.path.exists(self.path("m.kiln")))


if __name__ == "__main__":
    kiln_case.main()
