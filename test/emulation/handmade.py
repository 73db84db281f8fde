"""Hand-made AMD kernels with their kernels.json: what the harness must accept, and the same with one mistake that it
must catch.

The right kernel reverses 256 floats through LDS; the matrix kernel multiplies two 16x16 f16 matrices with the target's
matrix instruction, in the lane maps of LAYOUTS.md. Each mistake is a replacement in their text.
"""
import json
import os
import shutil
import subprocess

import numpy as np

LLC = next(filter(None, map(shutil.which, ("llc-22", "llc"))), None)
LLD = next(filter(None, map(shutil.which, ("ld.lld-22", "ld.lld"))), None)

HEAD = """target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
"""

REVERSE = HEAD + """@tile = internal addrspace(3) global [256 x float] poison
define amdgpu_kernel void @reverse(ptr addrspace(1) %in, ptr addrspace(1) %out, ptr addrspace(1) %count) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %from = getelementptr float, ptr addrspace(1) %in, i32 %t
  %x = load float, ptr addrspace(1) %from
  %mine = getelementptr float, ptr addrspace(3) @tile, i32 %t
  store float %x, ptr addrspace(3) %mine
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %o = sub i32 255, %t
  %theirs = getelementptr float, ptr addrspace(3) @tile, i32 %o
  %y = load float, ptr addrspace(3) %theirs
  %to = getelementptr float, ptr addrspace(1) %out, i32 %t
  store float %y, ptr addrspace(1) %to
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" convergent }
"""

# (name, replaced, replacement, what the failure says)
MISTAKES = [
    ("no barrier", "  call void @llvm.amdgcn.s.barrier()\n", "", "result|order"),
    ("reads out of bounds", "getelementptr float, ptr addrspace(1) %in, i32 %t", "getelementptr float, ptr addrspace(1) %in, i64 256", "SIGSEGV"),
    ("writes out of bounds", "getelementptr float, ptr addrspace(1) %out, i32 %t", "getelementptr float, ptr addrspace(1) %out, i64 256", "SIGSEGV"),
    ("writes its input", "  ret void", "  store float 1.0, ptr addrspace(1) %from\n  ret void", "input or constant"),
    ("leaves an element", "%to = getelementptr float, ptr addrspace(1) %out, i32 %t", "%c = call i32 @llvm.umin.i32(i32 %t, i32 254)\n  %to = getelementptr float, ptr addrspace(1) %out, i32 %c", "result"),
    ("leaves the counter", "  ret void", "  store i32 1, ptr addrspace(1) %count\n  ret void", "left zero"),
    ("other element", "sub i32 255, %t", "xor i32 254, %t", "result"),
]

# target: vector of A and B, its length, intrinsic and its mangling, k of element e, row of register r; lane l
MATRIX = {
    "gfx942": dict(a=4, d=4, call="mfma.f32.16x16x16f16", more=", i32 0, i32 0, i32 0", wave=64, k="4 * (l // 16) + e", row="4 * (l // 16) + r"),
    "gfx1100": dict(a=16, d=8, call="wmma.f32.16x16x16.f16.v8f32.v16f16", more="", wave=32, k="e", row="2 * r + l // 16"),
    "gfx1201": dict(a=8, d=8, call="wmma.f32.16x16x16.f16.v8f32.v8f16", more="", wave=32, k="8 * (e // 4) + 4 * (l // 16) + e % 4", row="8 * (l // 16) + r"),
}


