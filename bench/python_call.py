"""What a call from Python costs beside the same call of the C interface: a model with one small Add, on one thread.

    PYTHONPATH=build/ci/python build/python/bin/python bench/python_call.py [--calls 20000] [--json]
    ... bench/python_call.py --threads 1,2,4,8

Prints microseconds for each call, the median of 7 rounds: of kiln_run() by ctypes' function pointer in a loop of C
(libkiln_runtime's own cost), of session.run({...}), of session(x), and of session.run with arrays to fill. With --threads, how many runs a
second that many Python threads make, each with a session of its own that has one thread: of the same model, and of one whose
products take some milliseconds.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
import threading
import time

import kiln
import numpy as np
from onnx import TensorProto, helper, numpy_helper

C_LOOP = r"""
#include <time.h>
#include "kiln.h"
double run(const char* path, int calls) {
  kiln_program* p; kiln_context* c;
  if (kiln_program_open(path, 1, &p) || kiln_context_create(p, &c)) return -1;
  float x[16] = {1}, y[16];
  const void* in[] = {x};
  void* out[] = {y};
  kiln_run(c, in, out);
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < calls; ++i) if (kiln_run(c, in, out)) return -1;
  clock_gettime(CLOCK_MONOTONIC, &b);
  kiln_context_destroy(c); kiln_program_close(p);
  return (b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) / 1e3;
}
"""


def small_model():
    shape = [1, 16]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def c_loop(folder, model, calls):
    """A function that returns the microseconds of one call in C."""
    package = os.path.dirname(os.path.realpath(kiln.__file__))
    header = os.path.join(package, "../../runtime")
    libraries = os.path.join(os.path.dirname(os.path.dirname(kiln.__path__[0])), "lib")
    with open(f"{folder}/loop.c", "w") as f:
        f.write(C_LOOP)
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "-I", header, f"{folder}/loop.c", "-o", f"{folder}/loop.so", "-L", libraries,
         f"-Wl,-rpath,{libraries}", "-lkiln_runtime"],
        check=True,
    )  # fmt: skip
    run = ctypes.CDLL(f"{folder}/loop.so").run
    run.restype, run.argtypes = ctypes.c_double, [ctypes.c_char_p, ctypes.c_int]
    return lambda: run(model.path.encode(), calls) / calls


def timed(function, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - begin) * 1e6 / calls


def measure(calls):
    x, y = np.ones((1, 16), np.float32), np.empty((1, 16), np.float32)
    with tempfile.TemporaryDirectory() as folder, kiln.compile(small_model()) as model:
        with model.session(threads=1) as session:
            session(x)
            ways = {
                "C": c_loop(folder, model, calls),
                "session.run({...})": lambda: timed(lambda: session.run({"x": x}), calls),
                "session(x)": lambda: timed(lambda: session(x), calls),
                "session.run({...}, {...})": lambda: timed(lambda: session.run({"x": x}, {"y": y}), calls),
            }
            return {name: statistics.median(way() for _ in range(7)) for name, way in ways.items()}


def product_model():
    """64 rows by 1024 columns, twice."""
    r = np.random.default_rng(0)
    weights = [numpy_helper.from_array(r.standard_normal((1024, 1024), np.float32), n) for n in "wv"]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "v"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 1024])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 1024])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def runs_per_second(sessions, x, seconds=1.0):
    """All sessions at once, each in a thread of its own."""
    counts, begin = [0] * len(sessions), threading.Barrier(len(sessions) + 1)
    end = [0.0]

    def work(number):
        session = sessions[number]
        begin.wait()
        while time.perf_counter() < end[0]:
            session(x)
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(sessions))]
    for t in threads:
        t.start()
    end[0] = time.perf_counter() + seconds
    begin.wait()
    for t in threads:
        t.join()
    return sum(counts) / seconds


def measure_threads(numbers):
    for name, onnx_model in ("one Add", small_model()), ("two products", product_model()):
        with kiln.compile(onnx_model) as model:
            sessions = [model.session(threads=1) for _ in range(max(numbers))]
            x = np.ones(sessions[0].inputs[0].shape, np.float32)
            for s in sessions:
                s(x), s(x)
            for n in numbers:
                rate = statistics.median(runs_per_second(sessions[:n], x) for _ in range(3))
                print(f"{name:14} {n:2} threads {rate:10.0f} runs/s", flush=True)
            for s in sessions:
                s.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", default="")
    chosen = parser.parse_args()
    if chosen.threads:
        measure_threads([int(n) for n in chosen.threads.split(",")])
        return
    result = measure(chosen.calls)
    if chosen.json:
        print(json.dumps(result))
        return
    for name, us in result.items():
        print(f"{name:28} {us:8.2f} us" + ("" if name == "C" else f"   {us - result['C']:+.2f} us over C"))


if __name__ == "__main__":
    main()
