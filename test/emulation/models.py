#!/usr/bin/env python3
"""Whole ONNX models, executed kernel by kernel in the instruction emulator and compared with onnxruntime.

    KILN_AMD_MACHINE=LIBRARY models.py KILN MODEL.onnx... [--target gfx942 ...] [--fp16]
        [--size INPUT:1x3x32x32] [--dim NAME=N] [--high INPUT:N] [--inputs FOLDER] [--orders forward reversed shuffled]
        [--timeout S]

`--inputs` has NAME.npy of some inputs. `--size` changes the shape of an input, for a model that would take too long at its own. Open dimensions are 2, or what
--dim says. Float inputs are normal, integers are below N of --high (8), booleans random. Prints one line for each model
and target: the largest relative error of an output, launches, wave instructions. Exits 1 when one differs, 77 when there
is no emulator. docs/emulation.md has the rest.
"""
import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import compare
import pool

SKIPPED = 77
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8,
         "tensor(int8)": np.int8, "tensor(bool)": np.bool_}
NAMES = {np.float32: "f32", np.float16: "f16", np.float64: "f64", np.int64: "i64", np.int32: "i32", np.uint8: "u8", np.int8: "i8", np.bool_: "bool"}


def pairs(texts, separator):
    return dict(t.rsplit(separator, 1) for t in texts or [])


def resized(path, sizes, folder):
    """The model with other shapes of some inputs."""
    if not sizes:
        return path
    model = onnx.load(path)
    del model.graph.value_info[:]
    for given in model.graph.input:
        if given.name in sizes:
            dims = given.type.tensor_type.shape.dim
            for d, n in zip(dims, sizes[given.name].split("x")):
                d.Clear()
                d.dim_value = int(n)
    for output in model.graph.output:  # onnxruntime infers them
        output.type.tensor_type.ClearField("shape")
    onnx.save(model, f"{folder}/resized.onnx")
    return f"{folder}/resized.onnx"


def inputs_of(session, dims, highs, folder):
    random, made = np.random.default_rng(1), {}
    for given in session.get_inputs():
        if folder and os.path.exists(f"{folder}/{given.name}.npy"):
            made[given.name] = np.load(f"{folder}/{given.name}.npy")
            continue
        shape = [d if isinstance(d, int) else int(dims.get(d, 2)) for d in given.shape]
        kind = TYPES[given.type]
        if np.issubdtype(kind, np.floating):
            made[given.name] = random.standard_normal(shape).astype(np.float16).astype(kind)
        elif kind is np.bool_:
            made[given.name] = random.integers(0, 2, shape).astype(kind)
        else:
            made[given.name] = random.integers(0, int(highs.get(given.name, 8)), shape).astype(kind)
    return made


class Prepared:
    """A model finalized for a target in `folder`/objects, with its inputs and what onnxruntime makes of them."""

    def __init__(self, document, inputs, wanted, has_halves):
        self.document, self.inputs, self.wanted, self.has_halves = document, inputs, wanted, has_halves

    def error(self, name, raw, tolerance):
        """The relative error of an output; raises where it is too large."""
        want = self.wanted[name]
        kind = NAMES[np.dtype(want.dtype.str).type]
        error, wrong = compare.difference(raw, want.astype(np.float32) if kind in ("f16", "f32") else want, kind, tolerance)
        if wrong:
            raise RuntimeError(f"{name}: {wrong}")
        return error


def kiln(options, *arguments):
    done = subprocess.run([options.kiln, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["?"])[-1][:300])
    return done.stdout


