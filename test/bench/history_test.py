#!/usr/bin/env python3
"""bench/history.py: what benchmarks append, what is printed and marked, and that the repository's file is sound."""
import argparse
import contextlib
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path.insert(0, BENCH)
import history  # noqa: E402

KEYS = ["date", "commit", "build", "machine", "command", "case", "peer", "ratio", "kiln_ms", "peer_ms"]


class History(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "history.jsonl")
        self.kiln = os.path.join(folder.name, "kiln")
        with open(self.kiln, "w") as f:
            f.write("#!/bin/sh\necho 'kiln 1.2 (dialect 3, cpu abc)'\n")
        os.chmod(self.kiln, 0o755)

    def run_of(self, commit, arguments=("models.py", "folder/kiln", "--threads", "1"), **cases):
        """What a benchmark does whose command line is `arguments`: each case is (peer, our time, the peer's)."""
        parser = argparse.ArgumentParser()
        history.add_options(parser)
        log = history.Log(parser.parse_args(["--history", self.file, "--commit", commit]), self.kiln)
        with mock.patch.object(sys, "argv", [os.path.join(BENCH, arguments[0]), *arguments[1:]]):
            for name, (peer, ours, theirs) in cases.items():
                log.add("Z80, 1 thread", history.case(name), peer, ours, theirs)

    def printed(self, *arguments):
        out = io.StringIO()
        with mock.patch.object(sys, "argv", ["history.py", self.file, *arguments]), contextlib.redirect_stdout(out):
            history.main()
        return out.getvalue()

    def test_a_line_has_all_that_a_ratio_needs(self):
        arguments = ("models.py", "folder/kiln", "--history", "there.jsonl", "--threads", "1", "--commit=c1")
        self.run_of("c1", arguments, net_fp16=("torch 2.1", 2, 3))
        line, = history.read(self.file)
        self.assertEqual(list(line), KEYS)
        self.assertEqual(line["command"], "bench/models.py kiln --threads 1")
        self.assertEqual((line["commit"], line["build"]), ("c1", "dialect 3, cpu abc"))
        self.assertEqual((line["case"], line["ratio"]), ("net_fp16, batch 1, f16", 1.5))

    def test_without_the_option_nothing_is_written(self):
        options = argparse.Namespace(history=None, commit=None)
        history.Log(options, "no program").add("m", "c", "p", 1, 1)
        self.assertFalse(os.path.exists(self.file))

    def test_a_run_without_a_commit_ends_before_it_measures(self):
        with mock.patch.object(history, "HERE", "/"), self.assertRaisesRegex(SystemExit, "--commit"):
            history.Log(argparse.Namespace(history=self.file, commit=None), self.kiln)

    def test_the_last_ratio_stands_beside_the_one_before_and_the_best(self):
        for commit, peer, theirs in (("c1", "torch 2.1", 1.2), ("c2", "torch 2.2", 1.5), ("c3", "torch 2.2", 1.4)):
            self.run_of(commit, a=(peer, 1, theirs))
        row = self.printed().splitlines()[-1]
        self.assertIn("torch 2.2 | bench/models.py", row)
        self.assertIn("| c3 | 1.40 | 1.50 (c2) | 1.50 (c2) | **7 % below the one before**, **7 % below the best** |", row)

    def test_small_falls_are_not_marked_and_slow_ones_are(self):
        for commit, theirs in (("c1", 1.0), ("c2", 0.96), ("c3", 0.93)):
            self.run_of(commit, a=("torch 2", 1, theirs), b=("torch 2", 1, 1))
        a, b = self.printed().splitlines()[-2:]
        self.assertTrue(a.endswith("| 0.93 | 0.96 (c2) | 1.00 (c1) | **7 % below the best** |"), a)
        self.assertTrue(b.endswith("|  |"), b)

    def test_programs_and_peers_have_rows_of_their_own(self):
        self.run_of("c1", a=("torch 2", 1, 2))
        self.run_of("c2", ("sweep.py", "kiln"), a=("torch 2", 1, 1))
        self.run_of("c3", a=("onnxruntime 1", 1, 1))
        text = self.printed()
        self.assertEqual(text.count("| a, batch 1, f32 |"), 3)
        self.assertNotIn("below", text)

    def test_filters(self):
        self.run_of("c1", a=("torch 2", 1, 2), b=("torch 2", 1, 2))
        self.assertNotIn("| a,", self.printed("--case", "b, batch 1", "--machine", "Z80"))
        with self.assertRaisesRegex(SystemExit, "no line"):
            self.printed("--machine", "PDP-11")

    def test_the_file_of_the_repository(self):
        for line in history.read(history.DEFAULT):
            self.assertEqual(list(line), KEYS)
            self.assertAlmostEqual(line["ratio"], line["peer_ms"] / line["kiln_ms"], delta=2e-3 * line["ratio"])
            self.assertRegex(line["command"], r"^bench/\S+\.py ")
            self.assertRegex(line["commit"], r"^[0-9a-f]{8}$")

    def test_the_machine_is_named(self):
        self.assertRegex(history.processor(2), r"\S.*, 2 threads$")


if __name__ == "__main__":
    unittest.main()
