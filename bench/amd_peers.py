#!/usr/bin/env python3
"""AMD kernels beside those of Triton and IREE, counted in their machine code: no GPU is needed.

    amd_peers.py KILN [--target gfx942 ...] [--only PATTERN ...] [--iree iree-compile] [--json FILE]

Each problem (f16 where its name has no other type) is compiled by Kiln, by Triton for several sizes of tiles, and by IREE at O3 where --iree names its
compiler. A line is about the inner loop with most matrix instructions:

    loop, matrix   instructions, and how many of them are MFMA or WMMA
    lds, global    bytes that a wave moves to or from LDS (loads from memory that go there directly, too), and loads from memory, for 1,000 operations of
                   its matrix unit
    width          mean bytes of a load, for each lane
    registers, spills, waves (on a SIMD, as registers allow)
    filled         share of the device's SIMDs that work, over all rounds of workgroups
    peak           estimated share of the device's peak: filled, times what the loop lets the matrix unit do (SIMDS below)

Softmax and layer norm have no matrix instructions. Their line is about the whole kernel: its instructions of a wave, how many of them
the waves of a row execute for 1,000 elements (those of all lanes together), the bytes of LDS for 1,000 elements, and the microseconds that the slowest of
the vector unit, LDS and the device's memory needs for all rows.

Of Triton's tiles the one with the highest estimate is shown. The estimate knows throughput only: what the matrix unit,
the vector unit, LDS and the vector memory path need for one turn of the loop, the slowest of them counts. It ignores
latency and the caches, so it compares code; it does not predict times. Needs Triton (PyPI) and what
amd_code.py needs.
"""
import argparse
import fnmatch
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import amd_code
import machine_code  # test/hazards; amd_code extends the path

PROBLEMS = {"product_4096": ("product", 4096, 4096, 4096), "product_1024": ("product", 1024, 1024, 1024), "product_512x2048x2048": ("product", 512, 2048, 2048),
            "product_16x4096x4096": ("product", 16, 4096, 4096), "attention_384x64": ("attention", 12, 384, 64), "attention_1024x128": ("attention", 16, 1024, 128),
            "product_bf16_4096": ("product_bf16", 4096, 4096, 4096), "product_i8_1024": ("product_i8", 1024, 1024, 1024), "product_int4_512x4096": ("product_int4", 512, 4096, 4096),
            "convolution_56x64": ("convolution", 8, 56, 64, 64, 3, 1), "convolution_56x128_half": ("convolution", 8, 56, 128, 128, 3, 2), "convolution_14x256": ("convolution", 32, 14, 256, 256, 3, 1),
            "convolution_14x1024_one": ("convolution", 32, 14, 1024, 256, 1, 1), "softmax_4096x1024": ("softmax", 4096, 1024), "layer_norm_4096x768": ("layer_norm", 4096, 768)}
# For each SIMD and clock: operations of f16 products, how many times as many of i8 products, bytes written to LDS, bytes read from it, and bytes of vector memory (the
# compute unit's 128, 128 and 64, divided among its SIMDs; guides to the MI355X say that CDNA 4 reads 256 bytes of LDS), clocks of a vector instruction of a whole wave, of an exponential, whether vector and matrix
# instructions share a pipe, and vector registers of a lane; and the device's places for a workgroup with their SIMDs: compute units, on RDNA pairs of them (all code is in WGP mode). The products follow from AMD's published peaks: MI300X 1307
# TFLOP/s = 304 units x 4 x 512 x 2.1 GHz, MI355X 2517 = 256 x 4 x 1024 x 2.4, RX 7900 XTX 123 = 48 x 4 x 256 x 2.5,
# RX 9070 XT 195 = 32 x 4 x 512 x 2.97, and of i8 2615, 5033, 123 and 389 TOP/s. The rest: AMD's ISA documents of CDNA 3 and RDNA 3.
SIMDS = {"gfx942": dict(units=304, simds=4, lanes=64, matrix=512, bytes=2, lds=32, lds_read=32, memory=16, vector=4, exp=16, shared=False, registers=512),
         "gfx950": dict(units=256, simds=4, lanes=64, matrix=1024, bytes=2, lds=32, lds_read=64, memory=16, vector=4, exp=16, shared=False, registers=512),
         "gfx1100": dict(units=48, simds=4, lanes=32, matrix=256, bytes=1, lds=64, lds_read=64, memory=32, vector=1, exp=4, shared=True, registers=1536),
         "gfx1201": dict(units=32, simds=4, lanes=32, matrix=512, bytes=2, lds=64, lds_read=64, memory=32, vector=1, exp=4, shared=True, registers=1536)}
