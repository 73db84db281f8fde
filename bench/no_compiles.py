#!/usr/bin/env python3
"""Sizes at which a session with kernels for all sizes compiles while somebody waits. There must be none.

    no_compiles.py --zoo FOLDER --kiln PATH --bench BENCH_SESSION [NAME...] [--count 20] [--wider 4] [--largest 256] [--device host] [--plans]

FOLDER has zoo.py and its models. Each one is compiled once, with the dims of its cases open from 1 (or 0) to `--wider` times
their largest value, and `bench_session --compiles` (bench/session/compiles.hpp) asks for edge sizes and COUNT
random ones. A row for each model with something to report; exits 1 if a kernel was compiled, or a model with empty
tensors gives other outputs than specialized kernels."""
import argparse
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile


def wider(span, times):
    """`NAME=LOW:HIGH` with a larger HIGH, and with a LOW of 0 or 1."""
    name, values = span.rsplit("=", 1)
    if ":" not in values:
        return span
    low, high = (int(v) for v in values.split(":")[:2])
    return f"{name}={min(low, 1)}:{high * times}"


def check(zoo, name, options):
    info = json.load(open(os.path.join(options.zoo, name + ".json")))
    info["name"] = name
    with tempfile.TemporaryDirectory(prefix="no_compiles-") as work:
        model = zoo.fill(zoo.load(os.path.join(options.zoo, name + ".onnx.xz")))
        path, out = os.path.join(work, "model.onnx"), os.path.join(work, "model.kiln")
        zoo.save(model, path)
        dims = [part for span in zoo.ranges(model, info, 0)[0] for part in ("--dim", wider(span, options.wider))]
        del model
        made = subprocess.run([options.kiln, "compile", path, "--quiet", "-o", out, *dims], capture_output=True, text=True)
        if made.returncode:
            return None, "not compiled: " + made.stderr.strip().splitlines()[-1]
        command = [options.bench, "--device", options.device, "--compiles", out, str(options.largest), str(options.count), os.path.join(work, "cache"), *(["plans"] if options.plans else [])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds)
        except subprocess.TimeoutExpired:
            return None, f"not done after {options.seconds} s"
        return done.returncode, (done.stdout + done.stderr).strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    for name in ("zoo", "kiln", "bench"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--device", default="host")
    for name, default in (("count", 20), ("wider", 4), ("largest", 256), ("jobs", 1), ("seconds", 300)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--plans", action="store_true", help="run nothing")
    options = parser.parse_args()
    sys.path.insert(0, options.zoo)
    import zoo
    names = options.names or sorted(os.path.basename(p)[:-5] for p in glob.glob(os.path.join(options.zoo, "*.json")))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, (code, text) in zip(names, pool.map(lambda n: check(zoo, n, options), names)):
            failed += bool(code)
            lines = text.splitlines() or [""]
            print(f"{'failed' if code else 'ok' if code == 0 else '-':6} {name:44} {lines[-1]}", flush=True)
            for line in lines[:-1]:
                print("       " + line, flush=True)
    print(f"{failed} of {len(names)} models compiled a kernel, gave another output or ended early")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
