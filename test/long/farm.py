#!/usr/bin/env python3
"""The build farm under fire: many jobs, workers killed with -9 every few seconds, the server killed and started again;
then throughput.

    farm.py KILN [--jobs 200] [--workers 4] [--kill-every 3] [--no-throughput] [--seed N]

Makes small ONNX models, compiles each on this machine, and submits all of them to a farm on a Redis server of its own
(append-only file, fsync every second). While `kiln farm submit --wait` waits, workers are killed at random and
replaced, and the server is killed with -9 once, when a third of the jobs is done. Holds when every result is there
exactly once with the bytes of the single-machine compile, and nothing is dead. Then the same jobs with one and with two
workers, undisturbed, in jobs per second.
"""
import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from redis_server import WHY_NOT, RedisServer  # noqa: E402

LEASE, LOST = 3, 100  # seconds; vanished workers that one job may have seen: here they are not its fault


def small_model(path, number):
    """x[rows, k] -> MatMul -> Add -> Relu or Tanh -> y, with sizes and weights of its own."""
    rng = np.random.default_rng(number)
    rows, k, n = (int(v) for v in rng.integers(2, 40, 3))
    w, b = numpy_helper.from_array(rng.standard_normal((k, n)).astype(np.float32), "w"), numpy_helper.from_array(rng.standard_normal(n).astype(np.float32), "b")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]), helper.make_node(["Relu", "Tanh"][number % 2], ["a"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, k])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, n])], [w, b])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Farm:
    def __init__(self, kiln, folder, models):
        self.kiln, self.models, self.scratch, self.workers = kiln, models, os.path.join(folder, "scratch"), []
        os.makedirs(self.scratch)
        self.log = open(os.path.join(folder, "workers.log"), "w")
        self.server = RedisServer(os.path.join(folder, "redis"))

    def call(self, *arguments):
        done = subprocess.run([self.kiln, "farm", *arguments, "--redis", self.server.url, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"kiln farm {arguments[0]}: {done.stderr}")
        return json.loads(done.stdout)

    def done(self):
        try:
            return self.call("status")["farms"][0]["counts"]["done"]
        except (RuntimeError, IndexError):  # the server is being started again, or empty
            return -1

    def start_worker(self):
        self.workers.append(subprocess.Popen([self.kiln, "farm", "worker", "--redis", self.server.url, "--lease", str(LEASE), "--lost", str(LOST), "--scratch", self.scratch], stdout=self.log, stderr=self.log))

    def end(self):
        for w in self.workers:
            w.kill()
            w.wait()
        self.server.stop()
        self.log.close()


def under_fire(options, kiln, folder, models, want):
    farm = Farm(kiln, folder, models)
    rng = random.Random(options.seed)
    out, kills, restarts, began = os.path.join(folder, "out"), 0, 0, time.time()
    try:
        for _ in range(options.workers):
            farm.start_worker()
        said = open(os.path.join(folder, "submitted.json"), "w+")  # a pipe would be full before anybody reads it
        submitter = subprocess.Popen([kiln, "farm", "submit", *models, "--wait", "-o", out, "--redis", farm.server.url, "--json"], stdout=said)
        next_kill = time.time() + options.kill_every
        while submitter.poll() is None:
            time.sleep(0.2)
            if time.time() - began > options.limit:
                raise RuntimeError(f"not done after {options.limit} s: {farm.call('status')}")
            if restarts == 0 and farm.done() * 3 >= len(models):
                farm.server.restart(signal.SIGKILL)
                restarts += 1
            if time.time() >= next_kill:
                victim = farm.workers.pop(rng.randrange(len(farm.workers)))
                victim.kill()
                victim.wait()
                kills += 1
                farm.start_worker()
                next_kill = time.time() + options.kill_every
        said.seek(0)
        document = json.load(said)
        seconds = time.time() - began
        status = farm.call("status")["farms"][0]
        records = farm.call("status", *[j["id"] for j in document["jobs"]])["jobs"]
    finally:
        farm.end()
    got = {os.path.splitext(name)[0]: digest(os.path.join(out, name)) for name in os.listdir(out)}
    same = sum(got.get(name) == hash for name, hash in want.items())
    counts = status["counts"]
    print(f"under fire: {len(models)} jobs, {options.workers} workers, {kills} killed with -9, server killed {restarts} times: {seconds:.1f} s; {len(got)} results, {same} equal to the single machine's; "
          f"done {counts['done']}, lost leases {counts['lost']}, done twice {counts['repeated']}, dead {len(status['dead'])}, differing {sum(bool(r['differing']) for r in records)}")
    holds = [submitter.returncode == 0, restarts == 1, kills > 0, got == want, counts["done"] == len(models), all(r["state"] == "done" for r in records),
             len({r["id"] for r in records}) == len(models), not status["dead"], not any(r["differing"] for r in records), status["waiting"] == 0]
    if not all(holds):
        print("FAILED:", holds)
    return all(holds)


def throughput(options, kiln, folder, models, workers):
    farm = Farm(kiln, folder, models)
    try:
        farm.call("submit", *models)
        began = time.time()
        processes = [subprocess.Popen([kiln, "farm", "worker", "--redis", farm.server.url, "--drain", "--quiet", "--scratch", farm.scratch]) for _ in range(workers)]
        codes = [p.wait() for p in processes]
        seconds = time.time() - began
        done = farm.call("status")["farms"][0]["counts"]["done"]
    finally:
        farm.end()
    print(f"throughput: {workers} workers: {done} jobs in {seconds:.1f} s, {done / seconds:.2f} jobs/s")
    return codes == [0] * workers and done == len(models)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=3)
    parser.add_argument("--limit", type=float, default=1800, help="seconds for all of them")
    parser.add_argument("--no-throughput", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if WHY_NOT:
        print("skipped:", WHY_NOT)
        return 77
    kiln = os.path.abspath(options.kiln)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # jobs of root's worker are users of their own
        models, want = [], {}
        began = time.time()
        for i in range(options.jobs):
            models.append(os.path.join(folder, f"model{i}.onnx"))
            small_model(models[-1], i)
            subprocess.run([kiln, "compile", models[-1], "-o", os.path.join(folder, "here.kiln"), "--quiet"], check=True)
            want[f"model{i}"] = digest(os.path.join(folder, "here.kiln"))
        print(f"one machine, one after another: {options.jobs} jobs in {time.time() - began:.1f} s")
        holds = under_fire(options, kiln, os.path.join(folder, "fire"), models, want)
        if not options.no_throughput:
            for workers in 1, 2:
                holds &= throughput(options, kiln, os.path.join(folder, f"quiet{workers}"), models, workers)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