# Bytes that the device's memory moves in a clock (5.3, 8.0, 0.96 and 0.64 TB/s), and MHz, as AMD's product pages give them.
DEVICES = {"gfx942": (5.3e12 / 2.1e9, 2100), "gfx950": (8.0e12 / 2.4e9, 2400), "gfx1100": (0.96e12 / 2.5e9, 2500), "gfx1201": (0.64e12 / 2.97e9, 2970)}
LDS_READS, LDS_WRITES = ("ds_read", "ds_load"), ("ds_write", "ds_store")


ROWS = ("softmax", "layer_norm")


def matrix_operations(x):
    m, n, k = map(int, re.search(r"_(\d+)x(\d+)x(\d+)", x.name).groups())
    return 2 * m * n * k


def lds_bytes(x):
    return amd_code.bytes_of(x) * (2 if re.search(r"(read|load|write|store)_?2", x.name) else 1)


def goes_to_lds(x):
    """A load from memory whose result is written to LDS instead of registers (Triton's on gfx950)."""
    return amd_code.is_load(x) and re.search(r"\blds\b|_load_lds_", x.text) is not None


def lds_traffic(code, simd, reads=LDS_READS):
    """Bytes that a wave reads from LDS, and bytes that it writes there."""
    return (simd["lanes"] * sum(lds_bytes(x) for x in code if x.name.startswith(reads)),
            simd["lanes"] * sum(lds_bytes(x) for x in code if x.name.startswith(LDS_WRITES) or goes_to_lds(x)))


