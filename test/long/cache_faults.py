#!/usr/bin/env python3
"""The fault matrix of the kernel cache in full, with counts: cache_faults.py BUILD_FOLDER [--kills 1000] [--rounds 20]

Runs cache_storm (8 writers, 8 readers, one killed with -9 after the other) and the fault tests of test_jit_cache, then
whole kiln processes: pairs that start cold together, in both orders and with the one that compiles killed, and runs
that are killed at a random moment. Their outputs must be those of a run without cache, each kernel must be compiled
once, and the folder must be sound afterwards. Exit code 1 where anything was wrong."""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np


class Runs:
    def __init__(self, kiln, folder, model):
        self.kiln, self.folder, self.file = kiln, folder, os.path.join(folder, "model.kiln")
        subprocess.run([kiln, "compile", model, "-o", self.file, "--quiet"], check=True)
        self.kernels = len(self.json("cache", "explain", self.file, "--cache", os.path.join(folder, "none"))["kernels"])
        self.outputs("want", "--no-cache")

    def json(self, *arguments):
        return json.loads(subprocess.run([self.kiln, *arguments, "--json"], check=True, capture_output=True).stdout)

    def start(self, cache, out):
        return subprocess.Popen([self.kiln, "run", self.file, "--cache", cache, "--output-dir", os.path.join(self.folder, out), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def outputs(self, out, *arguments):
        subprocess.run([self.kiln, "run", self.file, *arguments, "--output-dir", os.path.join(self.folder, out), "--quiet"], check=True)

    def same(self, out):
        want = os.path.join(self.folder, "want")
        return all(np.array_equal(np.load(os.path.join(want, n)), np.load(os.path.join(self.folder, out, n))) for n in os.listdir(want))

    def sound(self, cache):
        verified = self.json("cache", "verify", "--cache", cache)
        return verified["bad"] == 0


def locks(cache):
    return [n for n in (os.listdir(cache) if os.path.isdir(cache) else []) if n.startswith(".lock-")]


def misses(process):
    out, err = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"a run failed: {err}")
    return json.loads(out)["cache"]["misses"]


def pairs(runs, rounds):
    """Returns (pairs in which a kernel was compiled more than once, kernels compiled)."""
    twice = compiled = 0
    for r in range(rounds):
        cache = os.path.join(runs.folder, f"pair{r}")
        delay = 0 if r % 2 == 0 else 0.03 * (r % 5)
        first = runs.start(cache, "a")
        time.sleep(delay)
        second = runs.start(cache, "b")
        total = misses(second) + misses(first) if r % 4 < 2 else misses(first) + misses(second)
        compiled += total
        twice += total != runs.kernels
        assert runs.same("a") and runs.same("b") and runs.sound(cache) and not locks(cache), f"pair {r}"
    return twice, compiled


def killed_holders(runs, rounds):
    """Kills the run that holds a lock; the one that waits goes on. Returns how often there was a holder to kill."""
    killed = 0
    for r in range(rounds):
        cache = os.path.join(runs.folder, f"holder{r}")
        first = runs.start(cache, "a")
        while first.poll() is None and not locks(cache):
            time.sleep(0.002)
        second = runs.start(cache, "b")
        time.sleep(random.random() * 0.2)
        if first.poll() is None:
            first.send_signal(signal.SIGKILL)
            killed += 1
        first.communicate()
        assert misses(second) <= runs.kernels
        assert runs.same("b") and runs.sound(cache), f"killed holder {r}"
        third = runs.start(cache, "c")
        assert misses(third) == 0 and runs.same("c"), f"after a killed holder {r}"
    return killed


def killed_runs(runs, rounds):
    """Kills a run at a random moment, each time with the same folder, until it is warm; then begins anew."""
    killed = 0
    cache = os.path.join(runs.folder, "killed")
    for r in range(rounds):
        process = runs.start(cache, "a")
        time.sleep(random.random() * 1.5)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
        if os.path.isdir(cache):
            assert runs.sound(cache), f"killed run {r}"
        if r % 8 == 7:
            process = runs.start(cache, "a")
            misses(process)
            assert runs.same("a"), f"after killed runs {r}"
            subprocess.run(["rm", "-rf", cache], check=True)
    return killed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="build folder")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20, help="of each kind of pair of kiln processes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", help="default: squeezenet of the build folder")
    a = parser.parse_args()
    random.seed(a.seed)
    at = lambda *parts: os.path.join(a.build, *parts)
    begin = time.time()
    storm = subprocess.run([at("test", "long", "cache_storm"), "--kills", str(a.kills), "--seed", str(a.seed)], capture_output=True, text=True)
    print("storm:", storm.stdout.strip(), flush=True)
    matrix = subprocess.run([at("test", "jit", "cache", "test_jit_cache"), "--gtest_brief=1"], capture_output=True, text=True)
    print("matrix:", *[l for l in matrix.stdout.splitlines() if not l.startswith("Running")], sep="\n  ", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(at("tools", "kiln"), folder, a.model or at("test", "models", "squeezenet1_1.onnx"))
        twice, compiled = pairs(runs, a.rounds)
        print(f"pairs: {a.rounds} cold pairs of {runs.kernels} kernels, {compiled} compiled ({compiled / a.rounds:.2f} for each pair), {twice} pairs compiled one twice", flush=True)
        print(f"holders: {killed_holders(runs, a.rounds)} of {a.rounds} killed while they compiled, the other run went on", flush=True)
        print(f"kills: {killed_runs(runs, 2 * a.rounds)} runs of {2 * a.rounds} killed at a random moment", flush=True)
    print(f"{time.time() - begin:.0f} s")
    return 0 if storm.returncode == 0 and matrix.returncode == 0 and twice == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
