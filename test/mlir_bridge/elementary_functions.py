#!/usr/bin/env python3
"""How exact the functions of mlir_bridge/codegen/elementary_functions.hpp are for f32:

    elementary_functions.py KILN [TARGET]

TARGET is "host" (run by this CPU; "host:ROW" by the code of another row that it can run) or an AMD architecture, executed
in the emulator of docs/emulation.md (KILN_AMD_MACHINE). Ranges of random arguments and special values,
against f64; at most 4 units in the last place on the host, 3 elsewhere; NaN and infinities as numpy has them. On the
host, results of exp below 2^-125.5 may be 0. Exit code 1 beyond, 77 without an
emulator."""
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

COUNT, SMALLEST = 2048, np.float32(2.0**-126)
SPECIAL = np.array([0, -0.0, 1, -1, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e-45, 3.4e38, -3.4e38, 88.7, 89.3, -87.5, -103.9, 104, 1e30, -1e30, 71000, 48001, 1e10, 2.0**120], np.float32)
random = np.random.default_rng(0)


def uniform(low, high):
    x = random.uniform(low, high, COUNT).astype(np.float32)
    x[: len(SPECIAL)] = SPECIAL
    return x


def magnitudes(low, high):
    """2^low to 2^high, both signs."""
    x = (np.exp2(random.uniform(low, high, COUNT)) * random.choice([-1, 1], COUNT)).astype(np.float32)
    x[: len(SPECIAL)] = SPECIAL
    return x


def pairs(x, y):
    n = len(SPECIAL)
    x[: n * n], y[: n * n] = np.repeat(SPECIAL, n), np.tile(SPECIAL, n)
    return [x, y]


# operator, arguments, what it is, attributes
CASES = [("Exp", [uniform(-104, 89)], np.exp, {}), ("Log", [np.abs(magnitudes(-140, 127))], np.log, {}), ("Log", [uniform(0.5, 2)], np.log, {}),
         ("Erf", [uniform(-4.5, 4.5)], np.vectorize(math.erf), {}), ("Tanh", [uniform(-10, 10)], np.tanh, {}), ("Sin", [magnitudes(-20, 127)], np.sin, {}),
         ("Sin", [uniform(-100, 100)], np.sin, {}), ("Cos", [magnitudes(-20, 127)], np.cos, {}), ("Cos", [uniform(-100, 100)], np.cos, {}), ("Asin", [uniform(-1, 1)], np.arcsin, {}),
         ("Acos", [uniform(-1, 1)], np.arccos, {}), ("Atan", [magnitudes(-20, 30)], np.arctan, {}), ("Sinh", [uniform(-89.4, 89.4)], np.sinh, {}), ("Sinh", [uniform(-2, 2)], np.sinh, {}),
         ("Cosh", [uniform(-89.4, 89.4)], np.cosh, {}), ("Asinh", [magnitudes(-30, 127)], np.arcsinh, {}), ("Acosh", [1 + np.abs(magnitudes(-20, 127))], np.arccosh, {}),
         ("Atanh", [uniform(-1, 1)], np.arctanh, {}), ("Pow", pairs(np.abs(magnitudes(-126, 127)), uniform(-3, 3)), np.power, {}),
         ("Mod", pairs(magnitudes(-30, 127), magnitudes(-30, 60)), np.fmod, {"fmod": 1})]
# tan is large where its error is; the reduced angle has f32's digits only.
CASES += [("Tan", [uniform(-100, 100)], np.tan, {}), ("Tan", [magnitudes(-20, 127)], np.tan, {})]


