#!/usr/bin/env python3
"""Whole ONNX models as 64-bit Arm code under qemu, compared with onnxruntime.

    arm_models.py KILN [MODEL.onnx...] [--cases] [--target armv8-a] [--size INPUT:1x3x32x32] [--dim NAME=N] [--high INPUT:N]
        [--compiler COMMAND] [--runner COMMAND]

Needs Debian's qemu-user, and g++-aarch64-linux-gnu or the sysroot that scripts/aarch64.sh makes. Each row runs on an emulated processor that
has what the row needs and, where qemu knows such a processor, no more: an instruction that is missing there ends the program. Kiln's loader (runtime/object_loader.hpp) is built for Arm. A program
that is generated from kernels.json (docs/kernels_json.md) loads the objects of `kiln finalize` with it and calls the
launches in order.
The options for inputs are those of models.py. Exits 1 when a model differs, 77 when a tool is missing.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import cases_convolution, cases_elementwise, cases_matrix, cases_models, cases_movement, cases_reduction  # noqa: E401, F401 (they register)
import graph
import models

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

SYSROOT = os.path.join(os.path.abspath(SOURCES), "build", "aarch64-sysroot")

# The processor of qemu for each row.
PROCESSORS = {"armv8-a": "cortex-a53", "armv8.2-a": "neoverse-n1", "armv8.6-a": "max,sve=off", "armv8-sve256": "max,sve-max-vq=2", "armv8-sve512": "a64fx"}


def tools():
    """The command lines of a compiler and of qemu."""
    if os.path.exists(os.path.join(SYSROOT, "packages")):
        return f"clang++-22 --target=aarch64-linux-gnu --sysroot={SYSROOT} -fuse-ld=lld -Wno-unused-command-line-argument", f"qemu-aarch64 -L {SYSROOT}"
    return "aarch64-linux-gnu-g++", "qemu-aarch64 -L /usr/aarch64-linux-gnu"


# What Kiln's runtime loads kernels with, and what those files need.
RUNTIME = ["runtime/object_loader.cpp", "runtime/relocation.cpp", "runtime/elf_object.cpp", "runtime/host_symbols.cpp", "ir/element_type.cpp"]

PROGRAM = """#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <vector>
#include "runtime/host_symbols.hpp"
#include "runtime/object_loader.hpp"

using kernel = void (*)(void* const*, std::int64_t, std::int64_t);

