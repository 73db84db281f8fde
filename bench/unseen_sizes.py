#!/usr/bin/env python3
"""First answers at sizes that a session has not seen.

    unseen_sizes.py MODEL.onnx... [--sizes 50] [--most NAME=SIZE...] [--specialize off|lazy] [--runs 5] [--json OUT]

Compiles each model once and asks one session of the Python package (PYTHONPATH) for random sizes of all open
dimensions. A row for each model: kernels compiled after the first size (there must be none), and of the ratio of the
first answer (plan, load and run) to the steady time of the same size the median and the worst. Exits 1 if a kernel was
compiled or every size was refused."""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx

import kiln

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../test/long"))
from random_shapes_memory import open_dimensions, random_inputs


def compiled_kernels(folder):
    """Entries of the cache; packed weights are none."""
    return sum(not file.endswith(".prepared") for _, _, files in os.walk(folder) for file in files)


def milliseconds(work):
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


def measure(path, options):
    """The row of one model."""
    model, rng = onnx.load(path), np.random.default_rng(1)
    names, most = open_dimensions(model), dict(pair.split("=") for pair in options.most)
    row = {"model": os.path.basename(path)[:-5], "sizes": 0, "refused": 0, "compiled": 0, "first_ms": [], "steady_ms": []}
    with tempfile.TemporaryDirectory() as cache:
        with kiln.compile(path).session(specialization=options.specialize, threads=2, cache=cache, most_programs=4) as session:
            known = 0  # cache entries after the first size that ran
            for _ in range(options.sizes + 1):
                sizes = {n: int(rng.integers(1, int(most.get(n, 8 if "batch" in n else 64)) + 1)) for n in names}
                inputs = random_inputs(model, sizes)
                try:
                    first = milliseconds(lambda: session.run(inputs))
                except kiln.errors.InvalidShapeError:
                    row["refused"] += 1
                    continue
                steady = statistics.median(milliseconds(lambda: session.run(inputs)) for _ in range(options.runs))
                if known:
                    row["sizes"] += 1
                    row["first_ms"].append(first), row["steady_ms"].append(steady)
                else:
                    known = compiled_kernels(cache)
            row["compiled"] = compiled_kernels(cache) - known
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sizes", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--most", action="append", default=[], metavar="NAME=SIZE")
    parser.add_argument("--specialize", default="off", choices=["lazy", "off"])
    parser.add_argument("--json")
    options = parser.parse_args()
    rows, bad = [], 0
    print("| model | sizes | refused | compiled | first ms, median | steady ms, median | first/steady: median | worst |\n|---|--:|--:|--:|--:|--:|--:|--:|")
    for path in options.models:
        try:
            row = measure(path, options)
        except kiln.KilnError as e:
            print(f"| {os.path.basename(path)[:-5]} | {e} |", flush=True)
            bad += 1
            continue
        rows.append(row)
        ratios = [a / b for a, b in zip(row["first_ms"], row["steady_ms"])]
        bad += not ratios or row["compiled"] > 0
        shown = [statistics.median(row["first_ms"]), statistics.median(row["steady_ms"]), statistics.median(ratios), max(ratios)] if ratios else [float("nan")] * 4
        print(f"| {row['model']} | {row['sizes']} | {row['refused']} | {row['compiled']} | " + " | ".join(f"{x:.2f}" for x in shown) + " |", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
