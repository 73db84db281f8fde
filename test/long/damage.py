#!/usr/bin/env python3
"""Damage a file in every way that one byte can, and run `kiln` on each; meant for a build with sanitizers.

    damage.py KILN [MODEL.onnx | MODEL.kiln] [--what kiln|onnx|all] [--sample N] [--jobs N]

Without a model it makes one: Conv, Relu, MatMul. `kiln run` sees every truncation of the .kiln file, every byte of it
inverted, and every bit of its header and section table flipped. It must exit 3 with one line on standard error that
names the file, or exit 0 with outputs bit for bit those of the whole file. `kiln compile` sees every truncation of the
ONNX file and every byte of it inverted, and its lowest bit flipped: exit 0, or 2 or 3 with one line that names the file
or a part of the model. A crash, a report of a sanitizer, more than 20 seconds or another answer fails. --sample N takes
N cases of each kind of file, evenly spread, for a short run.
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TIMEOUT = 20
HEADER, TABLE_ROW = 64, 64  # ir/container/format.hpp
# A sanitizer's exit code must not be one of ours. LLVM is not instrumented, so its containers cannot be checked, and
# what it keeps until the process ends is no leak; an allocation of more than 4 GiB for a file of some KiB is a finding.
SANITIZERS = {
    "ASAN_OPTIONS": "exitcode=99:detect_container_overflow=0:detect_leaks=0:max_allocation_size_mb=4096",
    "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1",
}


def small_model(path):
    """x[1, 2, 6, 5] -> Conv 3x3x3, Relu -> MatMul with a 5x4 matrix -> y."""
    rng = np.random.default_rng(1)
    w, b, m = (numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in [("w", (3, 2, 3, 3)), ("b", (3,)), ("m", (5, 4))])
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"], name="relu"),
             helper.make_node("MatMul", ["r", "m"], ["y"], name="product")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 6, 5])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 6, 4])], [w, b, m])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def truncations(whole):
    return [(f"first {n} bytes", whole[:n]) for n in range(len(whole))]


def flips(whole, mask, positions):
    for at in positions:
        changed = bytearray(whole)
        changed[at] ^= mask
        yield f"byte {at} ^ {mask:#04x}", bytes(changed)


def kiln_cases(whole):
    sections = struct.unpack_from("<I", whole, 12)[0]
    cases = truncations(whole) + list(flips(whole, 0xff, range(len(whole))))
    for bit in range(8):
        cases += flips(whole, 1 << bit, range(HEADER + sections * TABLE_ROW))
    return cases


def onnx_cases(whole):
    return truncations(whole) + list(flips(whole, 0xff, range(len(whole)))) + list(flips(whole, 1, range(len(whole))))


class Damage:
    def __init__(self, kiln, folder):
        self.kiln, self.folder = os.path.abspath(kiln), folder
        self.environment = {**os.environ, "KILN_CACHE_DIR": os.path.join(folder, "cache")}
        for name, options in SANITIZERS.items():
            self.environment[name] = os.environ.get(name, options)

    def run(self, *arguments):
        try:
            return subprocess.run([self.kiln, *arguments], capture_output=True, text=True, errors="replace", env=self.environment, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return None

    def whole(self, *arguments):
        done = subprocess.run([self.kiln, *arguments], capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            sys.exit(f"kiln {' '.join(arguments)} exits {done.returncode}: {done.stderr}")

    def outputs(self, folder):
        result = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as f:
                result[name] = f.read()
        return result

    def refusal(self, done, codes, names):
        """What is wrong with the way a file was refused; nothing: None."""
        if done is None:
            return f"more than {TIMEOUT} seconds"
        lines = [l for l in done.stderr.splitlines() if l.strip()]
        if done.returncode not in codes:
            return f"exit {done.returncode}: {done.stderr[-3000:]}"
        if len(lines) != 1:
            return f"{len(lines)} lines on standard error: {done.stderr[-3000:]}"
        return None if any(n in lines[0] for n in names) else f"does not name the file: {lines[0]}"

    def run_case(self, content):
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            file, out = os.path.join(own, "damaged.kiln"), os.path.join(own, "out")
            with open(file, "wb") as f:
                f.write(content)
            done = self.run("run", file, "--quiet", "--threads", "1", "--output-dir", out)
            if done is not None and done.returncode == 0:
                return None if self.outputs(out) == self.expected else "exit 0 with another answer"
            return self.refusal(done, (3,), ("damaged.kiln",))

    def compile_case(self, content):
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            file, out = os.path.join(own, "damaged.onnx"), os.path.join(own, "out.kiln")
            with open(file, "wb") as f:
                f.write(content)
            done = self.run("compile", file, "--quiet", "-o", out)
            if done is not None and done.returncode == 0:
                return None if os.path.exists(out) else "exit 0 without a file"
            # Which part of the model is at fault is asked of the importer's own tests; here: one line, and no half
            # file.
            return "half a file" if os.path.exists(out) else self.refusal(done, (2, 3), ("kiln: ",))


def evenly(cases, count):
    if not count or count >= len(cases):
        return cases
    return [cases[i * len(cases) // count] for i in range(count)]


def attempt(name, cases, check, jobs):
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for done, ((label, _), problem) in enumerate(zip(cases, pool.map(lambda c: check(c[1]), cases)), 1):
            if problem:
                failed += 1
                print(f"{name}: {label}: {problem}", flush=True)
            if done % 1000 == 0:
                print(f"{name}: {done} of {len(cases)}", file=sys.stderr, flush=True)
    print(f"{name}: {len(cases)} cases, {failed} failed", flush=True)
    return len(cases) - failed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("model", nargs="?")
    parser.add_argument("--what", choices=["kiln", "onnx", "all"], default="all")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    o = parser.parse_args()
    passed = failed = 0
    parent = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=parent, prefix="kiln-damage-") as folder:
        damage = Damage(o.kiln, folder)
        model = o.model
        if not model:
            model = os.path.join(folder, "model.onnx")
            small_model(model)
        container = model
        if not model.endswith(".kiln"):
            container = os.path.join(folder, "model.kiln")
            damage.whole("compile", model, "--quiet", "-o", container)
        kinds = []
        if o.what in ("kiln", "all"):
            damage.whole("run", container, "--quiet", "--threads", "1", "--output-dir", os.path.join(folder, "expected"))  # fills the cache
            damage.expected = damage.outputs(os.path.join(folder, "expected"))
            kinds.append(("kiln", container, kiln_cases, damage.run_case))
        if o.what in ("onnx", "all") and not model.endswith(".kiln"):
            kinds.append(("onnx", model, onnx_cases, damage.compile_case))
        for name, file, cases, check in kinds:
            with open(file, "rb") as f:
                whole = f.read()
            wrong = check(whole)
            if wrong:
                sys.exit(f"{name}: the whole file fails: {wrong}")
            every = cases(whole)
            print(f"{name}: {len(whole)} bytes, {len(every)} cases", flush=True)
            good, bad = attempt(name, evenly(every, o.sample), check, o.jobs)
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
