"""The interpreter's lock is free while Kiln compiles and runs; a session serves several threads."""
import gc
import os
import sys
import threading
import time
import unittest

import kiln
import numpy as np
from onnx import helper, numpy_helper

from python_case import PythonCase, conv_model, model_of, reference, tensor


def heavy_model(size=512, layers=12):
    """A chain of matrix products that takes milliseconds."""
    rng = np.random.default_rng(8)
    weights = [numpy_helper.from_array((rng.standard_normal((size, size)) / size).astype(np.float32), f"w{i}") for i in range(layers)]
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(layers)]
    return model_of(nodes, [tensor("x0", [size, size])], [tensor(f"x{layers}", [size, size])], weights)


class Threads(PythonCase):
    def run_all(self, functions):
        failures = []

        def guarded(function):
            try:
                function()
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failures:
            raise failures[0]

    def test_other_threads_go_on_during_a_run(self):
        with kiln.compile(heavy_model()).session(threads=1) as session:
            x = np.ones((512, 512), np.float32)
            session(x)
            ended, ticks = threading.Event(), [0]

            def tick():
                while not ended.is_set():
                    ticks[0] += 1
                    time.sleep(0)

            def runs():
                for _ in range(20):
                    session(x)
                ended.set()

            begin = time.perf_counter()
            self.run_all([tick, runs])
            # A run that held the lock would let the other thread in only between runs: 20 times.
            self.assertGreater(ticks[0], 200, f"in {time.perf_counter() - begin:.3f} s")

    def test_eight_threads_with_a_session_each(self):
        onnx_model = conv_model()
        model = kiln.compile(onnx_model)
        rng = np.random.default_rng(9)
        data = [rng.standard_normal((1 + i % 3, 3, 9, 7)).astype(np.float32) for i in range(8)]
        expected = [reference(onnx_model, {"x": x})["y"] for x in data]

        def worker(x, y):
            with model.session(threads=1) as session:
                for _ in range(50):
                    self.assert_close(session(x), y)

        self.run_all([lambda x=x, y=y: worker(x, y) for x, y in zip(data, expected)])

    def test_eight_threads_share_a_session(self):
        onnx_model = conv_model()
        rng = np.random.default_rng(10)
        data = [rng.standard_normal((1 + i % 3, 3, 9, 7)).astype(np.float32) for i in range(8)]
        expected = [reference(onnx_model, {"x": x})["y"] for x in data]
        with kiln.compile(onnx_model).session(threads=1, most_programs=2) as session:

            def worker(x, y):
                for _ in range(50):
                    self.assert_close(session(x), y)

            self.run_all([lambda x=x, y=y: worker(x, y) for x, y in zip(data, expected)])

    def test_nothing_is_left_when_threads_have_dropped_each_others_programs(self):
        """With one program kept, a thread often drops the program that another has just run."""
        def held():
            gc.collect()
            return [len(os.listdir("/proc/self/" + what)) for what in ("task", "fd")]

        weights = numpy_helper.from_array(np.eye(8, dtype=np.float32), "w")
        model = kiln.compile(model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", ["n", 8])], [tensor("y", ["n", 8])], [weights]))
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        before = None
        for _ in range(3):
            sys.setswitchinterval(1e-6)
            session = model.session(threads=1, most_programs=1)

            def runs(first):
                for i in range(300):
                    x = np.full((1 + (7 * i + 3 * first) % 5, 8), i, np.float32)
                    np.testing.assert_array_equal(session(x), x)

            self.run_all([lambda k=k: runs(k) for k in range(8)])
            sys.setswitchinterval(interval)
            session.close()
            after = held()
            if before is not None:
                self.assertEqual(before, after, "threads and descriptors")
            before = after

    def test_a_session_may_be_closed_at_any_time(self):
        model = kiln.compile(conv_model())
        for _ in range(5):
            session = model.session(threads=1)
            refused = []

            def worker():
                try:
                    end = time.monotonic() + 60
                    while time.monotonic() < end:
                        for n in range(1, 5):
                            session(np.zeros((n, 3, 9, 7), np.float32))
                except kiln.errors.UsageError as e:
                    refused.append(str(e))

            def closer():
                time.sleep(0.05)
                session.close()

            self.run_all([worker, worker, closer])
            self.assertEqual(refused, ["session: it is closed"] * 2)

    def test_threads_compile_at_once(self):
        results = []
        self.run_all([lambda i=i: results.append(kiln.compile(conv_model(i + 1))) for i in range(4)])
        self.assertEqual(sorted(m.inputs[0].shape[0] for m in results), [1, 2, 3, 4])


if __name__ == "__main__":
    unittest.main()
