"""Many calls: memory does not grow, callbacks are called, what they raise arrives, interpreters end cleanly."""
import gc
import subprocess
import sys
import time
import unittest
import weakref

import kiln
import numpy as np

from python_case import PythonCase, add_model, conv_model


def resident_bytes():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


class Calls(PythonCase):
    def test_memory_is_stable(self):
        """The short form of test/long/python_calls.py."""
        with kiln.compile(add_model((64, 64))).session(threads=1) as session:
            a = np.ones((64, 64), np.float32)
            for _ in range(2000):
                session.run({"a": a, "b": a})
            before = resident_bytes()
            for _ in range(10000):
                session.run({"a": a, "b": a})
                session(a, a)
            self.assertLess(resident_bytes() - before, 2 << 20)

    def test_failed_calls_do_not_keep_memory(self):
        with kiln.compile(add_model((64, 64))).session(threads=1) as session:
            a = np.ones((64, 64), np.float32)
            references = sys.getrefcount(a)
            for _ in range(100):
                with self.assertRaises(kiln.KilnError):
                    session.run({"a": a, "b": a[:1]})
            gc.collect()
            self.assertEqual(sys.getrefcount(a), references)

    def test_a_bound_program_runs_on_addresses(self):
        """What torch.compile's backend uses."""
        with kiln.compile(add_model((4, 16))).session(threads=1) as session:
            program = session._core.bind([(4, 16), (4, 16)], False)
            self.assertEqual(program.outputs(), [((4, 16), "float32")] * 2)
            a, b, y, z = (np.full((4, 16), value, np.float32) for value in (2, 3, 0, 0))
            program.run([a.ctypes.data, b.ctypes.data], [y.ctypes.data, z.ctypes.data], None)
            for got, expected in zip((y, z), session(a, b)):
                np.testing.assert_array_equal(got, expected)
            with self.assertRaisesRegex(kiln.errors.UsageError, "inputs: the model has 2, and 1 are given"):
                program.run([a.ctypes.data], [y.ctypes.data, z.ctypes.data], None)
            with self.assertRaisesRegex(kiln.errors.UsageError, "null"):
                program.run([0, b.ctypes.data], [y.ctypes.data, z.ctypes.data], None)
            with self.assertRaises(kiln.errors.InvalidShapeError):
                session._core.bind([(4, 15), (4, 16)], False)
        with self.assertRaisesRegex(kiln.errors.UsageError, "closed"):
            program.run([a.ctypes.data, b.ctypes.data], [y.ctypes.data, z.ctypes.data], None)

    def test_progress_is_reported(self):
        steps = []
        with kiln.compile(conv_model(2)).session(threads=1, progress=lambda done, total: steps.append((done, total))) as session:
            session(np.zeros((2, 3, 9, 7), np.float32))
            self.assertGreaterEqual(len(steps), 1)
            self.assertEqual(steps[-1][0], steps[-1][1])
            count = len(steps)
            session(np.zeros((2, 3, 9, 7), np.float32))
            self.assertEqual(len(steps), count)

    def test_what_progress_raises_arrives(self):
        def stop(done, total):
            raise KeyError("enough")

        with kiln.compile(conv_model(2)).session(threads=1, progress=stop) as session:
            with self.assertRaisesRegex(KeyError, "enough"):
                session(np.zeros((2, 3, 9, 7), np.float32))
            session(np.zeros((2, 3, 9, 7), np.float32))

    def test_a_cycle_through_a_callback_is_collected(self):
        class holder:
            pass

        h = holder()
        h.session = kiln.compile(add_model()).session(threads=1, progress=lambda *_: h)
        gone = weakref.ref(h)
        del h
        gc.collect()
        self.assertIsNone(gone())

    def test_an_interpreter_ends_with_sessions_open(self):
        kiln.compile(conv_model(2), self.path("m.kiln"))
        script = f"""
import kiln, numpy
session = kiln.open({self.path("m.kiln")!r}).session(progress=lambda *_: session, tune="quick")
print(session(numpy.zeros((2, 3, 9, 7), numpy.float32)).shape)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip(), done.stderr), (0, "(2, 5, 9, 7)", ""))

    def test_background_tuning_swaps_kernels_in(self):
        with kiln.compile(conv_model(2)).session(threads=1, tune="quick", tune_seconds=20) as session:
            x = np.random.default_rng(7).standard_normal((2, 3, 9, 7)).astype(np.float32)
            first = session(x)
            begin = time.monotonic()
            while not session.last_program()["tuning_done"]:
                self.assert_close(session(x), first)
                self.assertLess(time.monotonic() - begin, 120)
            self.assertGreaterEqual(session.last_program()["tuned"], 1, session.last_program())


if __name__ == "__main__":
    unittest.main()