def prepare(options, path, target, folder):
    model = resized(path, pairs(options.size, ":"), folder)
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads = len(os.sched_getaffinity(0))
    settings.add_session_config_entry("session.x64quantprecision", "1")  # else it saturates sums of u8 by i8
    session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    dims = pairs(options.dim, "=")
    data = inputs_of(session, dims, pairs(options.high, ":"), options.inputs)
    wanted = dict(zip([o.name for o in session.get_outputs()], session.run(None, data)))
    kiln(options, "compile", model, "-o", f"{folder}/m.kiln", *(["--fp16"] if options.fp16 else []))
    # Kiln calls a dimension without a name INPUT_dimAXIS. It knows some from others, or from the weights.
    open_dims = {d or f"{i.name}_dim{axis}": data[i.name].shape[axis] for i in session.get_inputs() for axis, d in enumerate(i.shape) if not isinstance(d, int)}
    shapes = " ".join(i["shape"] for i in json.loads(kiln(options, "inspect", "--json", f"{folder}/m.kiln"))["inputs"])
    left = {d.strip() for shape in re.findall(r"\[(.*?)\]", shapes) for d in shape.split(",")}
    bound = [x for d, n in sorted(open_dims.items()) if d in left for x in ("--dim", f"{d}={n}")]
    kiln(options, "finalize", f"{folder}/m.kiln", "--target", target, "-o", f"{folder}/objects", "--export-constants", "--no-cache", *bound)
    with open(f"{folder}/objects/kernels.json") as f:
        document = json.load(f)
    # An input that nothing reads is not among the values.
    inputs = {v["name"]: data[v["name"]].astype(np.float16) if v["type"] == "f16" else data[v["name"]] for v in document["program"]["values"] if v["from"] == "input"}
    has_halves = options.fp16 or any(v["type"] == "f16" for v in document["program"]["values"])
    return Prepared(document, inputs, wanted, has_halves)


def run(options, path, target, worker):
    began, row = time.time(), {"model": os.path.basename(path)[:-5] + ("_fp16" if options.fp16 else ""), "target": target, "ok": False}
    with tempfile.TemporaryDirectory(prefix="kiln_emulation_") as folder:
        try:
            prepared = prepare(options, path, target, folder)
            job = {"folder": f"{folder}/objects", "inputs": {}, "outputs": folder, "orders": options.orders}
            for number, (name, array) in enumerate(prepared.inputs.items()):
                job["inputs"][name] = f"{folder}/input{number}.npy"
                np.save(job["inputs"][name], array)
            answer = worker.run(job, options.timeout)
            if not answer["done"]:
                raise RuntimeError(answer["error"])
            tolerance, errors, digest = options.tolerance or (1e-2 if prepared.has_halves else 1e-4), [], hashlib.sha256()
            for name, raw in answer["outputs"].items():
                with open(raw, "rb") as f:
                    data = f.read()
                digest.update(data)
                errors.append(prepared.error(name, data, tolerance))
            if answer["differing"]:
                raise RuntimeError(f"the orders {answer['differing']} of waves give other bits")
            row.update(ok=True, error_norm=max(errors), launches=len(answer["resources"]), steps=answer["steps"], outputs_sha256=digest.hexdigest(), instructions=answer["instructions"])
        except Exception as e:  # what a model does not allow is a row too
            row["error"] = f"{type(e).__name__}: {e}"[:400]
    row["seconds"] = round(time.time() - began, 1)
    return row


def common_parser(description, models, timeout):
    """What a script that runs whole models takes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("models", nargs=models)
    for name in ("--target", "--size", "--dim", "--high"):
        parser.add_argument(name, action="append")
    parser.add_argument("--inputs")
    parser.add_argument("--timeout", type=int, default=timeout)
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--json")
    return parser


def print_row(row, text):
    print(f"{'ok   ' if row['ok'] else 'FAIL '} {row['target']:15} {row['model']:32} {text if row['ok'] else row['error']}, {row['seconds']} s", flush=True)


def finish(rows, options):
    """Writes the rows, prints how many failed, and returns the exit code."""
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)
    failed = sum(not r["ok"] for r in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = common_parser(__doc__, "+", 900)
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--orders", nargs="+", default=["forward", "reversed"])
    options = parser.parse_args()
    if why := pool.missing():
        print(f"skipped: {why}")
        return SKIPPED
    options.kiln = os.path.abspath(options.kiln)
    worker, rows = pool.Worker(), []
    for target in options.target or ["gfx942", "gfx1100", "gfx1201"]:
        for path in options.models:
            row = run(options, path, target, worker)
            rows.append(row)
            print_row(row, row["ok"] and f"error {row['error_norm']:.1e}, {row['launches']} launches, {row['instructions']} wave instructions")
    worker.close()
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
