"""bench/memory.py: what counts as anonymous memory, as a mapped file and as a peak; the row of a table."""
import mmap
import os
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import memory  # noqa: E402

MB = 10**6


class Memory(unittest.TestCase):
    def test_anonymous_memory_counts_and_leaves_a_peak(self):
        before = memory.resident()
        memory.peak_again()
        array = np.ones(64 * MB, np.uint8)
        during = memory.resident()
        del array
        after = memory.resident()
        self.assertAlmostEqual(during["anonymous"] - before["anonymous"], 64, delta=2)
        self.assertAlmostEqual(memory.peak() - before["all"], 64, delta=6)
        self.assertLess(after["all"], before["all"] + 6)

    def test_pages_of_a_file_count_by_themselves(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"1" * 32 * MB)
            file.flush()
            before = memory.resident()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                self.assertEqual(np.frombuffer(mapped, np.uint8).max(), ord("1"))
                during = memory.resident()
        self.assertAlmostEqual(during["files"] - before["files"], 32, delta=2)
        self.assertAlmostEqual(during["anonymous"], before["anonymous"], delta=4)

    def test_a_system_that_is_missing_leaves_its_cells_empty(self):
        found = {"kiln": {"arena": 1, "runs": 1.26, "resident": 5, "mapped": 4}, "torch": {"runs": 7, "resident": 8}}
        self.assertEqual(memory.row("net", 3, found), "| net | 3.0 | 1.0 | 1.3 | - | - | 7.0 | 5.0 (4.0) | - | - | 8.0 |")


if __name__ == "__main__":
    unittest.main()
