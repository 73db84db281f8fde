"""The build farm from the command line, over a real Redis server on the loopback: `kiln farm submit`, `worker`,
`status`, and `--cache-remote`."""
import filecmp
import json
import os
import signal
import subprocess
import time
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, no_memory_limit, tensor
from redis_server import WHY_NOT, RedisServer

ARCHIVE = f"m.{kiln_case.HOST.replace('-', '_')}.tar.zst"


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Farm(KilnCase):
    def setUp(self):
        super().setUp()
        self.server = RedisServer(self.path("redis"))
        self.addCleanup(self.server.stop)
        self.redis = ["--redis", self.server.url]
        os.mkdir(self.path("scratch"))

    def product(self, name, seed, rows=4):
        """x[rows, 8] -> MatMul with an 8x6 matrix of its own -> y."""
        weights = np.random.default_rng(seed).standard_normal((8, 6)).astype(np.float32)
        return self.save(name, [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [tensor("x", [rows, 8])], [tensor("y", [rows, 6])], [numpy_helper.from_array(weights, "w")])

    def drain(self, *more, **how):
        return self.json("farm", "worker", *self.redis, "--drain", "--scratch", self.path("scratch"), *more, **how)

    def status(self):
        return self.json("farm", "status", *self.redis)

    def test_results_are_those_of_this_machine(self):
        models = [self.product("a.onnx", 1), self.product("b.onnx", 2), self.conv_model()]
        document = self.json("farm", "submit", *models, "--options", "", "--options", "--fp16", *self.redis)
        self.assertEqual((document["new"], document["states"]), (6, {"queued": 6}))
        self.assertEqual(self.drain("--jobs", "2")["done"], 6)
        again = self.json("farm", "submit", *models, "--options", "", "--options", "--fp16", "--wait", "-o", self.path("out"), *self.redis)
        self.assertEqual((again["new"], again["states"]), (0, {"done": 6}))
        for model in models:
            for suffix, options in [("", []), (".fp16", ["--fp16"])]:
                stem = os.path.splitext(model)[0]
                self.kiln("compile", model, "-o", self.path("here.kiln"), *options)
                self.assertTrue(filecmp.cmp(self.path("here.kiln"), self.path("out/" + os.path.basename(stem) + suffix + ".kiln"), shallow=False), model)
        counts = self.status()["farms"][0]["counts"]
        self.assertEqual((counts["submitted"], counts["done"], counts["failed"]), (6, 6, 0))
        self.assertEqual(os.listdir(self.path("scratch")), [])

    def test_two_submitters_and_a_worker_at_once(self):
        models = [self.product(f"m{i}.onnx", i) for i in range(4)]
        submitters = [subprocess.Popen([kiln_case.KILN, "farm", "submit", *models, "--wait", "-o", self.path(f"out{i}"), "--quiet", *self.redis]) for i in range(2)]
        time.sleep(0.2)
        done = self.drain()["done"]
        self.assertEqual([s.wait(60) for s in submitters], [0, 0])
        done += self.drain()["done"]
        self.assertEqual(done, 4)
        self.assertEqual(self.status()["farms"][0]["counts"]["submitted"], 4)
        for i in range(4):
            self.assertTrue(filecmp.cmp(self.path(f"out0/m{i}.kiln"), self.path(f"out1/m{i}.kiln"), shallow=False))

    @no_memory_limit
    def test_refused_models_are_dead_at_once_and_poisoned_ones_in_the_end(self):
        bad = self.save("bad.onnx", [helper.make_node("NoSuchOperator", ["x"], ["y"], name="n")], [tensor("x", [2])], [tensor("y", [2])])
        self.kiln("farm", "submit", bad, *self.redis)
        self.drain()
        done = self.kiln("farm", "submit", bad, "--wait", *self.redis, code=3)
        self.assertIn("NoSuchOperator", done.stdout)
        dead = self.status()["farms"][0]["dead"]
        self.assertEqual([(d["error_kind"], d["attempts"]) for d in dead], [("unsupported", 1)])
        # A job whose process may have next to no memory crashes whenever it is tried.
        good = self.product("good.onnx", 1)
        self.kiln("farm", "submit", good, *self.redis)
        self.assertEqual(self.drain("--memory-limit", "20MB")["failed"], 3)
        states = {d["label"]: d["attempts"] for d in self.status()["farms"][0]["dead"]}
        self.assertEqual(states[good], 3)
        self.kiln("farm", "submit", good, "--wait", *self.redis, code=4)
        self.kiln("farm", "submit", good, "--retry", *self.redis)
        self.assertEqual(self.drain()["done"], 1)

    @no_memory_limit
    def test_flaky_jobs_are_reported(self):
        good = self.product("good.onnx", 1)
        self.kiln("farm", "submit", good, *self.redis)
        self.drain("--memory-limit", "20MB", "--attempts", "1")
        self.kiln("farm", "submit", good, "--retry", *self.redis)
        # One failure, then a worker that can.
        weak = subprocess.Popen([kiln_case.KILN, "farm", "worker", *self.redis, "--memory-limit", "20MB", "--scratch", self.path("scratch"), "--attempts", "1000", "--quiet"])
        end = time.time() + 30
        while self.status()["farms"][0]["counts"]["failed"] < 2 and time.time() < end:
            time.sleep(0.1)
        weak.kill()
        weak.wait()
        self.assertEqual(self.drain("--lease", "1", "--attempts", "1000000")["done"], 1)
        self.assertEqual([f["label"] for f in self.status()["farms"][0]["flaky"]], [good])

    def test_external_weights_travel(self):
        model = onnx.load(self.product("ext.onnx", 3))
        onnx.save(model, self.path("ext.onnx"), save_as_external_data=True, location="data/ext.bin" if os.makedirs(self.path("data")) is None else "", size_threshold=0)
        for more in [], ["--shared"]:
            self.kiln("farm", "submit", self.path("ext.onnx"), *more, *self.redis)
        self.drain("--shared-root", self.dir)
        self.kiln("farm", "submit", self.path("ext.onnx"), "--wait", "-o", self.path("out"), *self.redis)
        self.kiln("compile", self.path("ext.onnx"), "-o", self.path("here.kiln"))
        self.assertTrue(filecmp.cmp(self.path("here.kiln"), self.path("out/ext.kiln"), shallow=False))

    def test_files_may_be_shared_instead(self):
        model = self.product("m.onnx", 5)
        self.kiln("farm", "submit", model, "--shared", "--max-bytes", "1", *self.redis)
        self.drain("--attempts", "1")
        self.assertIn("--shared-root", self.status()["farms"][0]["dead"][0]["error"])
        self.kiln("farm", "submit", model, "--shared", "--max-bytes", "1", "--retry", *self.redis)
        os.rename(model, model + ".away")
        self.drain("--attempts", "1", "--shared-root", self.dir)
        self.assertIn("--shared-root", self.status()["farms"][0]["dead"][0]["error"])
        os.rename(model + ".away", model)
        self.kiln("farm", "submit", model, "--shared", "--retry", *self.redis)
        self.assertEqual(self.drain("--shared-root", self.dir)["done"], 1)

    def test_custom_operators_travel_with_what_they_include(self):
        os.makedirs(self.path("ops/parts"))
        with open(self.path("ops/neg.hip"), "w") as out:
            out.write('#include "parts/body.h"\nKILN_OPERATOR("my.ops", "Negate")\nKILN_OUTPUT(0, float32, same_as(input0))\n'
                      "KILN_LAUNCH(negate, per_element(elements(output0)), input0, output0, elements(output0))\n")
        with open(self.path("ops/parts/body.h"), "w") as out:
            out.write("#include <hip/hip_runtime.h>\n__global__ void negate(const float* x, float* y, int64_t n) {\n"
                      "  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = -x[i];\n}\n")
        node = helper.make_node("Negate", ["x"], ["y"], name="n", domain="my.ops")
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)]
        graph = helper.make_graph([node], "g", [tensor("x", [3])], [tensor("y", [3])])
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), self.path("m.onnx"))
        options = ["--options", f"--custom-op {self.path('ops/neg.hip')}"]
        self.kiln("farm", "submit", self.path("m.onnx"), *options, *self.redis)
        self.assertEqual(self.drain()["done"], 1)
        self.kiln("farm", "submit", self.path("m.onnx"), *options, "--wait", "-o", self.path("out"), *self.redis)
        self.kiln("compile", self.path("m.onnx"), "--custom-op", self.path("ops/neg.hip"), "--unsigned", "-o", self.path("here.kiln"))
        (fetched,) = os.listdir(self.path("out"))
        self.assertTrue(filecmp.cmp(self.path("here.kiln"), self.path("out/" + fetched), shallow=False))
        # What a worker compiled runs here when somebody here has signed it.
        self.assertIn("is not signed", self.error_line(self.kiln("run", self.path("out/" + fetched), code=3)))
        self.kiln("sign", self.path("out/" + fetched))
        self.kiln("run", self.path("out/" + fetched))

    def cli(self, *words, data=None):
        more = [] if data is None else ["-x"]
        done = subprocess.run(["redis-cli", "-p", str(self.server.port), *more, *words], input=data, capture_output=True, check=True)
        return done.stdout.decode().strip()

    def test_a_worker_does_what_submit_would_send_and_nothing_else(self):
        model = self.product("m.onnx", 1)
        document = self.json("farm", "submit", model, *self.redis)
        self.drain()
        good = document["jobs"][0]["id"]
        (record,) = self.cli("KEYS", f"kiln:farm:*:job:{good}").split()
        prefix = record[:-len("job:" + good)]
        spec = json.loads(self.cli("HGET", record, "spec"))

        def queue(number, options, inputs=(), kind="compile", first=None):
            job = {**spec, "kind": kind, "options": options, "inputs": [first or spec["inputs"][0], *inputs]}
            entry = self.cli("XADD", prefix + "jobs", "*", "job", f"evil{number}")
            fields = {"state": "queued", "label": "evil", "attempts": "0", "lost": "0", "keep": "1000", "entry": entry}
            self.cli("HSET", f"{prefix}job:evil{number}", *(word for pair in fields.items() for word in pair))
            self.cli("HSET", f"{prefix}job:evil{number}", "spec", data=json.dumps(job).encode())

        folder, secret, other = self.path("dump"), self.path("secret"), spec["inputs"][0]
        with open(secret, "w") as out:
            out.write("TOPSECRET-12345 is the password\n")
        warm = {**other, "name": "model.kiln"}
        lists = [["--dump-ir", folder], [f"--dump-ir={folder}"], ["--custom-op", secret], [f"--custom-op={secret}"], ["--custom-op", "model.onnx"],
                 ["--fp16", secret], [secret], ["--", secret], ["--external-weights", secret], ["-o", folder], ["--output", folder],
                 ["--dim", "a=1", secret], ["--dim", "--dump-ir"], ["--dim"], ["--fp16=1"], ["--include-root", "/"], ["--int8=false"], ["--help"],
                 ["--json"], ["--config", secret], ["@" + secret], [""]]
        names = [{"name": "result.kiln"}, {"name": "result.kiln/x"}, {"name": "x", "path": secret}, {"name": "x", "path": "/etc/shadow"}]
        refused = [(options, []) for options in lists] + [([], [{**other, **name}]) for name in names]
        refused.append((["--custom-op", f"[x,{secret}]"], [{**other, "name": f"[x,{secret}]"}]))
        target = ["--target", "gfx942"]
        warmed = [["--manifest", secret], ["--device", "host"], ["--target", "native"], [*target, "--embed"], ["--replay", secret],
                  ["--cache-remote", "redis://127.0.0.1"], ["--archive", folder], ["--cache", folder], [*target, "--cache-sign-key", secret],
                  [*target, secret], ["--dim", "batch=x,y"], ["--threads", "4000"], ["--isolated"]]
        for number, (options, inputs) in enumerate(refused):
            queue(number, options, inputs)
        for number, options in enumerate(warmed):
            queue(len(refused) + number, options, kind="warm", first=warm)
        self.cli("XADD", prefix + "jobs", "*", "foo", "bar")
        self.cli("SET", prefix + "job:text", "x")
        self.cli("XADD", prefix + "jobs", "*", "job", "text")
        self.kiln("farm", "submit", model, "--options", "--fp16", *self.redis)
        self.assertEqual(self.drain("--attempts", "1")["done"], 1)
        dead = {d["id"]: d["error"] for d in self.status()["farms"][0]["dead"]}
        self.assertEqual(len(dead), len(refused) + len(warmed) + 2, dead)
        for error in dead.values():
            self.assertTrue(error)
            self.assertNotIn("TOPSECRET", error)
        self.assertFalse(os.path.exists(folder))
        self.assertEqual(os.listdir(self.path("scratch")), [])

    def test_files_with_native_code_are_not_warmed(self):
        file = self.compiled(self.product("m.onnx", 1))
        self.kiln("warm", file, "--target", kiln_case.HOST, "--no-cache", "--embed")
        self.kiln("farm", "submit", file, "--target", kiln_case.HOST, *self.redis)
        self.assertEqual(self.drain()["done"], 0)
        self.assertIn("native", self.status()["farms"][0]["dead"][0]["error"])

    def test_manifest_and_wrong_usage(self):
        self.product("a.onnx", 1)
        with open(self.path("list"), "w") as f:
            f.write("# one twice\na.onnx --fp16\n\"a.onnx\" --fp16\n")
        done = self.kiln("farm", "submit", "--manifest", self.path("list"), *self.redis, code=2)
        self.assertIn("both be fetched as a.fp16.kiln", self.error_line(done))
        with open(self.path("list"), "w") as f:
            f.write('[{"file": "a.onnx", "options": ["--fp16"]}]')
        self.assertEqual(self.json("farm", "submit", "--manifest", self.path("list"), *self.redis)["new"], 1)
        for arguments, code, words in [([self.path("a.onnx"), "--max-bytes", "10"], 3, "--max-bytes"), ([self.path("a.onnx"), "--options", "--dump-ir d"], 3, "--dump-ir"), ([self.path("none.onnx")], 3, "none.onnx"),
                                       ([self.path("a.onnx"), "--options", "--dim"], 2, "dim"), ([], 2, "manifest"), ([self.path("a.onnx"), "-o", "d"], 2, "--wait")]:
            self.assertIn(words, self.error_line(self.kiln("farm", "submit", *arguments, *self.redis, code=code)))
        self.assertIn("unix://", self.error_line(self.kiln("farm", "status", "--redis", "nonsense", code=2)))
        self.server.stop()
        self.assertIn("cannot be reached", self.error_line(self.kiln("farm", "status", *self.redis, code=4)))

    def test_waiting_has_an_end_and_says_that_nobody_works(self):
        done = self.kiln("farm", "submit", self.product("a.onnx", 1), "--wait", "--timeout", "0.5", *self.redis, code=4)
        self.assertIn("no worker", done.stderr)
        self.assertIn("stay in the queue", done.stderr)

    def test_a_server_that_forgets_everything_is_told_again(self):
        models = [self.product(f"m{i}.onnx", i) for i in range(3)]
        submitter = subprocess.Popen([kiln_case.KILN, "farm", "submit", *models, "--wait", "-o", self.path("out"), "--quiet", *self.redis])
        end = time.time() + 30
        while self.status()["farms"][:1] == [] or self.status()["farms"][0]["waiting"] < 3:
            self.assertLess(time.time(), end)
        subprocess.run(["redis-cli", "-p", str(self.server.port), "flushall"], check=True, stdout=subprocess.DEVNULL)
        worker = subprocess.Popen([kiln_case.KILN, "farm", "worker", *self.redis, "--quiet", "--scratch", self.path("scratch")])
        self.assertEqual(submitter.wait(60), 0)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(30), 0)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["m0.kiln", "m1.kiln", "m2.kiln"])

    def test_warm_jobs_make_archives(self):
        file = self.compiled(self.product("m.onnx", 1))
        self.kiln("farm", "submit", file, "--target", kiln_case.HOST, "--target", "gfx942", *self.redis)
        self.assertEqual(self.drain("--jobs", "2")["done"], 2)
        self.kiln("farm", "submit", file, "--target", kiln_case.HOST, "--target", "gfx942", "--wait", "-o", self.path("out"), *self.redis)
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(["m.gfx942.tar.zst", ARCHIVE]))
        self.kiln("cache", "import", self.path("out/" + ARCHIVE), "--cache", self.path("warm"))
        self.assertEqual(self.json("run", file, "--target", kiln_case.HOST, "--cache", self.path("warm"), "--if-cached")["cache"]["misses"], 0)
        self.assertIn("native", self.error_line(self.kiln("farm", "submit", file, "--target", "native", *self.redis, code=2)))

    def test_remote_cache(self):
        file = self.compiled(self.product("m.onnx", 1))
        url = self.server.url + "/3"
        first = self.json("run", file, "--cache", self.path("one"), "--cache-remote", url, "--output-dir", self.path("o1"))
        self.assertGreater(first["cache"]["misses"], 0)
        second = self.json("run", file, "--cache", self.path("two"), "--cache-remote", url, "--if-cached", "--output-dir", self.path("o2"))
        self.assertEqual(second["cache"]["misses"], 0)
        self.assertTrue(filecmp.cmp(self.path("o1/y.npy"), self.path("o2/y.npy"), shallow=False))
        self.server.stop()
        done = self.kiln("run", file, "--cache", self.path("three"), "--cache-remote", url, "--output-dir", self.path("o3"))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(filecmp.cmp(self.path("o1/y.npy"), self.path("o3/y.npy"), shallow=False))
        self.kiln("run", file, "--cache", self.path("two"), "--cache-remote", url, "--if-cached")

    def test_passwords(self):
        server = RedisServer(self.path("locked"), "--requirepass", "hush")
        self.addCleanup(server.stop)
        with open(self.path("password"), "w") as f:
            f.write("hush\n")
        self.kiln("farm", "status", "--redis", server.url + "?password-file=" + self.path("password"))
        self.kiln("farm", "status", "--redis", f"redis://:hush@127.0.0.1:{server.port}")
        self.assertIn("rejects the login", self.error_line(self.kiln("farm", "status", "--redis", server.url, code=2)))


if __name__ == "__main__":
    kiln_case.main()