def filled(launch, simd):
    """The share of the SIMDs that work, over all rounds of workgroups. `launch`: workgroups, and the waves of one."""
    groups, waves = launch
    at_once = simd["units"] * max(1, simd["simds"] // waves)
    return groups / (at_once * -(-groups // at_once)) * min(1, waves * max(1, simd["simds"] // waves) / simd["simds"])


def judged(loop, simd, registers, spills, launch):
    """What one loop of a wave does, and the estimate. `launch`: as for filled(), None if it is not known."""
    operations = sum(matrix_operations(x) for x in loop if amd_code.is_matrix(x))
    if not operations:
        return None
    loads = [x for x in loop if amd_code.is_load(x)]
    read, written = lds_traffic(loop, simd)
    memory = simd["lanes"] * sum(map(amd_code.bytes_of, loads))
    parts = [p for x in loop for p in x.parts if p.name.startswith("v_") and not amd_code.is_matrix(x)]
    exps = sum(p.name.startswith(("v_exp", "v_rcp", "v_log")) for p in parts)
    # Two parts of one instruction are issued together.
    vector = sum(1 for x in loop if x.name.startswith("v_") and not amd_code.is_matrix(x)) - exps
    of_bytes = any(amd_code.is_matrix(x) and re.search(r"_i8|iu8", x.name) for x in loop)
    clocks = {"matrix": operations / (simd["matrix"] * (simd["bytes"] if of_bytes else 1)), "vector": vector * simd["vector"] + exps * simd["exp"], "lds": read / simd["lds_read"] + written / simd["lds"], "memory": memory / simd["memory"]}
    if simd["shared"]:
        clocks["vector"] += clocks["matrix"]
    slowest = max(clocks, key=clocks.get)
    rounded = -(-max(registers, 1) // 8) * 8
    return {"loop": len(loop), "matrix": sum(map(amd_code.is_matrix, loop)), "lds": 1000 * (read + written) / operations, "global": 1000 * memory / operations,
            "width": sum(map(amd_code.bytes_of, loads)) / len(loads) if loads else 0, "registers": registers, "spills": spills, "waves": min(16 if simd["shared"] else 8, simd["registers"] // rounded),
            "filled": filled(launch, simd) if launch else None, "peak": clocks["matrix"] / clocks[slowest] * (filled(launch, simd) if launch else 1), "limit": slowest}


def judged_rows(code, target, registers, spills, launch, problem):
    """What a kernel without loops does with rows, and the time for all of them."""
    simd, (_, rows, width), (groups, waves) = SIMDS[target], problem, launch
    loads = [x for x in code if amd_code.is_load(x)]
    exps = sum(p.name.startswith(("v_exp", "v_rcp", "v_log", "v_rsq", "v_sqrt")) for x in code for p in x.parts)
    vector = sum(1 for x in code if x.name.startswith("v_")) - exps
    read, written = lds_traffic(code, simd, LDS_READS + ("ds_bpermute", "ds_swizzle"))
    all_waves, elements, at_once = groups * waves, rows * width, simd["units"] * simd["simds"]
    clocks = {"vector": all_waves * (vector * simd["vector"] + exps * simd["exp"]) / at_once, "lds": all_waves * (read / simd["lds_read"] + written / simd["lds"]) / at_once, "memory": elements * 4 / DEVICES[target][0]}
    slowest = max(clocks, key=clocks.get)
    return {"loop": len(code), "matrix": 0, "instructions": 1000 * all_waves * len(code) * simd["lanes"] / elements, "lds": 1000 * all_waves * (read + written) / elements, "width": sum(map(amd_code.bytes_of, loads)) / max(1, len(loads)),
            "registers": registers, "spills": spills, "waves": min(16 if simd["shared"] else 8, simd["registers"] // (-(-max(registers, 1) // 8) * 8)),
            "microseconds": clocks[slowest] / DEVICES[target][1], "unit_microseconds": max(clocks["vector"], clocks["lds"]) / DEVICES[target][1], "limit": slowest, "loops": any(x.target is not None and x.target <= x.address for x in code)}


def best_rows(path, target, launches, problem):
    code, meta = machine_code.disassemble(path, target), machine_code.metadata(path)
    found = [judged_rows(code[s], target, own["vgpr_count"], own["vgpr_spill_count"], launches[s] if isinstance(launches, dict) else launches, problem)
             for s, own in meta.items() if not isinstance(launches, dict) or s in launches]
    return max(found, key=lambda f: f["loop"], default=None)


def best_loop(path, target, launches):
    """`launches`: of each symbol, others are not looked at. One launch, or None, is that of all."""
    code, meta, found = machine_code.disassemble(path, target), machine_code.metadata(path), []
    for symbol, own in meta.items():
        if not isinstance(launches, dict) or symbol in launches:
            launch = launches[symbol] if isinstance(launches, dict) else launches
            found += [judged(loop, SIMDS[target], own["vgpr_count"], own["vgpr_spill_count"], launch) for loop in amd_code.innermost_loops(code[symbol])]
    return max(filter(None, found), key=lambda f: f["matrix"], default=None)


def of_kiln(kiln, name, target, folder):
    build = amd_code.PROBLEMS[name]
    graph = amd_code.graph.Graph(getattr(build, "dtype", "f16"), False)
    build(graph)
    amd_code.graph.save(graph, f"{folder}/p.onnx")
    for command in (["compile", f"{folder}/p.onnx", "-o", f"{folder}/p.kiln"], ["finalize", f"{folder}/p.kiln", "--target", target, "-o", f"{folder}/{target}", "--no-cache"]):
        subprocess.run([kiln, *command], check=True, capture_output=True)
    with open(f"{folder}/{target}/kernels.json") as f:
        kernels = json.load(f)["kernels"]
    size = lambda launch: (math.prod(launch["grid"]), math.prod(launch["block"]) // SIMDS[target]["lanes"])
    launches = lambda k: {x["symbol"]: size(x) for x in k["launches"] if not x["prepare"]}
    if PROBLEMS[name][0] in ROWS:
        return max((best_rows(f"{folder}/{target}/{k['object']}", target, launches(k), PROBLEMS[name]) for k in kernels), key=lambda f: f["loop"])
    found = [best_loop(f"{folder}/{target}/{k['object']}", target, launches(k)) for k in kernels]
    return max(filter(None, found), key=lambda f: f["matrix"], default=None)


def of_triton(problem, target, folder):
    import amd_triton
    found = []
    for tile, code, launch in amd_triton.objects(problem, target):
        with open(f"{folder}/triton.hsaco", "wb") as f:
            f.write(code)
        judgement = best_rows(f"{folder}/triton.hsaco", target, launch, problem) if problem[0] in ROWS else best_loop(f"{folder}/triton.hsaco", target, launch)
        if judgement:
            found.append(judgement | {"tile": tile})
    if problem[0] in ROWS:
        return min((f for f in found if not f["spills"]), key=lambda f: (f["microseconds"], f["unit_microseconds"]), default=None)
    return max((f for f in found if not f["spills"]), key=lambda f: f["peak"], default=None)


def product_text(m, n, k):
    return f"""func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
  %zero = arith.constant 0.0 : f32
  %sums = tensor.empty() : tensor<{m}x{n}xf32>
  %cleared = linalg.fill ins(%zero : f32) outs(%sums : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %product = linalg.matmul ins(%a, %b : tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) outs(%cleared : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %result = arith.truncf %product : tensor<{m}x{n}xf32> to tensor<{m}x{n}xf16>
  return %result : tensor<{m}x{n}xf16>
}}"""


def attention_text(heads, rows, depth):
    t = f"tensor<{heads}x{rows}x{depth}xf16>"
    maps = ", ".join(f"affine_map<(b,m,n,k,l)->({d})>" for d in ("b,m,k", "b,l,k", "b,l,n", "", "b,m,n"))
    return f"""func.func @main(%q: {t}, %k: {t}, %v: {t}) -> {t} {{
  %out = tensor.empty() : {t}
  %scale = arith.constant {depth ** -0.5} : f16
  %result = iree_linalg_ext.attention {{indexing_maps = [{maps}]}} ins(%q, %k, %v, %scale : {t}, {t}, {t}, f16) outs(%out : {t}) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> {t}
  return %result : {t}
}}"""


def of_iree(compiler, problem, target, folder):
    kind, *sizes = problem
    with open(f"{folder}/p.mlir", "w") as f:
        f.write(product_text(*sizes) if kind == "product" else attention_text(*sizes))
    done = subprocess.run([compiler, "--iree-hal-target-backends=rocm", f"--iree-rocm-target={target}", "--iree-opt-level=O3", f"--iree-hal-dump-executable-binaries-to={folder}/iree", f"{folder}/p.mlir", "-o",
                           os.devnull], capture_output=True, text=True)
    found = [best_loop(path, target, None) for path in glob.glob(f"{folder}/iree/*.hsaco")] if done.returncode == 0 else []
    return max(filter(None, found), key=lambda f: f["matrix"], default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--target", action="append", choices=SIMDS)
    parser.add_argument("--only", action="append")
    parser.add_argument("--iree")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    print(f"{'problem':24}{'target':9}{'by':8}{'loop':>6}{'matrix':>8}{'lds':>7}{'global':>8}{'width':>7}{'regs':>6}{'spills':>8}{'waves':>7}{'filled':>8}{'peak':>7}  limit")
    for name, problem in PROBLEMS.items():
        if options.only and not any(fnmatch.fnmatch(name, o) for o in options.only):
            continue
        for target in options.target or SIMDS:
            with tempfile.TemporaryDirectory() as folder:
                made = {"kiln": of_kiln(options.kiln, name, target, folder), "triton": of_triton(problem, target, folder)}
                if options.iree and problem[0] in ("product", "attention"):
                    made["iree"] = of_iree(options.iree, problem, target, folder)
            for by, x in made.items():
                rows.append({"problem": name, "target": target, "by": by, **(x or {})})
                text = "no matrix instructions, or not compiled"
                if x and problem[0] in ROWS:
                    text = f"{x['loop']:6} instructions, {x['instructions']:.0f} and {x['lds']:.0f} bytes of LDS for 1,000 elements, loads of {x['width']:.1f}, {x['registers']} registers, {x['spills']} spills, {x['waves']} waves, {x['microseconds']:.2f} us ({x['limit']}; vector and LDS {x['unit_microseconds']:.2f}){' loops' if x['loops'] else ''} {x.get('tile', '')}"
                elif x:
                    text = f"{x['loop']:6}{x['matrix']:8}{x['lds']:7.1f}{x['global']:8.1f}{x['width']:7.1f}{x['registers']:6}{x['spills']:8}{x['waves']:7}{'–' if x['filled'] is None else format(x['filled'], '.2f'):>8}{x['peak']:7.2f}  {x['limit']} {x.get('tile', '')}"
                print(f"{name:24}{target:9}{by:8}{text}", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
