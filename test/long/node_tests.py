#!/usr/bin/env python3
"""ONNX node tests compiled and run by the command line, on any device.

    node_tests.py KILN CASES [--device D] [--jobs N] [--only WORD ...] [--every N] [--json FILE]

CASES is a folder of cases as ONNX's packages hold them (NAME/model.onnx, NAME/test_data_set_0/input_0.pb ...). Each
case is compiled and run with its inputs, and its outputs are compared with the expected ones. As in
test/aot/onnx/backend_test.cpp, a case that is refused runs again with all inputs but the first as constants, then with
all inputs as constants, because operators take axes and shapes as inputs that are constants in real models.
With --target instead of --device, cases are only finalized for a target (no device is needed).
Exits 1 if a case is wrong or crashes. Needs numpy, onnx and ml_dtypes.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

# Types that .npy files do not have: kiln reads and writes their bits.
BITS = {
    TensorProto.BFLOAT16: np.uint16,
    TensorProto.FLOAT8E4M3FN: np.uint8,
    TensorProto.FLOAT8E4M3FNUZ: np.uint8,
    TensorProto.FLOAT8E5M2: np.uint8,
    TensorProto.FLOAT8E5M2FNUZ: np.uint8,
}
for more, bits in (("FLOAT8E8M0", np.uint8), ("FLOAT4E2M1", np.uint8)):
    if hasattr(TensorProto, more):
        BITS[getattr(TensorProto, more)] = bits
# Integers of 4 and 2 bits: one byte each.
BYTES = {"INT4": np.int8, "UINT4": np.uint8, "INT2": np.int8, "UINT2": np.uint8}
BYTES = {getattr(TensorProto, name): byte for name, byte in BYTES.items() if hasattr(TensorProto, name)}
NARROW = {TensorProto.FLOAT16, TensorProto.BFLOAT16, *BITS}
LAST_REFUSAL = 4  # exit codes up to this one are refusals; others are faults


def tensors_at(path, kind):
    """The tensors of a file of test data, which may be a tensor, a sequence or an optional."""
    with open(path, "rb") as f:
        data = f.read()
    if kind == "tensor_type":
        return [onnx.TensorProto.FromString(data)]
    if kind == "sequence_type":
        return list(onnx.SequenceProto.FromString(data).tensor_values)
    optional = onnx.OptionalProto.FromString(data)
    if optional.elem_type == onnx.OptionalProto.TENSOR:
        return [optional.tensor_value]
    return list(optional.sequence_value.tensor_values)


def array_of(tensor, declared):
    """The tensor as kiln's .npy files hold it."""
    a = numpy_helper.to_array(tensor)
    if declared in BITS and a.dtype != BITS[declared]:
        return a.view(BITS[declared])
    return a.astype(BYTES[declared]) if declared in BYTES else a


def read_back(file, declared):
    a = np.load(file)
    if declared in BITS:
        return a.view(onnx.helper.tensor_dtype_to_np_dtype(declared))
    return a.astype(onnx.helper.tensor_dtype_to_np_dtype(declared)) if declared in BYTES else a


def difference(got, wanted, declared):
    """Empty where they agree; the tolerances are those of backend_test.cpp."""
    if got.shape != wanted.shape:
        return f"has shape {got.shape}, expected {wanted.shape}"
    if got.dtype != wanted.dtype:
        return f"has type {got.dtype}, expected {wanted.dtype}"
    if not got.size:
        return ""
    if declared in BYTES:
        got, wanted = got.astype(BYTES[declared]), wanted.astype(BYTES[declared])
    exact = np.issubdtype(got.dtype, np.integer) or got.dtype == bool
    a, b = (x.astype(np.float64) if not exact else x for x in (got, wanted))
    if exact:
        wrong = a != b
    else:
        relative, absolute = (1e-2, 1e-3) if declared in NARROW else (1e-3, 1e-6)
        with np.errstate(invalid="ignore"):
            wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= absolute + relative * np.abs(b)))
    if not wrong.any():
        return ""
    i = tuple(int(x[0]) for x in np.nonzero(wrong)) if wrong.ndim else ()
    return f"element {list(i)} is {got[i]}, expected {wanted[i]} ({int(wrong.sum())} of {wrong.size} differ)"


def run(command, limit=120):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=limit)


class refused(Exception):
    pass


class fault(Exception):
    """A command ended as none should."""


class Compiled:
    """A case's `model` (some inputs may have become constants), compiled to `file`. `inputs`: .npy files by name.
    `dims`: sizes of its open dimensions."""

    def __init__(self, model, file):
        self.model, self.file, self.inputs, self.dims = model, file, {}, {}