def matrix_text(target, row=None):
    """IR that loads the lanes' elements one by one by the maps, multiplies once and stores by them."""
    m = MATRIX[target]
    lines, va, vd = [], f"<{m['a']} x half>", f"<{m['d']} x float>"

    def offset(expression, name, **known):
        """%name = expression over %l, //, %, * and constants, through Python's own parser."""
        import ast

        count = [0]

        def emit(node):
            if isinstance(node, ast.Constant):
                return str(node.value)
            if isinstance(node, ast.Name):
                return str(known[node.id]) if node.id in known else "%l"
            kind = {ast.Add: "add", ast.Mult: "mul", ast.FloorDiv: "udiv", ast.Mod: "urem"}[type(node.op)]
            left, right = emit(node.left), emit(node.right)
            count[0] += 1
            lines.append(f"  %{name}_{count[0]} = {kind} i32 {left}, {right}")
            return f"%{name}_{count[0]}"

        return emit(ast.parse(expression, mode="eval").body)

    for matrix in "ab":
        lines.append(f"  %{matrix}0 = insertelement {va} poison, half 0.0, i32 0")
        for e in range(m["a"]):
            at = offset(f"(l % 16) * 16 + ({m['k']})", f"o{matrix}{e}", e=e)
            lines.append(f"  %p{matrix}{e} = getelementptr half, ptr addrspace(1) %{matrix}, i32 {at}\n  %x{matrix}{e} = load half, ptr addrspace(1) %p{matrix}{e}")
            lines.append(f"  %{matrix}{e + 1} = insertelement {va} %{matrix}{e}, half %x{matrix}{e}, i32 {e}")
    declared = f"declare {vd} @llvm.amdgcn.{m['call']}({va}, {va}, {vd}{', i32, i32, i32' if m['more'] else ''})\n"
    lines.append(f"  %d = call {vd} @llvm.amdgcn.{m['call']}({va} %a{m['a']}, {va} %b{m['a']}, {vd} zeroinitializer{m['more']})")
    for r in range(m["d"]):
        at = offset(f"({row or m['row']}) * 16 + l % 16", f"od{r}", r=r)
        lines.append(f"  %y{r} = extractelement {vd} %d, i32 {r}\n  %q{r} = getelementptr float, ptr addrspace(1) %out, i32 {at}\n  store float %y{r}, ptr addrspace(1) %q{r}")
    return (HEAD + declared + "define amdgpu_kernel void @product(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out) #0 {\n  %l = call i32 @llvm.amdgcn.workitem.id.x()\n"
            + "\n".join(lines) + f"\n  ret void\n}}\nattributes #0 = {{ \"amdgpu-flat-work-group-size\"=\"{m['wave']},{m['wave']}\" convergent }}\n")


def write(folder, target, text, symbol, block, arguments, values, scratch=()):
    """A folder as `kiln finalize` would write it, with one kernel and one step. `values` are (type, dims, input name or
    None for the output)."""
    os.makedirs(folder)
    with open(f"{folder}/k.ll", "w") as f:
        f.write(text)
    subprocess.run([LLC, f"-mcpu={target}", "-filetype=obj", f"{folder}/k.ll", "-o", f"{folder}/k.o"], check=True)
    subprocess.run([LLD, "-shared", f"{folder}/k.o", "-o", f"{folder}/k.hsaco"], check=True)
    size = lambda v: int(np.prod(v[1])) * {"f16": 2, "f32": 4}[v[0]]
    entries = [{"id": i, "type": v[0], "dims": v[1], "bytes": size(v), **({"from": "input", "name": v[2]} if v[2] else {"from": "step", "step": 0})} for i, v in enumerate(values)]
    inputs, outputs = [e["id"] for e in entries if e["from"] == "input"], [e["id"] for e in entries if e["from"] == "step"]
    bytes_of = {"input": [entries[i]["bytes"] for i in inputs], "output": [entries[i]["bytes"] for i in outputs], "scratch": [s["bytes"] for s in scratch]}
    launch = {"symbol": symbol, "grid": [1, 1, 1], "block": [block, 1, 1], "lds_bytes": 0, "prepare": False,
              "arguments": [{"kind": k, "index": i, "size": bytes_of[k][i], "offset": 8 * n} for n, (k, i) in enumerate(arguments)]}
    document = {"target": target, "kernels": [{"symbol": symbol, "object": "k.hsaco", "scratch": list(scratch), "launches": [launch]}],
                "program": {"values": entries, "steps": [{"kernel": 0, "inputs": inputs, "outputs": outputs}], "outputs": [{"name": "y", "value": outputs[0]}]}}
    with open(f"{folder}/kernels.json", "w") as f:
        json.dump(document, f)