static void* buffer(std::size_t bytes, const char* file, int fill) {
  void* p = aligned_alloc(64, (bytes + 127) / 64 * 64);
  std::memset(p, fill, bytes);
  if (file && !std::ifstream(file, std::ios::binary).read(static_cast<char*>(p), static_cast<std::streamsize>(bytes))) std::exit(1);
  return p;
}
static void save(const char* file, const void* p, std::size_t bytes) {
  if (!std::ofstream(file, std::ios::binary).write(static_cast<const char*>(p), static_cast<std::streamsize>(bytes))) std::exit(1);
}
static std::vector<char> contents(const char* file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
"""


def write_program(folder, document, inputs):
    """The source of the program."""
    program, kernels = document["program"], document["kernels"]
    lines = ["  std::vector<std::vector<char>> bytes;"]
    lines += [f"  bytes.push_back(contents(\"{folder}/objects/{k['object']}\"));" for k in kernels]
    lines += ["  std::vector<std::span<const std::byte>> objects;", "  for (const auto& b : bytes) objects.push_back(std::as_bytes(std::span(b)));",
              "  const kiln::code_image image(objects, kiln::find_host_symbol);",
              "  auto run = [&](std::size_t object, const char* symbol, std::vector<void*> buffers, std::int64_t grid) {",
              "    reinterpret_cast<kernel>(const_cast<void*>(image.find(object, symbol)))(buffers.data(), 0, grid);", "  };"]
    for v in program["values"]:
        file = "0"
        if v["from"] == "empty":
            lines.append(f"  void* v{v['id']} = nullptr;")
            continue
        if v["from"] == "alias":
            lines.append(f"  void* v{v['id']} = v{v['of']};")
            continue
        if v["from"] in ("input", "constant"):
            data = inputs[v["name"]] if v["from"] == "input" else np.load(f"{folder}/objects/{v['file']}")
            file = f'"{folder}/value{v["id"]}"'
            np.ascontiguousarray(data).tofile(file.strip('"'))
        lines.append(f"  void* v{v['id']} = buffer({v['bytes']}, {file}, 0x7f);")
    for step in program["steps"]:
        if "kernel" not in step:
            raise RuntimeError(f"'{step['operation']}' has no kernel")
        number, kernel = step["kernel"], kernels[step["kernel"]]
        lines.append("  {")
        for i, b in enumerate(kernel["scratch"]):
            lines.append(f"    void* s{i} = buffer({b['bytes']}, 0, {0 if b['zeroed'] else 0x7f});")
        for launch in sorted(kernel["launches"], key=lambda l: not l["prepare"]):
            pointers = []
            for a in launch["arguments"]:
                if a["kind"] == "sizes":
                    lines.append(f"    static std::int64_t z{len(lines)}[] = {{{', '.join(map(str, a['values']))}}};")
                    pointers.append(f"z{len(lines) - 1}")
                elif a["kind"] == "scratch":
                    pointers.append(f"s{a['index']}")
                else:
                    pointers.append(f"v{step[a['kind'] + 's'][a['index']]}")
            grid = int(np.prod(launch["grid"]))
            if grid:
                lines.append(f"    run({number}, \"{launch['symbol']}\", {{{', '.join(pointers)}}}, {grid});")
        lines.append("  }")
    bytes_of = {v["id"]: v["bytes"] for v in program["values"]}
    for number, o in enumerate(program["outputs"]):
        lines.append(f"  save(\"{folder}/output{number}\", v{o['value']}, {bytes_of[o['value']]});")
    with open(f"{folder}/main.cpp", "w") as f:
        f.write(PROGRAM + "\nint main() try {\n" + "\n".join(lines) + "\n} catch (const std::exception& e) {\n  std::fprintf(stderr, \"%s\\n\", e.what());\n  return 1;\n}\n")


def build_runtime(options, folder):
    """Objects of the loader for Arm."""
    made = []
    for source in RUNTIME:
        made.append(f"{folder}/{os.path.basename(source)}.o")
        subprocess.run([*options.compiler.split(), "-std=c++20", "-O1", f"-I{SOURCES}", "-c", f"{SOURCES}/{source}", "-o", made[-1]], check=True)
    return made


def run(options, path, target, runtime):
    began, row = time.time(), {"model": os.path.basename(path)[:-5], "target": target, "ok": False}
    with tempfile.TemporaryDirectory(prefix="kiln_arm_") as folder:
        try:
            prepared = models.prepare(options, path, target, folder)
            write_program(folder, prepared.document, prepared.inputs)
            subprocess.run([*options.compiler.split(), "-std=c++20", f"-I{SOURCES}", f"{folder}/main.cpp", *runtime, "-o", f"{folder}/main"], check=True, capture_output=True)
            done = subprocess.run([*options.runner.split(), "-cpu", PROCESSORS.get(target, "max"), f"{folder}/main"], capture_output=True, text=True, timeout=options.timeout)
            if done.returncode:
                raise RuntimeError(f"exit code {done.returncode} {done.stderr.strip()[-200:]}")
            row["error_norm"] = max(prepared.error(o["name"], open(f"{folder}/output{n}", "rb").read(), options.tolerance or 1e-4) for n, o in enumerate(prepared.document["program"]["outputs"]))
            row["ok"], row["kernels"] = True, len(prepared.document["kernels"])
        except subprocess.CalledProcessError as e:
            row["error"] = f"{e.cmd[0]}: {(e.stderr or b'').decode()[:300]}"
        except Exception as e:  # what a model does not allow is a row too
            row["error"] = f"{type(e).__name__}: {e}"[:400]
    row["seconds"] = round(time.time() - began, 1)
    return row


def main():
    parser = models.common_parser(__doc__, "*", 600)
    parser.add_argument("--cases", action="store_true", help="also the f32 and integer cases of the short form of emulate.py, and its models")
    parser.add_argument("--compiler", default=tools()[0])
    parser.add_argument("--runner", default=tools()[1])
    options = parser.parse_args()
    options.fp16, options.kiln = False, os.path.abspath(options.kiln)
    for tool in (options.compiler.split()[0], options.runner.split()[0]):
        if not shutil.which(tool):
            print(f"skipped: no {tool}")
            return 77
    rows = []
    with tempfile.TemporaryDirectory(prefix="kiln_arm_") as folder:
        runtime = build_runtime(options, folder)
        short = {c.build for c in graph.CASES if c.short or c.model}
        for case in graph.CASES if options.cases else []:
            if case.dtype == "f32" and case.build in short:
                options.models.append(f"{folder}/{case.name}.onnx")
                graph.save(graph.build(case)[0], options.models[-1])
        for target in options.target or PROCESSORS:
            for path in options.models:
                row = run(options, path, target, runtime)
                rows.append(row)
                models.print_row(row, row["ok"] and f"error {row['error_norm']:.1e}, {row['kernels']} kernels")
    return models.finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
