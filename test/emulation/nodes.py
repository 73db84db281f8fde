#!/usr/bin/env python3
"""ONNX node tests, executed kernel by kernel in the instruction emulator and compared with their expected outputs.

    KILN_AMD_MACHINE=LIBRARY nodes.py KILN CASES [--target gfx942 ...] [--sample 200] [--seed 1]
        [--only WORD ...] [--jobs N] [--orders forward reversed shuffled] [--timeout S] [--json FILE]

CASES is a folder of cases as test/long/node_tests.py takes them, whose forms and tolerances are used. `--sample` takes
that many at random; 0 takes all. Exits 1 when one is wrong or fails, 77 when there is no emulator. A case whose program
has a step without a kernel is `not executed`. docs/emulation.md has the rest.
"""
import argparse
import collections
import json
import os
import random
import sys
import tempfile

import numpy as np
from onnx import TensorProto

import pool

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "long"))
import node_tests  # noqa: E402 (lies in the folder above)

SKIPPED = 77


# Types with several elements in a byte.
PACKED = {*node_tests.BYTES, getattr(TensorProto, "FLOAT4E2M1", None)}


def result_of(raw, declared, wanted):
    """An output's bytes as an array like `wanted`. Where the run counts the rows, more follow."""
    kind = node_tests.BITS.get(declared, wanted.dtype)
    with open(raw, "rb") as f:
        return np.frombuffer(f.read(), kind)[: wanted.size].view(wanted.dtype).reshape(wanted.shape)


def emulate(case, constants_from, target, options, worker):
    """Compiles a case and executes it once. Returns (result, reason)."""
    with tempfile.TemporaryDirectory(prefix="kiln_emulation_") as folder:
        compiled = node_tests.compile_case(case, constants_from, folder, options)
        node_tests.finalize_case(compiled, target, f"{folder}/objects", options, "--export-constants", "--no-cache")
        expected = list(node_tests.expected_outputs(case, compiled.model))
        types = [declared for _, declared, _ in expected] + [i.type.tensor_type.elem_type for i in compiled.model.graph.input]
        if PACKED & set(types):
            return "not executed", "a tensor has several elements in a byte"
        answer = worker.run({"folder": f"{folder}/objects", "inputs": compiled.inputs, "outputs": folder, "orders": options.orders}, options.timeout)
        if not answer["done"]:
            return "not executed" if "Unsupported" in answer["error"] else "failed", answer["error"]
        for name, declared, wanted in expected:
            wrong = node_tests.difference(result_of(answer["outputs"][name], declared, wanted), wanted, declared)
            if wrong:
                return "wrong", f"output {name} {wrong}"
        if answer["differing"]:
            return "wrong", f"the orders {answer['differing']} of waves give other bits"
        return "right", f"{len(answer['resources'])} launches, {answer['instructions']} wave instructions"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("cases")
    parser.add_argument("--target", action="append")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--orders", nargs="+", default=["forward", "reversed"])
    parser.add_argument("--timeout", type=int, default=240)
    parser.add_argument("--json")
    options = parser.parse_args()
    if why := pool.missing():
        print(f"skipped: {why}")
        return SKIPPED
    options.kiln = os.path.abspath(options.kiln)
    left_out = node_tests.excluded_cases()
    names = [n for n in node_tests.case_names(options.cases) if n not in left_out and (not options.only or any(w in n for w in options.only))]
    if options.sample:
        names = sorted(random.Random(options.seed).sample(names, min(options.sample, len(names))))
    counts, rows = collections.Counter(), []

    def run_one(item, worker):
        name, target = item
        return node_tests.in_forms(lambda constants_from: emulate(os.path.join(options.cases, name), constants_from, target, options, worker))

    items = [(n, t) for t in options.target or ["gfx942", "gfx1100"] for n in names]
    for (name, target), (result, reason) in pool.run_all(items, run_one, options.jobs):
        counts[target, result] += 1
        rows.append({"case": name, "target": target, "result": result, "reason": reason})
        print(f"{result:12} {target:8} {name}: {reason}", flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=1)
    for (target, result), count in sorted(counts.items()):
        print(f"{target}: {count} {result}")
    return 1 if any(r["result"] in ("wrong", "failed", "unread") for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
