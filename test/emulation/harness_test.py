"""The emulation harness itself: right kernels pass, every deliberate mistake is caught."""
import os
import re
import sys
import tempfile
import unittest

import numpy as np

import compare
import handmade
import pool
from emulate import SKIPPED, TARGETS


class Harness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = pool.Worker()
        cls.addClassCleanup(cls.worker.close)

    def fresh_folder(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        return self.folder.name + "/k"

    def run_folder(self, inputs, want, dtype="f32", timeout=120):
        """What is wrong, or None."""
        files = {}
        for name, data in inputs.items():
            files[name] = os.path.join(self.folder.name, name + ".npy")
            np.save(files[name], data)
        answer = self.worker.run({"folder": self.folder.name + "/k", "inputs": files, "outputs": self.folder.name, "orders": ["forward", "reversed", "shuffled"]}, timeout)
        if not answer["done"]:
            return answer["error"]
        with open(answer["outputs"]["y"], "rb") as f:
            wrong = compare.difference(f.read(), want, dtype, 1e-5)[1]
        return f"result: {wrong}" if wrong else f"order: {answer['differing']}" if answer["differing"] else None

    def reverse(self, target, text):
        x = np.arange(256, dtype=np.float32)
        handmade.write(self.fresh_folder(), target, text, "reverse", 256, [("input", 0), ("output", 0), ("scratch", 0)], [("f32", [256], "x"), ("f32", [256], None)],
                       [{"bytes": 64, "prepared": False, "zeroed": True}])
        return self.run_folder({"x": x}, x[::-1])

    def product(self, target, row=None):
        random = np.random.default_rng(3)
        a, b = (random.integers(-8, 8, (16, 16)).astype(np.float16) for _ in range(2))
        handmade.write(self.fresh_folder(), target, handmade.matrix_text(target, row), "product", handmade.MATRIX[target]["wave"], [("input", 0), ("input", 1), ("output", 0)],
                       [("f16", [16, 16], "a"), ("f16", [16, 16], "b"), ("f32", [16, 16], None)])
        return self.run_folder({"a": a, "b": b}, a.astype(np.float32) @ b.astype(np.float32).T)

    def test_the_right_kernel_passes(self):
        for target in TARGETS:
            self.assertIsNone(self.reverse(target, handmade.REVERSE), target)

    def test_every_mistake_is_caught(self):
        for name, old, new, says in handmade.MISTAKES:
            for target in TARGETS:
                with self.subTest(mistake=name, target=target):
                    self.assertIn(old, handmade.REVERSE)
                    found = self.reverse(target, handmade.REVERSE.replace(old, new))
                    self.assertRegex(str(found), re.compile(says), name)

    def test_lane_maps(self):
        for target in TARGETS:
            with self.subTest(target=target):
                self.assertIsNone(self.product(target))

    def test_a_wrong_lane_map_is_caught(self):
        wrong = {"gfx942": "r * 4 + l // 16", "gfx1100": "8 * (l // 16) + r", "gfx1201": "2 * r + l // 16"}
        for target in TARGETS:
            with self.subTest(target=target):
                self.assertRegex(str(self.product(target, wrong[target])), "result")

    def test_a_kernel_that_does_not_end_is_stopped(self):
        text = handmade.REVERSE.replace("  ret void\n", "  br label %again\nagain:\n  %w = load volatile float, ptr addrspace(1) %to\n  br label %again\n")
        x = np.zeros(256, np.float32)
        handmade.write(self.fresh_folder(), "gfx1100", text, "reverse", 256, [("input", 0), ("output", 0), ("scratch", 0)], [("f32", [256], "x"), ("f32", [256], None)],
                       [{"bytes": 64, "prepared": False, "zeroed": True}])
        self.assertRegex(self.run_folder({"x": x}, x, timeout=8), "more than 8 s, at step 0 reverse launch reverse")


if __name__ == "__main__":
    why = pool.missing() or (None if handmade.LLC and handmade.LLD else "no llc and ld.lld to make kernels with")
    if why:
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