def compile_case(case, constants_from, scratch, options):
    """The case with the inputs from `constants_from` on as constants. Raises `refused` or `fault`."""
    model = onnx.load(os.path.join(case, "model.onnx"))
    data = os.path.join(case, "test_data_set_0")
    initialized = {t.name for t in model.graph.initializer}
    compiled, compile_options = Compiled(model, os.path.join(scratch, "m.kiln")), []

    def give(name, file, array):
        compiled.inputs[name] = os.path.join(scratch, file)
        np.save(compiled.inputs[name], array)

    for i, value in enumerate(list(model.graph.input)):
        if value.name in initialized:
            continue
        kind = value.type.WhichOneof("value")
        tensors = tensors_at(os.path.join(data, f"input_{i}.pb"), kind)
        if kind != "tensor_type":
            text = "".join("[" + ",".join(map(str, t.dims)) + "]" for t in tensors)
            if kind == "optional_type" and not tensors:
                text = "none"
            compile_options += ["--sequence", f"{value.name}={text}"]
            for n, t in enumerate(tensors):
                alone = kind == "optional_type" and len(tensors) == 1
                give(value.name if alone else f"{value.name}.{n}", f"in{i}_{n}.npy", array_of(t, t.data_type))
            continue
        declared = value.type.tensor_type.elem_type
        tensor = tensors[0]
        if i >= constants_from:
            tensor.name = value.name
            if declared in BITS and tensor.data_type == TensorProto.UINT16:
                tensor.data_type = declared
            model.graph.initializer.append(tensor)
            continue
        for d, size in zip(value.type.tensor_type.shape.dim, tensor.dims):
            if d.HasField("dim_param"):
                compiled.dims[d.dim_param] = size
        give(value.name, f"in{i}.npy", array_of(tensor, declared))
    source = os.path.join(scratch, "m.onnx")
    onnx.save(model, source)
    done = run([options.kiln, "compile", source, "-o", compiled.file, "--quiet", *compile_options])
    if done.returncode < 0 or done.returncode > LAST_REFUSAL:
        raise fault(f"compile: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    if done.returncode:
        raise refused(done.stderr.strip()[-300:])
    return compiled


def finalize_case(compiled, target, folder, options, *more):
    """Writes the code objects for a target to `folder`. Raises `refused` where an input steers sizes, or `fault`."""
    named = [x for name, size in compiled.dims.items() for x in ("--dim", f"{name}={size}")]
    done = run([options.kiln, "finalize", compiled.file, "--target", target, "-o", folder, "--quiet", *named, *more])
    if done.returncode < 0 or done.returncode > LAST_REFUSAL:
        raise fault(done.stderr.strip()[-300:])
    if done.returncode:
        raise refused(done.stderr.strip()[-300:])


def expected_outputs(case, model):
    """(name, declared type, array) of each tensor among the case's expected outputs."""
    for i, value in enumerate(model.graph.output):
        kind = value.type.WhichOneof("value")
        expected = tensors_at(os.path.join(case, "test_data_set_0", f"output_{i}.pb"), kind)
        for n, tensor in enumerate(expected):
            declared = value.type.tensor_type.elem_type if kind == "tensor_type" else tensor.data_type
            wanted = numpy_helper.to_array(tensor)
            if declared == TensorProto.BFLOAT16 and tensor.data_type == TensorProto.UINT16:
                wanted = wanted.view(onnx.helper.tensor_dtype_to_np_dtype(declared))
            yield value.name if kind == "tensor_type" else f"{value.name}.{n}", declared, wanted


def attempt(case, constants_from, scratch, options):
    """Compiles and runs a case once. Returns ("right" | "finalized", "") or ("wrong", reason)."""
    compiled = compile_case(case, constants_from, scratch, options)
    if options.target:
        finalize_case(compiled, options.target, os.path.join(scratch, "o"), options)
        return "finalized", ""
    out = os.path.join(scratch, "out")
    os.makedirs(out, exist_ok=True)
    device = ["--device", options.device] if options.device else []
    given = [x for name, file in compiled.inputs.items() for x in ("--input", f"{name}={file}")]
    done = run([options.kiln, "run", compiled.file, "--quiet", "--no-cache", "--in-process", "--output-dir", out,
                *device, *given])
    if 0 < done.returncode <= LAST_REFUSAL:  # as a runtime shape of -1, which is refused by its range
        raise refused(f"run: {done.stderr.strip()[-300:]}")
    if done.returncode:
        raise fault(f"run: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    for name, declared, wanted in expected_outputs(case, compiled.model):
        file = os.path.join(out, re.sub(r"[/\\:]", "_", name) + ".npy")
        if not os.path.exists(file):
            raise fault(f"no file for output {name} among {sorted(os.listdir(out))}")
        wrong = difference(read_back(file, declared), wanted, declared)
        if wrong:
            return "wrong", f"output {name} {wrong}"
    return "right", ""


def excluded_cases():
    """Cases whose expected values we do not agree with, from the list that backend_test.cpp reads."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "aot", "onnx", "refused_cases.txt")
    with open(path, encoding="utf-8") as f:
        return {line.split(" ", 1)[1].split(": ")[0] for line in f if line.startswith("excluded ")}


def in_forms(attempt):
    """The result of attempt(constants_from) for the first form of a case that is not refused."""
    reason = ""
    for constants_from in (1000, 1, 0):
        try:
            return attempt(constants_from)
        except refused as e:
            reason = reason or str(e)
        except fault as e:
            return "failed", str(e)
        except subprocess.TimeoutExpired as e:
            return "failed", f"no end after {e.timeout} s"
        except Exception as e:  # test data that this script cannot read
            return "unread", f"{type(e).__name__}: {e}"[:300]
    return "refused", reason


def check(case, options):
    if os.path.basename(case) in options.excluded:
        return "excluded", ""

    def once(constants_from):
        with tempfile.TemporaryDirectory() as scratch:
            return attempt(case, constants_from, scratch, options)

    return in_forms(once)


def case_names(folder):
    return sorted(n for n in os.listdir(folder) if os.path.exists(f"{folder}/{n}/model.onnx"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("cases")
    parser.add_argument("--device")
    parser.add_argument("--target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1, help="only each Nth case")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.excluded = excluded_cases()
    names = [n for n in case_names(options.cases) if not options.only or any(w in n for w in options.only)][:: options.every]
    counts, table = collections.Counter(), {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda n: check(os.path.join(options.cases, n), options), names)
        for name, (result, reason) in zip(names, results):
            counts[result] += 1
            table[name] = [result, reason]
            if result in ("wrong", "failed", "unread"):
                print(f"{result:8} {name}: {reason}", flush=True)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())), f"of {len(names)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(table, f, indent=1)
    return 1 if counts["wrong"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
