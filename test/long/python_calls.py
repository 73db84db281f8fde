"""100,000 calls from Python: the memory of the process does not grow, whatever the way of the call.

    PYTHONPATH=build/ci/python build/python/bin/python test/long/python_calls.py [--calls 100000]

Prints the resident memory after the first 5 % of the calls and at the end, for calls with new and with given outputs,
for changing sizes, for calls that fail, and for sessions that are opened and closed. Exit code 1 where it has grown by
more than 4 MiB.
"""
import argparse
import sys

import kiln
import numpy as np
from onnx import TensorProto, helper


def add_model(dims):
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", tensors[:1], tensors[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def resident_bytes():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def fails(session):
    try:
        session.run({"x": np.ones((2, 2), np.float32)})
    except kiln.KilnError:
        return
    raise AssertionError("a wrong shape was taken")


def opens(model, x):
    with model.session(threads=1) as session:
        session(x)


def ways(model, session):
    """Name, share of the calls, and what a call does."""
    arrays = [np.ones((n, 64), np.float32) for n in range(1, 25)]
    out, wide = np.empty((1, 64), np.float32), np.ones((1, 128), np.float32)
    return [
        ("new outputs", 1, lambda i: session.run({"x": arrays[0]})),
        ("given outputs", 1, lambda i: session.run({"x": arrays[0]}, {"y": out})),
        ("gaps", 1, lambda i: session(wide[:, ::2])),
        ("lists", 0.1, lambda i: session(arrays[0].tolist())),
        ("changing sizes", 0.02, lambda i: session(arrays[i % len(arrays)])),
        ("refused", 0.2, lambda i: fails(session)),
        ("sessions", 0.005, lambda i: opens(model, arrays[0])),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100000)
    chosen = parser.parse_args()
    grown = []
    with kiln.compile(add_model(["N", 64]), dims={"N": (1, 64)}) as model, model.session(threads=1) as session:
        for name, share, call in ways(model, session):
            calls = int(chosen.calls * share)
            for i in range(calls // 20):
                call(i)
            before = resident_bytes()
            for i in range(calls):
                call(i)
            after = resident_bytes()
            print(f"{name:16} {calls:7} calls: {before / 2**20:7.1f} MiB, then {after / 2**20:7.1f} MiB", flush=True)
            if after - before > 4 << 20:
                grown.append(name)
    if grown:
        sys.exit("memory has grown: " + ", ".join(grown))


if __name__ == "__main__":
    main()
