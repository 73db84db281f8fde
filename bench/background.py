#!/usr/bin/env python3
"""Runs while exact kernels are made in the background.

    background.py MODEL.onnx NAME=FIRST,HOT [--dim NAME=SIZE ...] [--seconds 20] [--threads 1]

A lazy session of the Python package (PYTHONPATH) runs the first size until its general kernels are there, and then the
other one without a pause. Prints when the last exact kernel of the hot size came, and the run times before, meanwhile
and after: "meanwhile" begins at the eighth run, when a size counts as hot, and ends with the last new entry of the
cache. The goals are 10 s, and a 99th percentile meanwhile of at most 1.4 times the median before."""
import argparse
import os
import statistics
import sys
import tempfile
import threading
import time

import onnx

import kiln

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../test/long"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from random_shapes_memory import random_inputs
from unseen_sizes import compiled_kernels, milliseconds

HOT_RUNS = 8


def until_quiet(folder, seconds):
    """Waits until no entry was added for that long."""
    known, since = compiled_kernels(folder), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.1)
        if compiled_kernels(folder) != known:
            known, since = compiled_kernels(folder), time.monotonic()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("sizes", metavar="NAME=FIRST,HOT")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    model, (name, pair) = onnx.load(options.model), options.sizes.split("=")
    fixed = {n: int(v) for n, v in (d.split("=") for d in options.dim)}
    first, hot = ({**fixed, name: int(size)} for size in pair.split(","))
    with tempfile.TemporaryDirectory() as cache, kiln.compile(options.model).session(threads=options.threads, cache=cache) as session:
        data = random_inputs(model, first)
        for _ in range(3):
            session.run(data)
        until_quiet(cache, 3)
        data, runs, entries, stop = random_inputs(model, hot), [], [], threading.Event()
        begin = time.monotonic()

        def watch():
            known = compiled_kernels(cache)
            while not stop.wait(0.05):
                now = compiled_kernels(cache)
                if now != known:
                    known = now
                    entries.append(time.monotonic() - begin)
        watcher = threading.Thread(target=watch)
        watcher.start()
        while time.monotonic() - begin < options.seconds:
            runs.append((time.monotonic() - begin, milliseconds(lambda: session.run(data))))
        stop.set()
        watcher.join()
    last = entries[-1] if entries else 0.0
    parts = {"before": [ms for _, ms in runs[1:HOT_RUNS]], "meanwhile": [ms for at, ms in runs[HOT_RUNS:] if at < last], "after": [ms for at, ms in runs[HOT_RUNS:] if at >= last]}
    print(f"{len(entries)} times new exact kernels, the last after {last:.1f} s")
    usual = statistics.median(parts["before"])
    for what, ms in parts.items():
        if ms:
            ms.sort()
            high = ms[len(ms) - 1 - len(ms) // 100]
            print(f"{what:9} {len(ms):6} runs, median {statistics.median(ms):.3f} ms, 99 % {high:.3f} ms ({high / usual:.2f} of the median before), most {ms[-1]:.3f} ms")


if __name__ == "__main__":
    main()