def write_model(folder, data):
    def tensor(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [COUNT])

    nodes = [helper.make_node(op, [f"x{i}_{k}" for k in range(len(x))], [f"y{i}"], **attributes) for i, (op, x, _, attributes) in enumerate(CASES)]
    graph = helper.make_graph(nodes, "functions", [tensor(name) for name in data], [tensor(f"y{i}") for i in range(len(CASES))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, f"{folder}/model.onnx")


def run_on_host(kiln, target, folder, data):
    inputs = []
    for name, x in data.items():
        np.save(f"{folder}/{name}.npy", x)
        inputs += ["--input", f"{name}={folder}/{name}.npy"]
    row = target.partition(":")[2]
    subprocess.run([kiln, "run", f"{folder}/model.kiln", "--quiet", "--no-cache", "--output-dir", folder, *(["--target", row] if row else []), *inputs], check=True)
    return {f"y{i}": np.load(f"{folder}/y{i}.npy") for i in range(len(CASES))}


def run_in_emulator(kiln, target, folder, data, machine, buffer):
    subprocess.run([kiln, "finalize", f"{folder}/model.kiln", "--target", target, "-o", f"{folder}/out", "--no-cache"], check=True, stdout=subprocess.DEVNULL)
    with open(f"{folder}/out/kernels.json") as f:
        document = json.load(f)
    program = document["program"]
    buffers = {v["id"]: buffer(machine, COUNT * 4, data[v["name"]].tobytes(), 0) for v in program["values"] if v["from"] == "input"}
    for step in program["steps"]:
        kernel = document["kernels"][step["kernel"]]
        for v in step["outputs"]:
            buffers[v] = buffer(machine, COUNT * 4, None, 0xCD)
        places = {"input": step["inputs"], "output": step["outputs"]}
        code = machine.Hsaco(f"{folder}/out/{kernel['object']}")
        for launch in kernel["launches"]:
            arguments = [buffers[places[a["kind"]][a["index"]]].address.to_bytes(8, "little") for a in launch["arguments"]]
            machine.run(code, launch["symbol"], target, tuple(launch["grid"]), tuple(launch["block"]), arguments, launch["lds_bytes"])
    return {o["name"]: np.frombuffer(buffers[o["value"]].bytes()[: COUNT * 4], np.float32) for o in program["outputs"]}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    kiln, target = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "gfx1100"
    emulated = not target.startswith("host")
    if emulated:
        if not os.environ.get("KILN_AMD_MACHINE"):
            print("skipped: KILN_AMD_MACHINE names no emulator")
            sys.exit(77)
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "emulation"))
        import amd_machine
        import memory

    wrong = 0
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        data = {f"x{i}_{k}": x for i, case in enumerate(CASES) for k, x in enumerate(case[1])}
        write_model(folder, data)
        subprocess.run([kiln, "compile", f"{folder}/model.onnx", "-o", f"{folder}/model.kiln"], check=True, stdout=subprocess.DEVNULL)
        results = run_in_emulator(kiln, target, folder, data, amd_machine, memory.Buffer) if emulated else run_on_host(kiln, target, folder, data)
        for i, (op, x, truth, _) in enumerate(CASES):
            got, exact = results[f"y{i}"], truth(*[v.astype(np.float64) for v in x])
            want = exact.astype(np.float32)
            if op == "Exp" and not emulated:
                got = np.where((want < 2**-125.4) & (got == 0), want, got)
            finite = np.isfinite(want) & np.isfinite(got)
            # A unit in the last place; of the smallest normal number for denormal results.
            unit = np.spacing(np.maximum(np.abs(want), SMALLEST)).astype(np.float64)
            error = np.where(finite, np.abs(got - exact) / unit, 0)
            other = np.flatnonzero(~finite & ~((got == want) | (np.isnan(got) & np.isnan(want))))
            at = int(error.argmax())
            bad = error[at] > (3 if emulated else 4) or len(other) > 0
            wrong += bad
            line = f"{op:6} {error[at]:6.2f} ulp at {[float(v[at]) for v in x]}"
            print(line + (f"; {len(other)} special values differ, first at {[float(v[other[0]]) for v in x]}" if len(other) else "") + (" WRONG" if bad else ""))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
