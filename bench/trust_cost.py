#!/usr/bin/env python3
"""What trust costs at a start.

    trust_cost.py KILN cold FILE.kiln... [--rounds 7] [--threads 4]    an empty cache: workers in a sandbox, and --in-process
    trust_cost.py KILN warm FILE.kiln... [--rounds 40]                  native files: --allow-unsigned-native, the user's own
                                                                        key, a list of keys, a root of trust

Whole `kiln run` processes, the variants in turns, in the opposite order every other round. Prints a row for each file:
medians of wall time in ms and the difference to the first variant. Outputs are compared before they are timed. A file
whose name contains "dynbatch" gets --dim batch=1."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np


class Starts:
    def __init__(self, options, folder):
        self.options, self.folder, self.env = options, folder, {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": os.path.join(folder, "config")}

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *arguments):
        subprocess.run([self.options.kiln, *map(str, arguments)], check=True, env=self.env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def dims(self, file):
        return ["--dim", "batch=1"] if "dynbatch" in os.path.basename(file) else []

    def run(self, file, *more):
        shutil.rmtree(self.path("cache"), ignore_errors=True)
        began = time.perf_counter()
        self.call("run", file, "--device", "host", "--threads", self.options.threads, "--cache", self.path("cache"), "--quiet", *self.dims(file), *more)
        return (time.perf_counter() - began) * 1e3

    def outputs(self, file, *more):
        out = self.path("out")
        shutil.rmtree(out, ignore_errors=True)
        self.run(file, "--output-dir", out, *more)
        return {n: np.load(os.path.join(out, n)) for n in sorted(os.listdir(out))}

    def compare(self, file, variants):
        """variants: name → options. Returns the medians."""
        first, *others = (self.outputs(file, *v) for v in variants.values())
        for other in others:
            if first.keys() != other.keys() or not all(np.array_equal(first[n], other[n], equal_nan=True) for n in first):
                raise SystemExit(f"{file}: the variants differ")
        times = {name: [] for name in variants}
        for number in range(self.options.rounds):
            for name in (list(variants) if number % 2 == 0 else reversed(variants)):
                times[name].append(self.run(file, *variants[name]))
        medians = {name: statistics.median(t) for name, t in times.items()}
        base = next(iter(medians.values()))
        print(f"| {os.path.basename(file)[:-5]} | " + " | ".join(f"{m:.1f}" + (f" ({m - base:+.1f})" if i else "") for i, m in enumerate(medians.values())) + " |", flush=True)
        return medians


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln"), p.add_argument("what", choices=["cold", "warm"]), p.add_argument("files", nargs="+"), p.add_argument("--rounds", type=int), p.add_argument("--threads", type=int, default=4)
    options = p.parse_args()
    options.kiln, options.rounds = os.path.abspath(options.kiln), options.rounds or {"cold": 7, "warm": 40}[options.what]
    with tempfile.TemporaryDirectory() as folder:
        s = Starts(options, folder)
        if options.what == "cold":
            variants = {"--in-process": ["--in-process"], "workers in a sandbox": []}
        else:
            for key in "root", "farm":
                s.call("cache", "keygen", s.path(key))
            s.call("trust", "make", s.path("fleet.root"), "--expires", "2999-12-31", "--key", s.path("farm.pub") + "=2998-01-01", "--sign-with", s.path("root"))
            variants = {"--allow-unsigned-native": ["--allow-unsigned-native"], "list": ["--cache-trust", s.path("farm.pub")], "root": ["--cache-trust", s.path("fleet.root")]}
        print("| model | " + " | ".join(variants) + " |\n|" + "---|" * (1 + len(variants)), flush=True)
        worst = []
        for file in options.files:
            if options.what == "warm":
                native = s.path(os.path.basename(file))
                s.call("finalize", file, "--target", "x86-64-v3", *s.dims(file), "-o", s.path("objects"), "--native-file", native, "--cache-sign-key", s.path("farm"))
                file = native
            medians = list(s.compare(file, variants).values())
            worst += [m - medians[0] for m in medians[1:]]
        print(f"worst {max(worst):+.1f} ms, median {statistics.median(worst):+.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
