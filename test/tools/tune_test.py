"""kiln tune, --tune, and tuning records, from the command line."""
import glob
import json
import os
import shutil

import numpy as np
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor


class Tune(KilnCase):
    def products(self):
        """x[64, 96] -> MatMul 96x128, Relu, MatMul 128x48 -> y."""
        rng = np.random.default_rng(4)
        weights = [numpy_helper.from_array((rng.standard_normal(s) / 8).astype(np.float32), n) for n, s in [("a", (96, 128)), ("b", (128, 48))]]
        nodes = [helper.make_node("MatMul", ["x", "a"], ["h"], name="first"), helper.make_node("Relu", ["h"], ["r"], name="relu"), helper.make_node("MatMul", ["r", "b"], ["y"], name="second")]
        return self.compiled(self.save("products.onnx", nodes, [tensor("x", [64, 96])], [tensor("y", [64, 48])], weights))

    def records(self, cache="cache"):
        return sorted(glob.glob(self.path(cache + "/records/*.kernel.json")))

    def test_tune_writes_records_and_the_next_process_uses_them_without_compiling(self):
        file = self.products()
        before = self.json("run", file, "--output-dir", self.path("before"))
        self.assertEqual(before["tuning"]["tier"], 0)
        tuned = self.json("tune", file, "--quick", "--budget", "60s")
        self.assertEqual(len(tuned["kernels"]), tuned["tuning"]["kernels"])
        self.assertEqual({k["state"] for k in tuned["kernels"]}, {"tuned"})
        self.assertLess(tuned["difference"], 1e-4)
        for kernel in tuned["kernels"]:
            self.assertGreaterEqual(kernel["speedup"], 1)
        times = [k["ms_per_run"] for k in tuned["kernels"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertEqual(len(self.records()), tuned["tuning"]["kernels"])
        with open(self.records()[0]) as f:
            record = json.load(f)
        self.assertEqual(record["kiln_tuning_record"], 2)
        self.assertEqual(record["device_class"], tuned["device_class"])
        self.assertEqual(record["sessions"][0]["candidates"][0]["configuration"], {})

        warm = self.json("run", file, "--if-cached", "--output-dir", self.path("after"))
        self.assertEqual((warm["tuning"]["tier"], warm["tuning"]["tuned"], warm["cache"]["misses"]), (1, tuned["tuning"]["kernels"], 0))
        self.assertGreaterEqual(warm["tuning"]["gain"], 1)
        np.testing.assert_allclose(np.load(self.path("after/y.npy")), np.load(self.path("before/y.npy")), rtol=1e-4, atol=1e-5)
        again = self.json("tune", file, "--quick")
        self.assertEqual({k["state"] for k in again["kernels"]}, {"known"})
        self.assertEqual({k["state"] for k in self.json("tune", file, "--quick", "--again")["kernels"]}, {"tuned"})

    def test_the_budget_is_kept(self):
        tuned = self.json("tune", self.products(), "--exhaustive", "--budget", "1ms")
        self.assertIn("not reached", {k["state"] for k in tuned["kernels"]})
        self.assertLess(tuned["seconds"], 20)

    def test_tune_prints_a_table(self):
        text = self.kiln("tune", self.products(), "--quick", "--budget", "20s").stdout
        self.assertIn("speedup", text)
        self.assertRegex(text, "times as fast|nothing is faster than the default")

    def test_run_with_tune_answers_and_leaves_records(self):
        file = self.products()
        first = self.json("run", file, "--tune", "quick", "--tune-budget", "20s", "--output-dir", self.path("out"))
        self.assertTrue(os.path.exists(self.path("out/y.npy")))
        self.assertGreater(first["tuning"]["seconds"], 0)
        self.assertGreaterEqual(first["tuning"]["tuned"], 1)
        self.assertEqual(self.json("run", file, "--if-cached")["tuning"]["tier"], 1)

    def test_perf_with_tune_measures_both_tiers_and_the_time_between(self):
        document = self.json("perf", self.products(), "--tune", "quick", "--tune-budget", "20s", "-n", "20", "--warmup", "2")
        tuning = document["tuning"]
        # How many are done within the budget is the machine's business.
        self.assertEqual(tuning["tier"], 1)
        self.assertGreaterEqual(tuning["tuned"], 1)
        self.assertAlmostEqual(tuning["progress"], tuning["tuned"] / tuning["kernels"])
        self.assertEqual((tuning["tier0"]["runs"], tuning["tier1"]["runs"]), (20, 20))
        self.assertGreater(tuning["during"]["runs"], 0)
        self.assertNotIn("problem", tuning)
        self.assertGreater(tuning["p99_ratio"], 0)
        self.assertIn("tier 1", self.kiln("perf", self.products(), "-n", "2").stdout)

    def test_without_a_cache_nothing_is_kept(self):
        file = self.products()
        self.assertEqual(self.json("tune", file, "--quick", "--budget", "10s", "--no-cache")["tuning"]["tuned"], 0)
        self.assertFalse(os.path.exists(self.path("cache")))

    def test_records_travel_with_export_import_layers_and_inside_the_file(self):
        file = self.products()
        kernels = self.json("tune", file, "--quick", "--budget", "60s", "--embed")["embedded"]
        self.assertEqual(kernels, len(self.records()))
        self.kiln("inspect", file, "--check")
        self.kiln("cache", "export", self.path("shipped"))
        self.assertEqual(len(self.records("shipped")), kernels)
        layer = self.json("run", file, "--if-cached", env={"KILN_CACHE_DIR": self.path("empty"), "KILN_CACHE_PATH": self.path("shipped")})
        self.assertEqual((layer["tuning"]["tuned"], layer["cache"]["misses"]), (kernels, 0))
        hinted = self.json("run", file, env={"KILN_CACHE_DIR": self.path("nothing")})
        self.assertEqual(hinted["tuning"]["tuned"], kernels)
        self.kiln("cache", "import", self.path("shipped"), env={"KILN_CACHE_DIR": self.path("imported")})
        self.assertEqual(len(self.records("imported")), kernels)

    def test_damaged_and_newer_records_cost_a_warning(self):
        file = self.products()
        self.kiln("tune", file, "--quick", "--budget", "60s")
        for text in ["", "{", "[]", json.dumps({"kiln_tuning_record": 99})]:
            for record in self.records():
                with open(record, "w") as f:
                    f.write(text)
            done = self.kiln("run", file)
            self.assertEqual(len([l for l in done.stderr.splitlines() if "tuning records" in l]), 1, done.stderr)
        shutil.rmtree(self.path("cache/records"))
        self.assertEqual(self.json("run", file)["tuning"]["tier"], 0)

    def test_wrong_options_exit_2(self):
        file = self.products()
        for arguments in [["tune", file, "--budget", "soon"], ["tune", file, "--budget", "-3s"], ["tune", file, "--quick", "--exhaustive"], ["perf", file, "--tune", "hard"], ["run", file, "--tune", "quick", "--tune-budget", "5 parsecs"]]:
            self.error_line(self.kiln(*arguments, code=2))


if __name__ == "__main__":
    kiln_case.main()
