#!/usr/bin/env python3
"""The inner loops of kernels for 64-bit Arm, counted in their machine code beside those of a BLAS library: no Arm processor is needed.

    arm_code.py KILN [--target armv8-a ...] [--only PATTERN ...] [--blas libopenblas.so.0] [--json FILE]

For each problem and target one line about the loop without inner loops that has most multiply-adds. Debian's library for arm64 (apt-get
download libopenblas0-pthread:arm64; dpkg-deb -x) has one microkernel for each processor:

    madd      multiply-add instructions of the loop, and what one of them computes (multiplications)
    per madd  instructions of the loop for each of them, and for 1000 floating-point operations (an addition and a multiplication are two)
    loads     load instructions and the bytes that they load, for each multiply-add
    stack     loads and stores of the stack: registers that were spilled
"""
import argparse
import collections
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LANES = {"16b": 16, "8b": 8, "8h": 8, "4h": 4, "4s": 4, "2s": 2, "2d": 2, "1d": 1, "b": 1, "h": 1, "s": 1, "d": 1}
WIDTH = {"b": 1, "h": 2, "w": 4, "s": 4, "x": 8, "d": 8, "q": 16}
# Multiplications per 32 bits of the sum. Others than these have one per lane of the sum.
DOTS = {"sdot": 4, "udot": 4, "usdot": 4, "sudot": 4, "bfdot": 2}
SQUARES = {"smmla": 32, "ummla": 32, "usmmla": 32, "bfmmla": 16}
MADDS = re.compile(r"(fmla|fmlal|fmlal2|bfmlalb|bfmlalt|fmad|mla|mad|smlal|smlal2|umlal|umlal2|sdot|udot|usdot|sudot|bfdot|smmla|ummla|usmmla|bfmmla)$")
KERNELS = {"f32": "sgemm_kernel", "f64": "dgemm_kernel"}
TYPES = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


def product(m, n, k, dtype):
    """x [m, k] times constant weights [k, n]."""
    random = np.random.default_rng(1)
    if dtype == "i8":
        weights = numpy_helper.from_array(random.integers(-127, 128, (k, n)).astype(np.int8), "w")
        node, kinds = helper.make_node("MatMulInteger", ["x", "w"], ["y"]), (TensorProto.INT8, TensorProto.INT32)
    else:
        values = random.standard_normal((k, n)).astype(np.float32)
        weights = helper.make_tensor("w", TYPES[dtype], [k, n], values.ravel())
        node, kinds = helper.make_node("MatMul", ["x", "w"], ["y"]), (TYPES[dtype], TYPES[dtype])
    return node, [helper.make_tensor_value_info("x", kinds[0], [m, k])], helper.make_tensor_value_info("y", kinds[1], [m, n]), [weights]


def convolution(pixels, channels, features, window):
    weights = numpy_helper.from_array(np.random.default_rng(1).standard_normal((features, channels, window, window)).astype(np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[window // 2] * 4)
    return node, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, pixels, pixels])], helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, features, pixels, pixels]), [weights]


PROBLEMS = {
    "matmul_512_f32": lambda: product(512, 512, 512, "f32"),
    "matmul_1024x768x3072_f32": lambda: product(1024, 3072, 768, "f32"),
    "matmul_16x1024x1024_f32": lambda: product(16, 1024, 1024, "f32"),
    "matmul_512_f64": lambda: product(512, 512, 512, "f64"),
    "matmul_512_f16": lambda: product(512, 512, 512, "f16"),
    "matmul_512_bf16": lambda: product(512, 512, 512, "bf16"),
    "matmul_512_i8": lambda: product(512, 512, 512, "i8"),
    "conv_56_64_64_1x1": lambda: convolution(56, 64, 64, 1),
    "conv_28_128_128_3x3": lambda: convolution(28, 128, 128, 3),
    "conv_14_256_256_1x1": lambda: convolution(14, 256, 256, 1),
}


def disassemble(file, symbol=None):
    """(address, mnemonic, operands) of the functions in an object, by name."""
    command = ["llvm-objdump-22", "-d", "--no-show-raw-insn", "--mattr=+v8.6a,+sve", file]
    if symbol:
        command.insert(1, f"--disassemble-symbols={symbol}")
    functions, current = {}, None
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if m := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            current = functions.setdefault(m[1], [])
        elif (m := re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)$", line)) and current is not None:
            current.append((int(m[1], 16), m[2], m[3]))
    return functions


def loops(code):
    """The loops of a function that hold no other loop, as lists of instructions."""
    index, found = {a: i for i, (a, _, _) in enumerate(code)}, []
    for i, (address, name, operands) in enumerate(code):
        target = re.search(r"0x([0-9a-f]+)", operands)
        if re.match(r"(b|b\..+|cbn?z|tbn?z)$", name) and target and int(target[1], 16) <= address and int(target[1], 16) in index:
            found.append((index[int(target[1], 16)], i))
    return [code[a:b + 1] for a, b in found if not any((c, d) != (a, b) and a <= c and d <= b for c, d in found)]


