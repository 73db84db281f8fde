"""`kiln warm`: targets present or absent, many files, manifests, archives, embedding, replayed misses, interruption."""
import json
import os
import signal
import subprocess
import time

import numpy as np
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor

TARGETS = [kiln_case.HOST, "gfx942", "sm_90"]


class Warm(KilnCase):
    def product(self, name, seed=1, rows=4, columns=6):
        weights = np.random.default_rng(seed).standard_normal((8, columns)).astype(np.float32)
        return self.compiled(self.save(name, [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [tensor("x", [rows, 8])], [tensor("y", [rows, columns])], [numpy_helper.from_array(weights, "w")]))

    def open_model(self, name="open.onnx"):
        return self.compiled(self.save(name, [helper.make_node("Relu", ["x"], ["y"], name="relu")], [tensor("x", ["batch", 8])], [tensor("y", ["batch", 8])]))

    def warm(self, *arguments, **more):
        return self.json("warm", *arguments, "--cache", self.path("warm"), **more)

    def with_targets(self, targets=TARGETS):
        return [w for t in targets for w in ("--target", t)]

    def test_absent_targets_then_a_run_that_compiles_nothing(self):
        files = [self.compiled(), self.product("m.onnx")]
        first = self.warm(*files, *self.with_targets())
        self.assertGreater(first["compiled"], 0)
        self.assertEqual((first["compiled"], first["present"], first["failed"]), (first["kernels"], 0, 0))
        self.assertEqual(len(first["events"]), first["kernels"])
        second = self.warm(*files, *self.with_targets())
        self.assertEqual((second["compiled"], second["present"]), (0, first["kernels"]))
        for file in files:
            self.assertEqual(self.json("run", file, "--target", kiln_case.HOST, "--cache", self.path("warm"), "--if-cached")["cache"]["misses"], 0)
            for target in TARGETS:
                explained = self.json("cache", "explain", file, "--target", target, "--cache", self.path("warm"))
                self.assertEqual(explained["misses"], 0, target)
        self.assertEqual(self.json("cache", "verify", "--cache", self.path("warm"))["bad"], 0)

    def test_equal_kernels_of_several_files_are_compiled_once(self):
        files = [self.product(f"m{i}.onnx", seed=i) for i in range(4)]  # the same kernel with other weights
        document = self.warm(*files, "--target", kiln_case.HOST)
        self.assertEqual(document["duplicates"], 3 * document["kernels"])
        self.assertTrue(all(len(e["files"]) == 4 for e in document["events"]))

    def test_device_packs_weights_too(self):
        file = self.product("big.onnx", columns=512)
        self.warm(file, "--device", "host")
        entries = self.json("cache", "stats", "--cache", self.path("warm"))
        run = self.json("run", file, "--cache", self.path("warm"), "--if-cached")
        self.assertEqual(run["cache"]["misses"], 0)
        self.assertEqual(self.json("cache", "stats", "--cache", self.path("warm"))["entries"], entries["entries"])

    def test_open_dimensions(self):
        file = self.open_model()
        self.assertIn("batch", self.warm_error(2, file, "--target", kiln_case.HOST))
        document = self.warm(file, "--target", kiln_case.HOST, "--dim", "batch=1,4,16")
        self.assertEqual(document["kernels"], 3)
        self.json("run", file, "--target", kiln_case.HOST, "--dim", "batch=4", "--cache", self.path("warm"), "--if-cached")
        self.assertIn("nosuch", self.warm_error(2, file, "--target", kiln_case.HOST, "--dim", "batch=1", "--dim", "nosuch=2"))

    def warm_error(self, code, *arguments):
        done = self.kiln("warm", *arguments, "--cache", self.path("warm"), code=code)
        return done.stdout + done.stderr

    def test_one_bad_file_stops_no_other(self):
        good = self.product("m.onnx")
        with open(self.path("bad.kiln"), "wb") as f:
            f.write(b"no model")
        document = self.warm(self.path("bad.kiln"), good, self.path("none.kiln"), "--target", kiln_case.HOST, code=3)
        self.assertEqual(document["compiled"], 1)
        told = self.kiln("warm", good, self.path("none.kiln"), "--target", kiln_case.HOST, "--cache", self.path("warm"), code=3).stdout
        self.assertIn("1 kernel of 1 file:", told)
        self.assertIn("none.kiln", self.error_line(self.kiln("warm", self.path("none.kiln"), "--target", kiln_case.HOST, "--cache", self.path("warm"), "--quiet", code=3)))
        self.assertEqual(sorted(os.path.basename(f["file"]) for f in document["failures"]), ["bad.kiln", "none.kiln"])
        for arguments, words in [([], "name .kiln files"), ([good], "no target"), ([good, "--target", "z80"], "z80"), ([good, "--target", "gfx942", "--no-cache"], "--archive"), ([good, "--target", "gfx942", "--archive", "x.zip"], ".tar.zst")]:
            self.assertIn(words, self.warm_error(2, *arguments))

    def test_manifest(self):
        self.product("m.onnx")
        self.open_model()
        with open(self.path("list"), "w") as f:
            f.write("# comment\nm.kiln\n\nopen.kiln --target gfx942 --dim batch=2\n")
        document = self.warm("--manifest", self.path("list"), "--target", kiln_case.HOST)
        self.assertEqual(sorted(e["target"] for e in document["events"]), sorted(["gfx942", kiln_case.HOST]))
        with open(self.path("list"), "w") as f:
            json.dump([{"file": "m.kiln", "options": ["--target", "sm_90"]}], f)
        self.assertEqual(self.warm("--manifest", self.path("list"))["events"][0]["target"], "sm_90")
        for text in ["m.kiln --nonsense\n", "\"m.kiln\n", "[{}]"]:
            with open(self.path("list"), "w") as f:
                f.write(text)
            self.warm_error(2, "--manifest", self.path("list"))

    def test_archive_alone(self):
        one, two, archive = self.product("one.onnx"), self.product("two.onnx", columns=7), self.path("fleet.tar.zst")
        first = self.json("warm", one, *self.with_targets(), "--no-cache", "--archive", archive)
        self.assertEqual((first["compiled"], first["archive"]), (3, 3))
        before = os.stat(archive)
        again = self.json("warm", one, *self.with_targets(), "--no-cache", "--archive", archive)
        self.assertEqual((again["compiled"], again["archive"]), (0, 0))
        self.assertEqual(os.stat(archive).st_mtime_ns, before.st_mtime_ns)
        more = self.json("warm", one, two, *self.with_targets(), "--no-cache", "--archive", archive)
        self.assertEqual((more["compiled"], more["archive"]), (3, 3))
        self.kiln("cache", "import", archive, "--cache", self.path("fleet"))
        for file in one, two:
            self.json("run", file, "--target", kiln_case.HOST, "--cache", self.path("fleet"), "--if-cached")
        self.assertFalse(os.path.exists(self.path("cache")))

    def test_embed(self):
        file = self.product("m.onnx")
        first = self.json("warm", file, "--target", kiln_case.HOST, "--target", "gfx942", "--no-cache", "--embed")
        self.assertEqual((first["compiled"], first["embedded"]), (2, 2))
        self.kiln("inspect", file, "--check")
        before = self.bytes_of(file)
        again = self.json("warm", file, "--target", kiln_case.HOST, "--target", "gfx942", "--no-cache", "--embed")
        self.assertEqual((again["compiled"], again["embedded"]), (0, 0))
        self.assertEqual(self.bytes_of(file), before)

    def bytes_of(self, file):
        with open(file, "rb") as f:
            return f.read()

    def lines(self, log):
        with open(log) as f:
            return f.readlines()

    def test_replay(self):
        file = self.product("m.onnx")
        log = self.path("misses")
        self.json("run", file, "--cache", self.path("theirs"), "--record-misses", log)
        lines = [json.loads(l) for l in self.lines(log)]
        self.assertEqual([l["target"]["name"] for l in lines], ["native"])
        self.json("run", file, "--cache", self.path("theirs"), "--record-misses", log)
        self.assertEqual(len(self.lines(log)), 1)  # nothing was missed
        self.kiln("run", file, "--cache", self.path("others"), "--record-misses", log, "--if-cached", code=4)
        self.assertEqual(len(self.lines(log)), 2)  # it would have been
        os.rename(file, self.path("elsewhere.kiln"))
        self.assertEqual(self.warm("--replay", log, code=3)["failures"][0]["error_kind"], "missing_file")
        document = self.warm(self.path("elsewhere.kiln"), "--replay", log)
        self.assertEqual((document["kernels"], document["compiled"]), (1, 1))
        self.assertEqual(self.warm(self.path("elsewhere.kiln"), "--replay", log)["compiled"], 0)
        self.json("run", self.path("elsewhere.kiln"), "--cache", self.path("warm"), "--if-cached")
        # Of another version, or no log at all.
        with open(log, "w") as f:
            f.write(json.dumps({**lines[0], "key": "0" * 64}) + "\n")
        self.assertEqual(self.warm(self.path("elsewhere.kiln"), "--replay", log, code=3)["failures"][0]["error_kind"], "unsupported")
        with open(log, "w") as f:
            f.write("{\n")
        self.assertIn("misses:1", self.warm_error(3, "--replay", log))

    def test_limits(self):
        file = self.compiled()
        done = self.kiln("warm", file, *self.with_targets(), "--cache", self.path("warm"), "--time-limit", "1ms", code=4)
        self.assertRegex(self.error_line(done), r"timed_out: --time-limit 1ms has passed: \d+ kernels are left")
        self.assertEqual(self.warm(file, *self.with_targets(), "--time-limit", "200s")["left"], 0)
        for option, value in ("--time-limit", "soon"), ("--memory-limit", "much"):
            self.assertIn(option, self.error_line(self.kiln("warm", file, *self.with_targets(), option, value, code=2)))

    @kiln_case.no_memory_limit
    def test_memory_limit_holds_for_compile_workers(self):
        done = self.kiln("warm", self.compiled(), "--target", kiln_case.HOST, "--cache", self.path("warm"), "--memory-limit", "1MiB", code=4)
        self.assertIn("memory", done.stderr)

    def test_interrupted_work_stays_and_is_continued(self):
        files = [self.product(f"m{i}.onnx", columns=8 + i) for i in range(12)]
        arguments = ["warm", *files, *self.with_targets([kiln_case.HOST, "x86-64-v4", *TARGETS[1:]]), "--cache", self.path("warm"), "--threads", "1", "--archive", self.path("a.tar.zst")]
        process = subprocess.Popen([kiln_case.KILN, *arguments, "--json"], stdout=subprocess.PIPE, text=True)
        end = time.time() + 60
        while not os.path.isdir(self.path("warm")) or len([f for f in os.listdir(self.path("warm")) if f.endswith(".kernel")]) < 3:
            self.assertLess(time.time(), end)
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        document = json.loads(process.communicate(timeout=60)[0])
        self.assertEqual(process.returncode, 130)
        self.assertTrue(document["interrupted"])
        self.assertGreater(document["left"], 0)
        self.assertEqual(document["archive"], document["compiled"])
        self.assertEqual(self.json("cache", "verify", "--cache", self.path("warm"))["bad"], 0)
        again = self.json(*arguments)
        self.assertEqual((again["present"], again["compiled"]), (document["compiled"], document["left"]))
        self.assertEqual(again["archive"], document["left"])


if __name__ == "__main__":
    kiln_case.main()
