"""Every command does what CLI.md says: options, JSON keys, exit codes."""
import json
import os
import re

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor

PERF_KEYS = {"load_ms", "finalize_ms", "first_run_ms", "p50_ms", "p90_ms", "p99_ms", "min_ms", "runs", "kernels", "launches",
             "peak_memory_bytes", "cache", "graph", "device", "per_kernel"}


class Commands(KilnCase):
    def test_every_command_has_help_with_an_example(self):
        for command in ["compile", "run", "perf", "verify", "inspect", "finalize", "cache", "devices", "targets", "hip", "ops"]:
            text = self.kiln(command, "--help").stdout
            self.assertIn("Example", text)
            self.assertIn("--json", text)

    def test_wrong_usage_exits_2(self):
        for arguments in [[], ["nosuch"], ["compile"], ["compile", "a.onnx"], ["run"], ["run", "a.kiln", "--nosuch"],
                          ["inspect", "a.kiln", "--emit", "poem"], ["perf", "a.kiln", "-n", "many"]]:
            self.error_line(self.kiln(*arguments, code=2))
        self.assertIn("nosuch: kiln has no such command", self.error_line(self.kiln("nosuch", code=2)))
        self.assertIn("too small", self.error_line(self.kiln("perf", "a.kiln", "-n", "-1", code=2)))
        self.assertIn("--threads", self.error_line(self.kiln("run", "a.kiln", "--threads", "99999999", code=2)))

    def test_misspelt_words_are_named_with_the_nearest_spelling(self):
        def refused(*arguments):
            return self.error_line(self.kiln(*arguments, code=2))
        self.assertIn("perfs: kiln has no such command; did you mean 'perf'?", refused("perfs", "a.kiln"))
        self.assertIn("stat: kiln cache has no such command; did you mean 'stats'?", refused("cache", "stat"))
        self.assertIn("--grahp: kiln run has no such option; did you mean '--graph'?", refused("run", "a.kiln", "--grahp", "on"))
        self.assertIn("--grahp: kiln run has no such option", refused("run", "a.kiln", "--grahp=on"))
        self.assertIn("--jsn: kiln cache stats has no such option; did you mean '--json'?", refused("cache", "stats", "--jsn"))
        self.assertIn("--something-else: kiln perf has no such option; see --help", refused("perf", "a.kiln", "--something-else", "1"))
        file = self.compiled()
        finalize = ["finalize", file, "--target", kiln_case.HOST, "-o", self.path("native"), "--configuration"]
        self.assertIn("did you mean 'tile_m'?", refused(*finalize, "tle_m=8"))
        self.assertIn("no generator has such a choice", refused(*finalize, "something=1"))
        self.assertIn("it was 8 before", refused(*finalize, "tile_m=8,tile_m=4"))
        self.kiln(*finalize, "tile_m=8,tile_m=8")
        model = self.save("open.onnx", [helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ["batch", 4])], [tensor("y", ["batch", 4])])
        self.assertIn("did you mean 'batch'?", refused("compile", model, "-o", self.path("o.kiln"), "--dim", "bacth=2"))
        opened = self.compiled(model)
        self.assertIn("did you mean 'batch'?", refused("run", opened, "--dim", "bathc=2"))
        self.assertIn("did you mean 'batch'?", refused("finalize", opened, "--target", kiln_case.HOST, "-o", self.path("n"), "--dim", "bathc=2"))
        self.assertIn("the model has no open dimensions", refused("run", file, "--dim", "batch=2"))
        self.assertIn("it was 2 before", refused("run", opened, "--dim", "batch=2", "--dim", "batch=3"))
        self.assertIn("it was batch=2 before", refused("compile", model, "-o", self.path("o.kiln"), "--dim", "batch=2", "--dim", "batch=1:4"))
        self.kiln("run", opened, "--dim", "batch=2", "--dim", "batch=2")
        self.assertIn("input 'X': the model has none of this name", refused("run", opened, "--dim", "batch=2", "--input", "X=x.npy"))

    def test_devices_targets_ops(self):
        devices = self.json("devices")
        self.assertEqual(devices["devices"][0]["name"], "host")
        searched = {s["library"]: s for s in devices["searched"]}
        self.assertIn("libcuda.so.1", searched)
        self.assertIn("libamdhip64.so.6", searched)
        self.assertTrue(all(s["outcome"] for s in searched.values()))
        names = {t["name"] for t in self.json("targets")["targets"]}
        self.assertLessEqual({"x86-64-v4", "armv8.6-a", kiln_case.HOST, "native"}, names)
        operators = {o["name"] for o in self.json("ops")["operators"]}
        self.assertLessEqual({"Conv", "MatMul", "LSTM", "If", "Loop", "TopK"}, operators)

    def test_compile_is_deterministic(self):
        model = self.conv_model()
        os.mkdir(self.path("other"))
        self.kiln("compile", model, "-o", self.path("a.kiln"))
        self.kiln("compile", os.path.relpath(model, self.path("other")), "-o", "b.kiln", cwd=self.path("other"))
        with open(self.path("a.kiln"), "rb") as a, open(self.path("other/b.kiln"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_run_agrees_with_onnxruntime_cold_and_warm(self):
        model = self.conv_model()
        file = self.compiled(model)
        x = np.random.default_rng(3).standard_normal((1, 3, 9, 7)).astype(np.float32)
        np.save(self.path("x.npy"), x)
        want = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
        cold = self.json("run", file, "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
        got = np.load(self.path("out/y.npy"))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        self.assertGreater(cold["cache"]["misses"], 0)
        warm = self.json("run", file, "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("again"))
        self.assertEqual(warm["cache"]["misses"], 0)
        np.testing.assert_array_equal(np.load(self.path("again/y.npy")), got)

    def test_a_device_that_is_not_here_exits_4_and_says_what_was_looked_for(self):
        file = self.compiled()
        for command in ["run", "perf"]:
            self.assertIn("libcuda.so.1", self.error_line(self.kiln(command, file, "--device", "cuda:99", code=4)))
            self.assertIn("libamdhip64.so.6", self.error_line(self.kiln(command, file, "--device", "hip:99", code=4)))
            self.error_line(self.kiln(command, file, "--device", "hip:many", code=2))

    def test_if_cached_refuses_to_compile(self):
        file = self.compiled()
        self.kiln("run", file, "--if-cached", code=4)
        self.kiln("run", file)
        self.kiln("run", file, "--if-cached")

    def test_no_cache_leaves_nothing_behind(self):
        self.kiln("run", self.compiled(), "--no-cache")
        self.assertFalse(os.path.exists(self.path("cache")))

    def test_run_at_every_line_of_a_list_of_shapes(self):
        file = self.compiled(self.conv_model(batch="N"))
        with open(self.path("sizes"), "w") as f:
            f.write("# two ways of saying it\nN=2\n\n  x:3x3x9x7  # the other one\nN=1\n")
        document = self.json("run", file, "--shape-list", self.path("sizes"), "--specialize", "off", "--no-cache", "--output-dir", self.path("out"))
        self.assertEqual([s["sizes"] for s in document["sets"]], ["N=2", "x:3x3x9x7", "N=1"])
        self.assertGreater(document["sets"][0]["compiled"], 0)
        self.assertEqual([s["compiled"] for s in document["sets"][1:]], [0, 0])
        for number, rows in enumerate((2, 3, 1)):
            self.assertEqual(document["sets"][number]["outputs"], [{"name": "y", "shape": f"f32[{rows}, 5, 9, 7]"}])
            self.assertEqual(np.load(self.path(f"out/{number}/y.npy")).shape, (rows, 5, 9, 7))
        self.assertRegex(self.kiln("run", file, "--shape-list", self.path("sizes")).stdout, r"N=2: .*\n +output y .*\n +x:3x3x9x7: ")
        for text, code, words in ("N=2\nM=1\n", 2, "line 2"), ("x:1x4x9x7\n", 5, "line 1"), ("# nothing\n", 2, "no sizes"), ('"N=1\n', 2, "line 1"):
            with open(self.path("bad"), "w") as f:
                f.write(text)
            self.assertIn(words, self.error_line(self.kiln("run", file, "--shape-list", self.path("bad"), code=code)))
        self.kiln("run", file, "--shape-list", self.path("absent"), code=3)
        self.kiln("run", file, "--shape-list", self.path("sizes"), "--tune", "quick", code=2)

    def test_perf_json_has_the_agreed_keys(self):
        document = self.json("perf", self.compiled(), "-n", "5", "--warmup", "1", "--threads", "1", "--per-kernel")
        self.assertLessEqual(PERF_KEYS, set(document))
        self.assertEqual(document["runs"], 5)
        self.assertEqual((document["device"], document["threads"]), ("host", 1))
        self.assertLessEqual({"hits", "misses", "repaired"}, set(document["cache"]))
        self.assertLessEqual({"mode", "captures", "replays"}, set(document["graph"]))
        self.assertEqual(document["interpreted"], 0)
        self.assertEqual(sum(k["launches"] for k in document["per_kernel"]), document["launches"])
        self.assertLessEqual(document["min_ms"], document["p50_ms"])
        self.assertLessEqual(document["p50_ms"], document["p99_ms"])

    def test_perf_measures_several_sizes_in_one_session(self):
        file = self.compiled(self.conv_model(batch="N"))
        few = ["-n", "3", "--warmup", "1", "--threads", "1"]
        document = self.json("perf", file, "--sweep", "N=1:5", *few, "--no-cache")
        self.assertEqual((document["runs"], document["sweep"]["dimension"]), (3, "N"))
        rows = document["sweep"]["sizes"]
        self.assertEqual([row["size"] for row in rows], [1, 2, 4, 5])
        for row in rows:
            self.assertGreater(row["compiled"], 0)
            self.assertGreater(row["min_ms"], 0)
            self.assertLessEqual(row["min_ms"], row["p50_ms"])
            self.assertLessEqual(row["p50_ms"], row["p99_ms"])
        # Kernels for all sizes are compiled for the first one.
        rows = self.json("perf", file, "--sweep", "N=4,1,3", *few, "--no-cache", "--specialize", "off")["sweep"]["sizes"]
        self.assertEqual([row["size"] for row in rows], [4, 1, 3])
        self.assertGreater(rows[0]["compiled"], 0)
        self.assertEqual([row["compiled"] for row in rows[1:]], [0, 0])
        self.assertRegex(self.kiln("perf", file, "--sweep", "N=2,7", *few).stdout, r"3 runs of each size\n +N +finalize ms.*\n +2 .*\n +7 ")
        for words, wrong in [("dimension 'M'", ["M=1:2"]), ("5 is more than 1", ["N=5:1"]), ("NAME=MIN:MAX", ["N=few"]), ("NAME=MIN:MAX", ["N=1,,2"]),
                             ("--html is for one size", ["N=1:2", "--html", self.path("x.html")]), ("N", ["N=1:2", "--dim", "N=3"])]:
            self.assertIn(words, self.error_line(self.kiln("perf", file, *few, "--sweep", *wrong, code=2)))

    def test_perf_writes_a_page(self):
        said = self.kiln("perf", self.compiled(), "-n", "3", "--threads", "1", "--html", self.path("report.html")).stdout
        self.assertRegex(said, r", 1 thread\)\n")
        with open(self.path("report.html")) as f:
            page = f.read()
        self.assertNotRegex(page, r"<script|<link|src=|https?:")
        self.assertIn("nodes of the model", page)
        self.assertIn(", 1 thread</p>", page)
        self.assertIn("conv (Conv)", page)
        rows, bars = set(re.findall(r"id='(launch-\d+)'", page)), set(re.findall(r"id='(bar-\d+)'", page))
        self.assertEqual(len(rows), len(bars))
        self.assertGreater(len(rows), 0)
        self.assertLessEqual(set(re.findall(r"href='#([^']+)'", page)), rows | bars)

    def test_perf_says_what_launches_read_and_what_is_in_use(self):
        document = self.json("perf", self.compiled(), "-n", "3", "--per-kernel")
        convolution = next(k for k in document["per_kernel"] if k["symbol"].startswith("convolution"))
        image, result, weights = 4 * 3 * 9 * 7, 4 * 5 * 9 * 7, 4 * (5 * 3 * 3 * 3 + 5)
        self.assertGreaterEqual(convolution["bytes"], image + result + weights)
        self.assertLessEqual(max(k["live_bytes"] for k in document["per_kernel"]), document["arena_bytes"])
        self.assertEqual(document["peaks"], {"bytes_per_second": 0, "matrix_operations_per_second": 0})  # the host's are not known
        for k in document["per_kernel"]:
            self.assertEqual((k["bandwidth_share"], k["matrix_share"], k["far_from_peaks"]), (None, None, False))

    def test_perf_writes_a_trace(self):
        told = self.json("perf", self.compiled(), "-n", "3", "--trace", self.path("trace.json"))
        with open(self.path("trace.json")) as f:
            events = json.load(f)["traceEvents"]
        launches = [e for e in events if e["ph"] == "X"]
        self.assertEqual(len(launches), len(told["per_kernel"]))
        named = {e["tid"] for e in events if e["name"] == "thread_name"}
        for before, after in zip(launches, launches[1:]):
            self.assertAlmostEqual(before["ts"] + before["dur"], after["ts"], places=3)
        for event in launches:
            self.assertIn(event["tid"], named)
        self.assertTrue(any("conv (Conv)" in e["name"] for e in launches))
        self.kiln("perf", self.compiled(), "-n", "1", "--trace", self.path("no/where.json"), code=3)

    def test_inspect(self):
        file = self.compiled()
        document = self.json("inspect", file, "--check")
        self.assertTrue(document["checked"])
        self.assertEqual(document["interpreted"], 0)
        kernel = document["kernels"][0]
        self.assertEqual(kernel["format"], "mlir_bytecode")
        self.assertIn("kiln.kernel", self.kiln("inspect", file, "--kernel", kernel["hash"][:12], "--emit", "mlir").stdout)
        self.assertIn("define", self.kiln("inspect", file, "--kernel", kernel["hash"], "--emit", "llvm").stdout)
        self.assertIn("ret", self.kiln("inspect", file, "--kernel", kernel["hash"], "--emit", "asm", "--target", kiln_case.HOST).stdout)
        self.kiln("inspect", file, "--kernel", "ffffffffffff", code=2)
        candidates = self.json("inspect", file, "--kernel", kernel["hash"], "--candidates", "sm_90:quick")["candidates"]
        self.assertEqual(candidates[0], {})
        self.assertLessEqual(len(candidates), 8)
        self.assertTrue(all(candidates[1:]))
        self.assertIn("(default)", self.kiln("inspect", file, "--kernel", kernel["hash"], "--candidates", "native:off").stdout)
        self.kiln("inspect", file, "--kernel", kernel["hash"], "--candidates", "native:much", code=2)

    def test_cpu_levels_give_the_same_answer(self):
        file = self.compiled()
        rows = {t["name"]: t for t in self.json("targets")["targets"]}
        results = {}
        for target in [t["name"] for t in rows.values() if t["family"] == "cpu" and t["name"] != "native"]:
            self.kiln("finalize", file, "--target", target, "-o", self.path(target))
            if rows[target]["runs_here"]:
                self.kiln("run", file, "--target", target, "--output-dir", self.path(target + "-out"))
                results[target] = np.load(self.path(target + "-out/y.npy"))
        for result in results.values():
            np.testing.assert_allclose(result, results[kiln_case.HOST], rtol=1e-5, atol=1e-5)

    def test_finalize_writes_objects_and_their_launches(self):
        file = self.compiled()
        self.kiln("finalize", file, "--target", "x86-64-v4", "-o", self.path("objects"))
        with open(self.path("objects/kernels.json")) as f:
            kernels = json.load(f)["kernels"]
        self.assertTrue(kernels)
        for k in kernels:
            with open(self.path("objects/" + k["object"]), "rb") as f:
                self.assertEqual(f.read(4), b"\x7fELF")
            for launch in k["launches"]:
                self.assertLessEqual({"symbol", "grid", "block", "lds_bytes", "arguments"}, set(launch))
                for argument in launch["arguments"]:
                    self.assertLessEqual({"kind", "size", "offset"}, set(argument))

    def test_isolated_compiles_give_the_same_objects(self):
        file = self.compiled()
        for target in [kiln_case.HOST, "x86-64-v4", "armv8.6-a"]:
            self.kiln("finalize", file, "--target", target, "-o", self.path("here"), "--no-cache")
            for where in ["--isolated", "--in-process"]:
                done = self.kiln("finalize", file, "--target", target, "-o", self.path("apart"), "--no-cache", where)
                self.assertEqual(done.stderr, "")
                for name in os.listdir(self.path("here")):
                    with open(self.path(f"here/{name}"), "rb") as here, open(self.path(f"apart/{name}"), "rb") as apart:
                        self.assertEqual(here.read(), apart.read(), name)
        self.kiln("finalize", file, "--target", kiln_case.HOST, "-o", self.path("apart"), "--isolated", "--in-process", code=2)

    def test_finalize_lists_the_program(self):
        file = self.compiled()
        self.kiln("finalize", file, "--target", kiln_case.HOST, "-o", self.path("objects"), "--export-constants")
        with open(self.path("objects/kernels.json")) as f:
            document = json.load(f)
        program = document["program"]
        known = set()
        for v in program["values"]:
            if v["from"] == "constant":
                self.assertEqual(list(np.load(self.path("objects/" + v["file"])).shape), v["dims"])
            if v["from"] == "alias":
                self.assertIn(v["of"], known)
            known.add(v["id"])
        made = {v["id"] for v in program["values"] if v["from"] in ("input", "constant")}
        for step in program["steps"]:
            kernel = document["kernels"][step["kernel"]]
            self.assertEqual((len(step["inputs"]), len(step["outputs"])), (len(kernel["inputs"]), len(kernel["outputs"])))
            made |= {v["id"] for v in program["values"] if v["from"] == "alias" and v["of"] in made}
            self.assertLessEqual(set(step["inputs"]), made)
            made |= set(step["outputs"])
        self.assertEqual([o["name"] for o in program["outputs"]], ["y"])

    def test_a_native_file_runs_without_compiling(self):
        file = self.compiled()
        self.kiln("finalize", file, "--target", kiln_case.HOST, "-o", self.path("objects"), "--native-file", self.path("native.kiln"))
        self.assertEqual({k["format"] for k in self.json("inspect", self.path("native.kiln"))["kernels"]}, {"native"})
        self.kiln("run", file, "--target", kiln_case.HOST, "--output-dir", self.path("portable"))
        done = self.json("run", self.path("native.kiln"), "--if-cached", "--no-cache", "--output-dir", self.path("native"))
        self.assertEqual(done["cache"]["misses"], 0)
        np.testing.assert_array_equal(np.load(self.path("native/y.npy")), np.load(self.path("portable/y.npy")))
        self.kiln("finalize", file, "--target", "native", "-o", self.path("objects"), "--native-file", self.path("n.kiln"), code=2)

    def test_verify(self):
        document = self.json("verify", self.conv_model())
        self.assertTrue(document["ok"])
        self.assertTrue(self.json("verify", self.conv_model(), "--per-kernel")["ok"])

    def test_verify_against_supplied_outputs(self):
        model = self.conv_model()
        x = np.random.default_rng(3).standard_normal((1, 3, 9, 7)).astype(np.float32)
        os.mkdir(self.path("data"))
        np.save(self.path("data/x.npy"), x)
        want = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
        np.save(self.path("data/y.npy"), want)
        self.kiln("verify", model, "--inputs", self.path("data"))
        np.save(self.path("data/y.npy"), want + 1)
        self.assertFalse(json.loads(self.kiln("verify", model, "--inputs", self.path("data"), "--json", code=1).stdout)["ok"])

    def test_open_dimensions_bind_from_inputs_or_options(self):
        model = os.path.join(kiln_case.MODELS, "resnet18_dynbatch.onnx")
        self.kiln("compile", model, "-o", self.path("m.kiln"), "--dim", "batch=1:4")
        x = np.random.default_rng(3).standard_normal((2, 3, 224, 224)).astype(np.float32)
        np.save(self.path("x.npy"), x)
        self.kiln("run", self.path("m.kiln"), "--input", f"input={self.path('x.npy')}", "--output-dir", self.path("out"))
        want = onnxruntime.InferenceSession(model).run(None, {"input": x})[0]
        got = np.load(self.path("out/output.npy"))
        self.assertLess(np.linalg.norm(got - want) / np.linalg.norm(want), 1e-4)
        self.kiln("run", self.path("m.kiln"), "--dim", "batch=1", "--output-dir", self.path("one"))
        self.assertEqual(np.load(self.path("one/output.npy")).shape, (1, 1000))
        self.kiln("run", self.path("m.kiln"), "--dim", "batch=5", code=5)
        self.kiln("run", self.path("m.kiln"), code=2)

    def test_an_unseen_batch_compiles_nothing(self):
        node = helper.make_node
        weights = np.random.default_rng(1).standard_normal((24, 5)).astype(np.float32)
        nodes = [node("MatMul", ["x", "w"], ["h"]), node("Softmax", ["h"], ["y"], axis=1), node("ReduceSum", ["h", "zero"], ["s"], keepdims=0)]
        model = self.save("m.onnx", nodes, [tensor("x", ["batch", 24])], [tensor("y", ["batch", 5]), tensor("s", [5])], [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array([0]), "zero")])
        self.kiln("compile", model, "-o", self.path("m.kiln"), "--dim", "batch=1:99")
        kernels = json.loads(self.kiln("inspect", self.path("m.kiln"), "--json").stdout)["kernels"]
        self.assertEqual(sorted(str(k["rows"]) for k in kernels), ["None", "batch", "batch"])  # the sum is one of all rows
        self.assertTrue(all(k["all_sizes"] and k["missing"] == "" for k in kernels))
        for batch, compiled in ((3, None), (1, 0), (40, 0)):
            x = np.random.default_rng(batch).standard_normal((batch, 24)).astype(np.float32)
            np.save(self.path("x.npy"), x)
            done = self.kiln("run", self.path("m.kiln"), "--input", f"x={self.path('x.npy')}", "--specialize", "off", "--output-dir", self.path("out"), "--json")
            if compiled is not None:
                self.assertEqual(json.loads(done.stdout)["cache"]["misses"], compiled)
            want = onnxruntime.InferenceSession(model).run(None, {"x": x})
            for name, expected in zip(("y", "s"), want):
                np.testing.assert_allclose(np.load(self.path(f"out/{name}.npy")), expected, rtol=1e-4, atol=1e-5)
        self.kiln("tune", self.path("m.kiln"), "--dim", "batch=2", "--specialize", "off", code=2)
        self.assertIn("tuning specializes kernels", self.error_line(self.kiln("run", self.path("m.kiln"), "--dim", "batch=2", "--specialize", "off", "--tune", "quick", code=2)))

    def test_the_size_of_an_open_dimension_is_a_number_like_others(self):
        node = helper.make_node
        nodes = [node("Shape", ["x"], ["dims"]), node("Shape", ["x"], ["rows"], end=1), node("Cast", ["rows"], ["f"], to=TensorProto.FLOAT), node("Div", ["x", "f"], ["y"])]
        model = self.save("m.onnx", nodes, [tensor("x", ["n", 4])], [tensor("y", ["n", 4]), tensor("dims", [2], TensorProto.INT64)])
        self.kiln("compile", model, "-o", self.path("m.kiln"), "--dim", "n=1:9")
        for n in (1, 3):
            np.save(self.path("x.npy"), np.full((n, 4), 6, np.float32))
            self.kiln("run", self.path("m.kiln"), "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
            np.testing.assert_array_equal(np.load(self.path("out/y.npy")), np.full((n, 4), 6 / n, np.float32))
            np.testing.assert_array_equal(np.load(self.path("out/dims.npy")), [n, 4])

    def test_wrong_inputs_are_named(self):
        file = self.compiled()
        np.save(self.path("bad.npy"), np.zeros((2, 2), np.float32))
        self.assertIn("'x'", self.error_line(self.kiln("run", file, "--input", f"x={self.path('bad.npy')}", code=5)))
        self.assertIn("'z'", self.error_line(self.kiln("run", file, "--input", f"z={self.path('bad.npy')}", code=2)))
        self.kiln("run", file, "--input", f"x={self.path('missing.npy')}", code=3)
        os.mkfifo(self.path("pipe.npy"))
        self.kiln("run", file, "--input", f"x={self.path('pipe.npy')}", code=3)
        self.kiln("run", file, "--device", "hip:0", code=4)


if __name__ == "__main__":
    kiln_case.main()
