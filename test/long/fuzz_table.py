#!/usr/bin/env python3
"""The rows of a fuzzing run: executions, inputs that were kept, and how many of the reader's lines they reach.

    fuzz_table.py PROGRAMS FOLDER [TARGET...]

PROGRAMS is the folder of the fuzz targets, built with coverage; FOLDER is that of fuzz.sh: TARGET*.log, the kept inputs in
TARGET/, profiles as TARGET.profraw. Exit 1 if a reader has less than 85 %."""
import functools
import glob
import json
import os
import re
import subprocess
import sys

# The files that read what the target is named after. What only writes, and what the reader hands its result to, is not counted.
READERS = {
    "archive": ["jit/cache/archive.cpp"],
    "cache_entry": ["jit/cache/entry.cpp"],
    "command_line": ["aot/onnx/dim_spec.cpp", "aot/onnx/sequence_spec.cpp", "jit/remote/redis_address.cpp", "jit/remote/http_address.cpp", "tools/model_list.cpp"],
    "container": ["ir/container/format.cpp", "ir/container/sections.cpp", "ir/container/blobs.cpp", "ir/container/container.cpp", "ir/container/compression.cpp"],
    "dim_text": ["ir/dim_text.cpp"],
    "elf_object": ["runtime/object_loader.cpp"],
    "farm_job": ["jit/remote/farm_job.cpp"],
    "generation_configuration": ["tools/generation_configuration.cpp"],
    "kernel_bytecode": ["mlir_bridge/kernel/bytecode_check.cpp", "mlir_bridge/kernel/bytecode_names.cpp", "mlir_bridge/kernel/bytecode_tables.cpp"],
    "manifest": ["ir/json.cpp", "ir/container/manifest.cpp"],
    "native_kernel": ["ir/native_kernel.cpp", "ir/row_kernel.cpp"],
    "npy": ["tools/npy.cpp"],
    "onnx": ["aot/onnx/"],
    "onnx_tensor": ["aot/onnx/read_tensor.cpp", "aot/onnx/tensors.cpp"],
    "program": ["ir/container/program_reader.cpp"],
    "redis_reply": ["jit/remote/reply_reader.cpp"],
    "spirv": ["spirv/reader/"],  # by fuzz_spirv.sh, because it needs LLVM
    "trust_list": ["ir/trust/trust_list.cpp", "ir/trust/signed_file.cpp", "ir/trust/trusted_keys.cpp"],
    "tuning_hints": ["jit/tuning/tuning_hints.cpp"],
    "tuning_record": ["jit/tuning/tuning_record.cpp"],
}
# Functions of these files that read nothing: writers, what works with the result, and what reads further files of this machine.
NO_READER = re.compile(
    r"::(write\w*|written|encode\w*|pack|packed|put\w*|serialize|text_of|texts_of|to_text|\w*_text|describe\w*|make_\w+|needed_version|require_writable|check_writable|file_name|as_type|to_carrier|"
    r"from_carrier|with_type|packed_integer|carrier|is_open|at_sizes|serves|count_of|value_of|hash|id|identify|session_of|merge|newest_sessions|rank|has_passed|require_signed|require_successor|"
    r"root_signature|count_signers|signature_file_of|signed_statement|sign\w*|first_line|trusts|complaint|alignment|compress\w*|add_\w+|replace_extras|pack_extras|check_readable|check_total|as_bytes_vector|why_not|read_signature_of|trusted_keys::read)$|archive_writer|output_file")


def coverage(program, profile, files):
    """(lines reached, lines) of the functions that read, over these files."""
    merged = profile.removesuffix(".profraw") + ".profdata"
    subprocess.run(["llvm-profdata-22", "merge", "-sparse", profile, "-o", merged], check=True)
    report = json.loads(subprocess.run(["llvm-cov-22", "export", program, "-instr-profile", merged], check=True, capture_output=True).stdout)["data"][0]
    names = [f["filename"] for f in report["files"] if any(part in f["filename"] for part in files) and f["filename"].endswith(".cpp")]
    left_out = {n: set() for n in names}
    for function in report["functions"]:
        if function["filenames"][0] in left_out and NO_READER.search(base_name(function["name"])):
            for region in function["regions"]:
                left_out[function["filenames"][0]].update(range(region[0], region[2] + 1))
    reached = lines = 0
    for f in report["files"]:
        if f["filename"] in left_out:
            for line, counts in line_counts(f["segments"]).items():
                if line not in left_out[f["filename"]]:
                    lines, reached = lines + 1, reached + (counts > 0)
    return reached, lines


@functools.cache
def base_name(mangled):
    """The function's own name: without its scope, its parameters, and the file before a ':' that a local one has."""
    text = subprocess.run(["llvm-cxxfilt-22", mangled.rsplit(":", 1)[-1].rsplit(";", 1)[-1]], capture_output=True, text=True).stdout.strip()
    text = re.sub(r"\(anonymous namespace\)", "anonymous", text)
    text = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", text))
    return text.split("(")[0].split()[-1].split("[abi:")[0] if text else mangled


def line_counts(segments):
    """Line → the largest count of a region that begins or goes on there, as llvm-cov's own line view has it."""
    lines, current = {}, None
    for position, segment in enumerate(segments):
        line, _, count, has_count, is_entry, gap = (*segment, False)[:6]
        if current is not None:
            for between in range(current[0] + 1, line):
                lines[between] = max(lines.get(between, 0), current[1])
        if has_count and not gap:
            if is_entry or line not in lines:
                lines[line] = max(lines.get(line, 0), count)
            current = (line, count)
        else:
            current = None
    return lines


def main():
    programs, folder, targets = sys.argv[1], sys.argv[2], sys.argv[3:] or sorted(READERS.keys() - {"spirv"})
    total, low = 0, []
    print("| target | executions | inputs kept | lines of the reader |\n|---|---|---|---|")
    for target in targets:
        executions = 0
        for log in glob.glob(os.path.join(folder, f"{target}.*log")):
            with open(log, errors="replace") as file:
                executions += sum(int(n) for n in re.findall(r"number_of_executed_units: +(\d+)", file.read()))
        total += executions
        kept = len(os.listdir(os.path.join(folder, target))) if os.path.isdir(os.path.join(folder, target)) else 0
        profile, share = os.path.join(folder, target + ".profraw"), ""
        if os.path.exists(profile):
            reached, lines = coverage(os.path.join(programs, "fuzz_" + target), profile, READERS[target])
            share = f"{reached:,} of {lines:,}: {100 * reached / lines:.1f} %"
            if reached < 0.85 * lines:
                low.append(target)
        print(f"| {target} | {executions:,} | {kept:,} | {share} |", flush=True)
    print(f"| all | {total:,} | | |")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
