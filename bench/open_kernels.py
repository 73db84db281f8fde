#!/usr/bin/env python3
"""Kernels for all sizes beside exact ones, one by one: which are slower than they should be?

    open_kernels.py KILN MODEL.kiln... [--sizes NAME=N,NAME=N]... [--device host] [--below 0.5] [--rounds 3] [-n 30]

Every model runs at each set of sizes (default: the largest of the model's ranges, and an odd one below it) with exact
kernels and with those for all sizes, in turn. A kernel's time is the least mean of the rounds. Prints the kernels that
take more than 1/BELOW of the exact one's time and more than LEAST microseconds longer, then one line for each model."""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=25)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["?"])[-1])
    return json.loads(done.stdout)


def usual_sizes(kiln, path):
    """The highest value of each open dimension, and an odd one near three quarters of it; images are at most 96 pixels high, batches at most 4."""
    ranges = json.load(open(path[:-5] + ".dims")) if os.path.exists(path[:-5] + ".dims") else []
    spans = dict(r.rsplit("=", 1) for r in ranges if r != "--dim")
    shapes = " ".join(i["shape"] for i in run([kiln, "inspect", path, "--json"])["inputs"])
    names = set(re.findall(r"[A-Za-z_.]\w*", shapes.replace("[", " ")))
    low, high = {}, {}
    for name in sorted(names & set(spans)):
        low[name], high[name] = (int(v) for v in spans[name].split(":")[:2]) if ":" in spans[name] else [int(spans[name])] * 2
        if re.match("h|w", name):
            high[name] = max(low[name], min(high[name], 96))
        if name.startswith("batch"):
            high[name] = max(low[name], min(high[name], 4))
    if not high:
        return []
    odd = {n: max(low[n], 3 * h // 4 - 1 | 1) if h > 4 else max(low[n], h - 1) for n, h in high.items()}
    return [high, odd]


def measure(options, path, sizes, way, cache):
    dims = [part for name, value in sizes.items() for part in ("--dim", f"{name}={value}")]
    extra = ["--device", options.device] if options.device != "host" else []
    j = run([options.kiln, "perf", path, "--json", "--per-kernel", "-n", str(options.n), "--warmup", "3", "--specialize", way,
             "--in-process", "--cache", cache, "--threads", str(options.threads), *dims, *extra])
    return j["queued_ms"] if options.device != "host" else j["p50_ms"], j["per_kernel"]


def compare(options, path, sizes, cache):
    best = {"eager": {}, "off": {}}
    whole = {"eager": math.inf, "off": math.inf}
    for _ in range(options.rounds):
        for way in best:
            total, kernels = measure(options, path, sizes, way, cache)
            whole[way] = min(whole[way], total)
            for i, k in enumerate(kernels):
                key = (k["origin"], k["symbol"])
                best[way][key] = min(best[way].get(key, math.inf), k["ms"])
    ratios = []
    for key, exact in best["eager"].items():
        if key not in best["off"]:
            continue
        ours = best["off"][key]
        ratios.append((exact / ours if ours else 1, exact, ours, key))
    return whole, ratios


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sizes", action="append", default=[])
    parser.add_argument("--device", default="host")
    parser.add_argument("--below", type=float, default=0.5)
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-n", type=int, default=30)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--cache")
    options = parser.parse_args()
    given = [{n: int(v) for n, v in (s.split("=") for s in one.split(","))} for one in options.sizes]
    all_kernels = slow = 0
    with tempfile.TemporaryDirectory(prefix="open_kernels-") as folder:
        for path in options.models:
            name = os.path.basename(path)[:-5]
            for sizes in given or usual_sizes(options.kiln, path):
                text = ",".join(f"{n}={v}" for n, v in sizes.items())
                try:
                    whole, ratios = compare(options, path, sizes, options.cache or folder)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"-      {name} {text}: {error}", flush=True)
                    continue
                all_kernels += len(ratios)
                for ratio, exact, ours, (origin, symbol) in sorted(ratios):
                    if ratio < options.below and (ours - exact) * 1000 > options.least:
                        slow += 1
                        print(f"  {ratio:5.2f} {exact * 1000:9.1f} {ours * 1000:9.1f} us  {symbol[:50]}  {origin[:70]}")
                print(f"{whole['eager'] / whole['off']:6.2f} {name} {text}", flush=True)
    print(f"{slow} of {all_kernels} kernels take more than {1 / options.below:.2g} times as long")


if __name__ == "__main__":
    sys.exit(main())
