#!/usr/bin/env python3
"""Models as exporters write them, whole, in the instruction emulator: the first case of each model of a folder.

    KILN_AMD_MACHINE=LIBRARY exported.py KILN ZOO [--target gfx942 ...] [--only WORD ...]
        [--largest BYTES] [--orders forward reversed shuffled] [--timeout S] [--json FILE]

ZOO has NAME.onnx.xz, NAME.json with the shapes of its cases, and zoo.py, which fills the weights and makes the inputs.
Models are taken from the smallest on; `--largest` leaves out those whose file is larger. A line for each model and target is
that of models.py; a model that Kiln, onnxruntime or the emulator refuses, or that takes longer than `--timeout` (300 s), is
listed with the reason and is not counted as right. Exits 1 when one differs, 77 without an emulator.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import models
import pool


def case_of(zoo, name, folder):
    """(the model with its weights, {dimension: size}, the folder of its inputs, the tolerance) of the first case."""
    tool = [sys.executable, f"{zoo}/zoo.py"]
    with open(f"{zoo}/{name}.json") as f:
        facts = json.load(f)
    dims = facts["shapes"][0]["dims"]
    subprocess.run([*tool, "fill", f"{zoo}/{name}.onnx.xz", f"{folder}/{name}.onnx"], check=True, capture_output=True)
    subprocess.run([*tool, "inputs", f"{zoo}/{name}.json", "0", f"{folder}/inputs"], check=True, capture_output=True)
    return f"{folder}/{name}.onnx", dims, f"{folder}/inputs", facts.get("tolerance", 1e-3)


def main():
    parser = models.common_parser(__doc__, "?", 300)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--largest", type=int, default=20000)
    parser.add_argument("--orders", nargs="+", default=["forward", "reversed"])
    parser.set_defaults(fp16=False)
    options = parser.parse_args()
    if why := pool.missing():
        print(f"skipped: {why}")
        return models.SKIPPED
    zoo, options.kiln = os.path.abspath(options.models), os.path.abspath(options.kiln)
    files = sorted(glob.glob(f"{zoo}/*.onnx.xz"), key=lambda f: (os.path.getsize(f), f))
    names = [os.path.basename(f)[:-len(".onnx.xz")] for f in files if os.path.getsize(f) <= options.largest]
    worker, rows, fixed, given = pool.Worker(), [], options.dim or [], options.tolerance
    for target in options.target or ["gfx942", "gfx1100"]:
        for name in names:
            if options.only and not any(word in name for word in options.only):
                continue
            with tempfile.TemporaryDirectory(prefix="kiln_exported_") as folder:
                path, dims, options.inputs, tolerance = case_of(zoo, name, folder)
                options.tolerance = given or tolerance
                options.dim = [*(f"{d}={n}" for d, n in dims.items() if d != "None"), *fixed]
                row = models.run(options, path, target, worker)
            rows.append(row)
            models.print_row(row, row["ok"] and f"error {row['error_norm']:.1e}, {row['launches']} launches, {row['instructions']} wave instructions")
    worker.close()
    return models.finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
