#!/usr/bin/env python3
"""The inner loops of AMD kernels, counted in their machine code: no GPU is needed.

    amd_code.py KILN [--target gfx942 ...] [--only PATTERN ...] [--json FILE]

For each problem and target one line about the innermost loop with most matrix instructions (or, without any, the
longest one) of all launches but those that prepare weights. A kernel without a loop is taken whole:

    loop      instructions, of which `matrix` are MFMA or WMMA, `exp` are v_exp and `mul_lo` are v_mul_lo_u32
    ahead     matrix instructions between the last load of the loop and the next wait for one of its loads
    flight    loads that are on their way at most, when the loop waits for one
    bare      waits after which no read of LDS is on its way, so that the matrix unit waits for the whole time of a read
    loads     loads by their number of bytes
    registers, spills, LDS of the launch
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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "test", "hazards"), os.path.join(HERE, "..", "test", "emulation")]
import graph  # noqa: E402
import machine_code  # noqa: E402

TARGETS = ["gfx942", "gfx950", "gfx1100", "gfx1201"]
PROBLEMS = {}
BYTES = {"dword": 4, "b32": 4, "dwordx2": 8, "b64": 8, "dwordx3": 12, "b96": 12, "dwordx4": 16, "b128": 16,
         "ubyte": 1, "sbyte": 1, "u8": 1, "i8": 1, "b8": 1, "ushort": 2, "sshort": 2, "u16": 2, "i16": 2, "b16": 2, "short": 2}


def problem(build):
    PROBLEMS[build.__name__] = build
    return build


def product(name, m, n, k, dtype="f16"):
    def build(g):
        g.output(g.op("MatMul", g.input("a", [m, k]), g.weight([k, n], k ** -0.5)))

    build.__name__, build.dtype = name, dtype
    return problem(build)


def attention(name, heads, rows, keys, depth, key_heads=None, causal=False):
    def build(g):
        shape = lambda *dims: g.constant(list(dims), "i64")
        q, k, v = g.input("q", [1, heads, rows, depth]), g.input("k", [1, key_heads or heads, keys, depth]), g.input("v", [1, key_heads or heads, keys, depth])
        if key_heads:
            share = heads // key_heads
            k, v = (g.op("Reshape", g.op("Expand", g.op("Unsqueeze", x, shape(2)), shape(1, key_heads, share, keys, depth)), shape(1, heads, keys, depth)) for x in (k, v))
        s = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(depth ** -0.5))
        if causal:
            s = g.op("Add", s, g.constant(np.triu(np.full((rows, keys), -np.inf, np.float32), 1)[None, None]))
        g.output(g.op("MatMul", g.op("Softmax", s, axis=-1), v))

    build.__name__ = name
    return problem(build)


product("product_4096", 4096, 4096, 4096)
product("product_1024", 1024, 1024, 1024)
product("product_512x2048x2048", 512, 2048, 2048)
product("product_16x4096x4096", 16, 4096, 4096)
product("product_bf16_1024", 1024, 1024, 1024, "bf16")
product("product_bf16_4096", 4096, 4096, 4096, "bf16")
product("product_f32_1024", 1024, 1024, 1024, "f32")
attention("attention_384x64", 12, 384, 384, 64)
attention("attention_1024x128", 16, 1024, 1024, 128)
attention("attention_causal_1024x64", 12, 1024, 1024, 64, causal=True)
attention("attention_decode_1024x64", 32, 1, 1024, 64, key_heads=4)
attention("attention_decode_4096x128", 32, 1, 4096, 128, key_heads=8)


@problem
def product_inputs_1024(g):
    g.output(g.op("MatMul", g.input("a", [1024, 1024]), g.input("b", [1024, 1024])))


@problem
def product_i8_512(g):
    """Symmetric: no zero points."""
    g.output(g.op("MatMulInteger", g.integers("a", [512, 1024], -127, 128, "i8"), g.constant(g.random.integers(-127, 128, [1024, 512]), "i8")), "i32")


@problem
def product_i8_1024(g):
    g.output(g.op("MatMulInteger", g.integers("a", [1024, 1024], -127, 128, "i8"), g.constant(g.random.integers(-127, 128, [1024, 1024]), "i8")), "i32")


@problem
def product_int4_512x4096(g):
    """Weights of 4 bits with a scale for 32 along k."""
    g.output(g.op("MatMul", g.input("a", [512, 4096]), g.packed_weight([4096, 4096], block=32)))


@problem
def product_u8_zero_512(g):
    """u8 with a zero point by i8."""
    g.output(g.op("MatMulInteger", g.integers("a", [512, 1024], 0, 256, "u8"), g.constant(g.random.integers(-127, 128, [1024, 512]), "i8"), g.constant(117, "u8")), "i32")


@problem
def product_qdq_512(g):
    """Quantized and dequantized f32, as exporters write it."""
    scale, zero, own = g.constant(np.float32(0.02), "f32"), g.constant(0, "i8"), g.constant(np.float32(0.01), "f32")
    a = g.op("DequantizeLinear", g.op("QuantizeLinear", g.input("a", [512, 1024]), scale, zero), scale, zero)
    b = g.op("DequantizeLinear", g.constant(g.random.integers(-127, 128, [1024, 512]), "i8"), own, zero)
    g.output(g.op("MatMul", a, b))


product_qdq_512.dtype = "f32"


@problem
def convolution_qlinear(g):
    """QLinearConv of u8 pixels with i8 weights."""
    scale, zero = g.constant(np.float32(0.02), "f32"), g.constant(117, "u8")
    g.output(g.op("QLinearConv", g.integers("x", [1, 64, 28, 28], 0, 256, "u8"), scale, zero, g.constant(g.random.integers(-127, 128, [64, 64, 3, 3]), "i8"), scale, g.constant(0, "i8"),
                  g.constant(np.float32(0.5), "f32"), zero, pads=[1, 1, 1, 1]), "u8")


def convolution(name, images, side, channels, filters, width, stride=1):
    def build(g):
        g.output(g.op("Conv", g.input("x", [images, channels, side, side]), g.weight([filters, channels, width, width], 0.05), pads=[width // 2] * 4, strides=[stride, stride]))

    build.__name__ = name
    return problem(build)


# Of resnet50.
convolution("convolution_56x64", 8, 56, 64, 64, 3)
convolution("convolution_56x128_half", 8, 56, 128, 128, 3, 2)
convolution("convolution_14x256", 32, 14, 256, 256, 3)
convolution("convolution_14x1024_one", 32, 14, 1024, 256, 1)


@problem
def softmax_4096x1024(g):
    g.output(g.op("Softmax", g.input("x", [4096, 1024]), axis=-1))


@problem
def layer_norm_4096x768(g):
    g.opset = 17
    g.output(g.op("LayerNormalization", g.input("x", [4096, 768]), g.weight([768]), g.weight([768]), axis=-1))


def is_matrix(x):
    return x.name.startswith(("v_mfma", "v_wmma"))


def is_load(x):
    return x.name.startswith(("global_load", "buffer_load"))


def bytes_of(x):
    return next((BYTES[t] for t in x.name.split("_") if t in BYTES), 0)


def loads_left(x):
    """How many loads may be on their way after this wait, or None if it does not wait for loads."""
    number = int(m[1], 0) if (m := re.search(r"(0x[0-9a-f]+|\d+)\s*$", x.text)) else 0
    if x.name == "s_waitcnt":
        if m := re.search(r"vmcnt\((\d+)\)", x.text):
            return int(m[1])
        return 0 if x.text.endswith(" 0") else None
    if x.name == "s_wait_loadcnt":
        return number
    if x.name == "s_wait_loadcnt_dscnt":
        return number >> 8
    return None


def waits_for_all_reads(x):
    """Whether this wait leaves no read of LDS on its way."""
    number = int(m[1], 0) if (m := re.search(r"(0x[0-9a-f]+|\d+)\s*$", x.text)) else 0
    if x.name == "s_waitcnt":
        return "lgkmcnt(0)" in x.text or x.text.endswith(" 0")
    return x.name == "s_wait_dscnt" and number == 0 or x.name == "s_wait_loadcnt_dscnt" and number & 255 == 0


def innermost_loops(code):
    ranges = [(x.target, x.address) for x in code if x.target is not None and x.target <= x.address]
    inner = [r for r in ranges if not any(o != r and r[0] <= o[0] and o[1] <= r[1] for o in ranges)]
    with_matrix = [r for r in ranges if any(is_matrix(x) for x in code if r[0] <= x.address <= r[1])]
    # The matrix instructions may be in a loop around a small one.
    outer = [r for r in with_matrix if not any(o != r and r[0] <= o[0] and o[1] <= r[1] for o in with_matrix)]
    return [[x for x in code if first <= x.address <= last] for first, last in (outer or inner)] or [code]


def facts(loop):
    last = max((i for i, x in enumerate(loop) if is_load(x)), default=None)
    # The second time around, the loads on their way are those of the loop.
    on_their_way = flight = 0
    ahead, counts = None if last is None else 0, False
    for number, x in enumerate(loop * 3):
        on_their_way += is_load(x)
        if last is not None and number == len(loop) + last:
            counts = True
        ahead = ahead + 1 if counts and is_matrix(x) else ahead
        if (left := loads_left(x)) is not None and left < on_their_way:
            flight, on_their_way, counts = max(flight, on_their_way), left, False
    bare, reads = 0, False
    for x in loop:
        reads |= x.name.startswith(("ds_read", "ds_load"))
        if reads and waits_for_all_reads(x):
            bare, reads = bare + 1, False
    loads = collections.Counter(bytes_of(x) for x in loop if is_load(x))
    return {"loop": len(loop), "matrix": sum(map(is_matrix, loop)), "exp": sum("v_exp" in x.text for x in loop), "mul_lo": sum(x.name.startswith("v_mul_lo") for x in loop),
            "ahead": ahead, "flight": flight, "bare": bare, "loads": {str(k): v for k, v in sorted(loads.items())}}


def count(kiln, build, target, folder):
    g = graph.Graph(getattr(build, "dtype", "f16"), False)
    build(g)
    graph.save(g, f"{folder}/p.onnx")
    for command in (["compile", f"{folder}/p.onnx", "-o", f"{folder}/p.kiln"], ["finalize", f"{folder}/p.kiln", "--target", target, "-o", f"{folder}/{target}", "--no-cache"]):
        done = subprocess.run([kiln, *command], capture_output=True, text=True)
        if done.returncode:
            return {"error": done.stderr.strip().splitlines()[-1][:120]}
    with open(f"{folder}/{target}/kernels.json") as f:
        kernels = json.load(f)["kernels"]
    found = []
    for kernel in kernels:
        code = machine_code.disassemble(f"{folder}/{target}/{kernel['object']}", target)
        meta = machine_code.metadata(f"{folder}/{target}/{kernel['object']}")
        for launch in kernel["launches"]:
            if launch["prepare"]:
                continue
            for loop in innermost_loops(code[launch["symbol"]]):
                own = meta[launch["symbol"]]
                found.append(facts(loop) | {"registers": own["vgpr_count"], "spills": own["vgpr_spill_count"], "lds": own["group_segment_fixed_size"] + launch["lds_bytes"], "groups": int(np.prod(launch["grid"])),
                                            "launches": sum(len(k["launches"]) for k in kernels)})
    return max(found, key=lambda f: (f["matrix"], f["loop"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--target", action="append", help=f"default: {', '.join(TARGETS)}")
    parser.add_argument("--only", action="append")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows, columns = [], ["loop", "matrix", "exp", "mul_lo", "ahead", "flight", "bare", "registers", "spills", "lds", "groups", "launches"]
    print(f"{'problem':26} {'target':15} " + " ".join(f"{c:>9}" for c in columns) + "  loads")
    for name, build in PROBLEMS.items():
        if options.only and not any(fnmatch.fnmatch(name, o) for o in options.only):
            continue
        for target in options.target or TARGETS:
            with tempfile.TemporaryDirectory() as folder:
                row = count(options.kiln, build, target, folder)
            rows.append({"problem": name, "target": target, **row})
            text = row.get("error") or " ".join(f"{'–' if row[c] is None else row[c]:>9}" for c in columns) + "  " + " ".join(f"{n}×{b}" for b, n in row["loads"].items())
            print(f"{name:26} {target:15} {text}", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 1 if any("error" in r for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