def multiplications(name, operands, vector_bits):
    """What a multiply-add instruction computes; 0 for scalars and other instructions."""
    if not MADDS.match(name):
        return 0
    if name in SQUARES:
        return SQUARES[name]
    first = operands.split(",")[0].strip()
    if m := re.match(r"z\d+\.(\w)", first):
        return vector_bits // 8 // WIDTH[m[1]]
    if m := re.match(r"v\d+\.(\w+)", first):
        return LANES[m[1]] * DOTS.get(name, 1)
    return 0


def loaded_bytes(name, operands, vector_bits):
    registers = operands.split("[")[0]
    if name.startswith(("ld1r", "ld1")) and "z" in registers:
        return WIDTH[name[-1]] if name.startswith("ld1r") else registers.count("z") * vector_bits // 8
    if name.startswith("ld1"):
        return sum(LANES[m] * WIDTH[m[-1]] for m in re.findall(r"v\d+\.(\w+)", registers)) if not name.startswith("ld1r") else WIDTH[re.search(r"\.\d+(\w)", registers)[1]]
    return sum(WIDTH[r] for r in re.findall(r"\b([bhswxdq])\d+", registers))


def count(code, vector_bits=128):
    """The numbers of the best loop, or None."""
    best = None
    for loop in loops(code):
        work = [multiplications(n, o, vector_bits) for _, n, o in loop]
        madds = sum(1 for w in work if w)
        if not madds or (best and madds <= best["madd"]):
            continue
        loads = [(n, o) for _, n, o in loop if n.startswith("ld")]
        best = {"instructions": len(loop), "madd": madds, "each": sum(work) // madds, "per_madd": round(len(loop) / madds, 3),
                "per_kflop": round(1000 * len(loop) / (2 * sum(work)), 1), "loads": round(len(loads) / madds, 3),
                "bytes": round(sum(loaded_bytes(n, o, vector_bits) for n, o in loads) / madds, 2),
                "stack": sum(1 for _, n, o in loop if n.startswith(("ld", "st")) and "[sp" in o),
                "others": dict(collections.Counter(n for _, n, o in loop if not MADDS.match(n) and not n.startswith("ld")).most_common(4))}
    return best


def report(name, target, row):
    if row is None:
        print(f"{name:26} {target:14} no loop with multiply-adds", flush=True)
        return
    print(f"{name:26} {target:14} {row['madd']:5} x {row['each']:<3} {row['per_madd']:9.3f} {row['per_kflop']:8.1f} {row['loads']:9.3f} {row['bytes']:7.2f} {row['stack']:6}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--target", action="append")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--blas", help="OpenBLAS for arm64")
    parser.add_argument("--json")
    options = parser.parse_args()
    targets = {t["name"]: t for t in json.loads(subprocess.run([options.kiln, "targets", "--json"], capture_output=True, text=True, check=True).stdout)["targets"]}
    rows = []
    print(f"{'':26} {'':14} {'madd':>11} {'per madd':>9} {'/kflop':>8} {'loads':>9} {'bytes':>7} {'stack':>6}")
    for name, build in PROBLEMS.items():
        if options.only and not any(fnmatch.fnmatch(name, p) for p in options.only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            node, inputs, output, constants = build()
            graph = helper.make_graph([node], "g", inputs, [output], constants)
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{folder}/m.onnx")
            subprocess.run([options.kiln, "compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln", "--quiet"], check=True)
            for target in options.target or ["armv8-a", "armv8.6-a", "armv8-sve256"]:
                out = f"{folder}/{target}"
                subprocess.run([options.kiln, "finalize", f"{folder}/m.kiln", "--target", target, "-o", out, "--no-cache", "--quiet"], check=True)
                with open(f"{out}/kernels.json") as f:
                    prepared = {l["symbol"] for k in json.load(f)["kernels"] for l in k["launches"] if l["prepare"]}
                best = None
                for file in sorted(os.listdir(out)):
                    for symbol, code in disassemble(f"{out}/{file}").items() if file.endswith(".o") else ():
                        row = count(code, targets[target]["vector_bits"])
                        if row and symbol not in prepared and (best is None or row["madd"] > best["madd"]):
                            best = row
                report(name, target, best)
                rows.append({"problem": name, "target": target, **(best or {})})
    for dtype, kernel in KERNELS.items() if options.blas else ():
        symbols = subprocess.run(["llvm-nm-22", "-D", "--defined-only", options.blas], capture_output=True, text=True, check=True).stdout
        for symbol in sorted(set(re.findall(rf"\b{kernel}_(\w+)", symbols))):
            if symbol in ("ARMV8", "CORTEXA53", "CORTEXA57", "NEOVERSEN1", "NEOVERSEV1", "THUNDERX2T99"):
                row = count(disassemble(options.blas, f"{kernel}_{symbol}")[f"{kernel}_{symbol}"])
                report(f"OpenBLAS {dtype}", symbol, row)
                rows.append({"problem": f"OpenBLAS {dtype}", "target": symbol, **(row or {})})
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
