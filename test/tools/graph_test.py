"""What --graph auto finds out is remembered: from the command line, on the stand-in for the CUDA driver. KILN_STAND_IN
is that library, and KILN_STAND_IN_PROGRAM
writes files with kernels for it."""
import glob
import json
import os
import subprocess

import kiln_case
from kiln_case import KilnCase

ON_GPU = ["--device", "cuda:0"]


class Graph(KilnCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("drivers"))
        os.symlink(os.environ["KILN_STAND_IN"], self.path("drivers/libcuda.so.1"))
        # LeakSanitizer crashes when it looks at the threads of a driver that was opened late.
        no_leaks = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))
        self.env = {"ASAN_OPTIONS": no_leaks, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [self.path("drivers"), os.environ.get("LD_LIBRARY_PATH")]))}

    def program(self, kind="branching"):
        out = self.path(kind + ".kiln")
        subprocess.run([os.environ["KILN_STAND_IN_PROGRAM"], out, kind], check=True)
        return out

    def perf(self, file, *more):
        return self.json("perf", file, *ON_GPU, "-n", "3", "--warmup", "1", *more, env=self.env)["graph"]

    def records(self):
        return sorted(glob.glob(self.path("cache/records/*.graph.json")))

    def edit(self, **changes):
        record = self.records()[0]
        with open(record) as f:
            text = json.load(f)
        with open(record, "w") as f:
            json.dump({**text, **changes}, f)

    def test_what_auto_decides_is_taken_without_a_trial_by_the_next_process(self):
        file = self.program()
        first = self.perf(file, "--output-dir", self.path("first"))
        self.assertFalse(first["remembered"])
        self.assertIn(first["decision"], ["eager", "chain", "branches"])
        self.assertEqual(first["captures"], 2)  # both orders were tried
        self.assertEqual(len(self.records()), 1)
        second = self.perf(file, "--output-dir", self.path("second"))
        self.assertTrue(second["remembered"])
        for key in ["decision", "eager_ms", "replay_ms"]:
            self.assertEqual(second[key], first[key])
        for decision, captures, mode in [({"replay": False, "branches": False}, 0, "eager"), ({"replay": True, "branches": False}, 1, "replay"), ({"replay": True, "branches": True}, 1, "replay")]:
            self.edit(**decision)
            told = self.perf(file, "--output-dir", self.path("told"))
            self.assertEqual((told["remembered"], told["captures"], told["mode"], told["branches"]), (True, captures, mode, decision["branches"]))
            self.assertEqual(told["replays"] > 0, decision["replay"])
            self.assertEqual((told["device_graphs"], told["device_graph_bytes"] > 0), (captures, captures > 0))
            for name in os.listdir(self.path("first")):
                with open(self.path("first/" + name), "rb") as a, open(self.path("told/" + name), "rb") as b:
                    self.assertEqual(a.read(), b.read())
        run = self.json("run", file, *ON_GPU, env=self.env)["graph"]
        self.assertEqual((run["remembered"], run["decision"], run["mode"]), (True, "branches", "replay"))

    def test_a_decision_is_about_one_program_and_class(self):
        file = self.program()
        self.perf(file)
        self.assertFalse(self.perf(self.program("plain"))["remembered"])
        self.assertEqual(len(self.records()), 2)
        os.remove(self.records()[0]), os.remove(self.records()[0])
        self.perf(file)
        self.edit(code="of another compiler", llvm="1.0")
        self.assertTrue(self.perf(file)["remembered"], "the compiler is only where it comes from")
        for field, other in [("device_class", "another"), ("program", "another"), ("kiln_graph_decision", 99)]:
            self.edit(**{field: other})
            self.assertFalse(self.perf(file)["remembered"], field)
            if field != "kiln_graph_decision":
                self.assertTrue(self.perf(file)["remembered"], field)
        self.assertFalse(self.perf(file, "--no-cache")["remembered"])

    def test_tune_measures_again_when_asked(self):
        file = self.program()
        self.perf(file)
        self.edit(eager_ms=1234.5)
        tuned = self.json("tune", file, *ON_GPU, "--quick", env=self.env)["graph"]
        self.assertEqual((tuned["remembered"], tuned["eager_ms"]), (True, 1234.5))
        again = self.json("tune", file, *ON_GPU, "--quick", "--again", env=self.env)["graph"]
        self.assertFalse(again["remembered"])
        self.assertLess(again["eager_ms"], 1234.5)
        self.assertEqual(self.perf(file)["eager_ms"], again["eager_ms"])

    def test_other_policies_keep_nothing_and_on_uses_what_is_known_of_the_order(self):
        file = self.program()
        self.assertEqual((self.perf(file, "--graph", "off")["decision"], self.perf(file, "--graph", "on")["remembered"], self.records()), (None, False, []))
        self.perf(file)
        self.edit(replay=True, branches=True)
        on = self.perf(file, "--graph", "on")
        self.assertEqual((on["remembered"], on["captures"], on["branches"]), (True, 1, True))
        self.edit(replay=False, branches=False)
        on = self.perf(file, "--graph", "on")
        self.assertEqual((on["remembered"], on["captures"], on["mode"]), (False, 2, "replay"))
        self.assertEqual(self.perf(file, "--graph", "off")["replays"], 0)

    def test_on_the_host_there_is_nothing_to_decide(self):
        graph = self.json("perf", self.compiled(), "-n", "2")["graph"]
        self.assertEqual((graph["decision"], graph["remembered"], self.records()), (None, False, []))


if __name__ == "__main__":
    kiln_case.main()
