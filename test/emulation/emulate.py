#!/usr/bin/env python3
"""Kiln's AMD kernels, executed in an instruction emulator and compared with onnxruntime.

    KILN_AMD_MACHINE=LIBRARY emulate.py KILN kernels|model|all [--target gfx942 ...] [--only PATTERN] [--short]

Every case is a small ONNX model: `kiln compile`, `kiln finalize --target T --export-constants`, then every launch of
every step in the emulator, in several orders of waves and workgroups that must all give the same bits. `kernels` are
single operators or short chains, `model` are whole small models. Exits 1 when a case fails, 77 when there is no
emulator. docs/emulation.md has the rest.
"""
import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import cases_convolution, cases_elementwise, cases_joined, cases_library, cases_matrix, cases_models, cases_movement, cases_reduction  # noqa: E401, F401 (they register)
import compare
import graph
import pool
from disassembly import matrix_instructions

TARGETS = ["gfx942", "gfx1100", "gfx1201"]
SKIPPED = 77


class Failure(Exception):
    """What went wrong with a case; `stage` is where."""

    def __init__(self, stage, message):
        super().__init__(message)
        self.stage = stage


class Runner:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="kiln_emulation_")
        self.references = {}

    def kiln(self, stage, *arguments):
        done = subprocess.run([self.options.kiln, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        if done.returncode:
            message = done.stderr.strip() or f"exit code {done.returncode}"
            raise Failure(stage, message.splitlines()[-1][:400])

    def run_one(self, item, worker):
        """The row of one (case, target)."""
        case, target = item
        began = time.time()
        row = {"case": case.name, "target": target, "ok": False}
        folder = os.path.join(self.folder, case.name, target)
        try:
            row.update(self.check(case, target, folder, worker))
            row["ok"] = True
        except Failure as e:
            row.update(stage=e.stage, error=str(e), folder=folder)
        except Exception as e:  # a mistake of this script, or a model that onnxruntime refuses
            row.update(stage="script", error=f"{type(e).__name__}: {e}"[:400])
        row["seconds"] = round(time.time() - began, 1)
        return row

    def check(self, case, target, folder, worker):
        os.makedirs(folder)
        tested, expected = graph.build(case)
        graph.save(tested, f"{folder}/model.onnx")
        want = graph.reference(expected)
        self.kiln("compile", "compile", f"{folder}/model.onnx", "-o", f"{folder}/model.kiln", *case.options)
        self.kiln("finalize", "finalize", f"{folder}/model.kiln", "--target", target, "-o", f"{folder}/objects", "--export-constants", "--no-cache")
        inputs = {}
        for name, data in tested.data.items():
            inputs[name] = f"{folder}/{name}.npy"
            np.save(inputs[name], data)
        job = {"folder": f"{folder}/objects", "inputs": inputs, "outputs": folder, "orders": self.options.orders}
        answer = worker.run(job, self.options.timeout * (4 if case.model else 1))
        if not answer["done"]:
            raise Failure("run", answer["error"])
        launches = self.describe(answer["resources"], folder)
        errors = {}
        for name, raw in answer["outputs"].items():
            with open(raw, "rb") as f:
                error, wrong = compare.difference(f.read(), want[name], tested.output_types[name], case.tolerance)
            if wrong:
                raise Failure("result", f"{name}: {wrong} [{'; '.join(l['symbol'] for l in launches)}]")
            errors[name] = error
        if answer["differing"]:
            raise Failure("order", f"the orders {answer['differing']} of waves give other bits than {answer['orders'][0]}")
        shutil.rmtree(folder, ignore_errors=True)
        return {"error_norm": max(errors.values()), "steps": answer["steps"], "orders": answer["orders"], "instructions": answer["instructions"], "launches": launches}

    def describe(self, resources, folder):
        """Each launch's registers, LDS and spills, with the matrix instructions in its code."""
        for launch in resources:
            found = matrix_instructions(f"{folder}/objects/{launch.pop('object')}")
            launch["matrix"] = None if found is None else found.get(launch["symbol"], {})
        return resources


def line(row):
    if not row["ok"]:
        return f"FAIL  {row['target']:8} {row['case']:28} {row['stage']}: {row['error']}"
    used = sorted({op for l in row["launches"] for op in l["matrix"] or {}})
    spills = sum(l["spills"] for l in row["launches"])
    lds = max((l["lds"] for l in row["launches"]), default=0)
    return f"ok    {row['target']:8} {row['case']:28} error {row['error_norm']:.1e}, {len(row['launches'])} launches, LDS {lds}, spills {spills}, {row['seconds']} s {' '.join(used)}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln")
    p.add_argument("mode", choices=["kernels", "model", "all"])
    p.add_argument("--target", action="append", help=f"default: {', '.join(TARGETS)}")
    p.add_argument("--only", action="append", help="pattern of case names, such as 'conv_*'")
    p.add_argument("--short", action="store_true", help="a few cases, one order of waves")
    p.add_argument("--orders", nargs="+", choices=["forward", "reversed", "shuffled"])
    p.add_argument("--timeout", type=int, default=240, help="seconds for one case (four times that for a model)")
    p.add_argument("--jobs", type=int, default=1, help="emulator processes")
    p.add_argument("--json", help="write the rows of the report here")
    p.add_argument("--keep", action="store_true", help="keep the folders of failed cases")
    options = p.parse_args()
    if why := pool.missing():
        print(f"skipped: {why}")
        return SKIPPED
    options.kiln = os.path.abspath(options.kiln)
    options.orders = options.orders or (["forward", "reversed"] if options.short else ["forward", "reversed", "shuffled"])
    wanted = [c for c in graph.CASES if options.mode == "all" or c.model == (options.mode == "model")]
    chosen = [c for c in wanted if (not options.only or any(fnmatch.fnmatch(c.name, o) for o in options.only)) and (not options.short or c.short)]
    runner, rows = Runner(options), []
    items = [(c, t) for t in options.target or TARGETS for c in chosen]
    for _, row in pool.run_all(items, runner.run_one, options.jobs):
        rows.append(row)
        print(line(row), flush=True)
        if options.json:
            with open(options.json, "w") as f:
                json.dump(rows, f, indent=1)
    if not options.keep:
        shutil.rmtree(runner.folder, ignore_errors=True)
    failed = sum(not r["ok"] for r in rows)
    print(f"{len(rows) - failed} passed, {failed} failed, {(len(wanted) - len(chosen)) * len(options.target or TARGETS)} skipped (not chosen)")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
