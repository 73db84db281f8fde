#!/usr/bin/env python3
"""Every model finalized for every GPU target: what the compiler reports, as one table.

    finalize_targets.py KILN MODELS_DIR [--targets gfx942,sm_90,...] [--only NAME ...] [--fp16-only|--f32-only] [--jobs N] [--ptxas PTXAS] [--json FILE]

For each model and target one line: kernels, launches, most vector registers, most LDS, spilled registers (in all
kernels, and in matrix kernels, where there must be none), private memory, launches with matrix instructions and how
many of those there are. With
--ptxas every PTX file is assembled, and registers and spills are what ptxas says. Exits 1 if a finalization fails or a
matrix kernel spills.
"""
import argparse, glob, json, os, re, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

import round_trip

PROCESSORS = {"sm_90": "sm_90a"}


def gpu_targets(kiln):
    document = json.loads(subprocess.run([kiln, "targets", "--json"], check=True, capture_output=True, text=True).stdout)
    return [t["name"] for t in document["targets"] if t["family"] != "cpu"]


def assemble(ptxas, folder, target, kernels):
    """ptxas over every PTX file: adds its registers and spills to the launches' statistics."""
    for kernel in kernels:
        text = subprocess.run([ptxas, "-v", f"-arch={PROCESSORS.get(target, target)}", os.path.join(folder, kernel["object"]), "-o", "/dev/null"], capture_output=True, text=True)
        if text.returncode:
            raise RuntimeError(f"ptxas {kernel['symbol']}: {text.stderr.strip().splitlines()[-1][:200]}")
        found = {}
        for symbol, stores, registers in re.findall(r"Compiling entry function '(\S+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", text.stderr, re.S):
            found[symbol] = (int(stores), int(registers))
        for launch in kernel["launches"]:
            stores, registers = found[launch["symbol"]]
            launch["statistics"].update(spills=stores // 4, registers=registers)


def finalize(options, folder, name, kiln_file, target):
    out = os.path.join(folder, f"{name}_{target}")
    dims = ["--dim", "batch=3"] if "dynbatch" in name else []
    run = subprocess.run([options.kiln, "finalize", kiln_file, "--target", target, "-o", out, "--no-cache", "--json", *dims], capture_output=True, text=True)
    row = {"model": name, "target": target}
    if run.returncode:
        return row | {"error": (run.stderr.strip().splitlines() or ["?"])[-1]}
    document = json.loads(run.stdout)
    try:
        if options.ptxas and target.startswith("sm_"):
            assemble(options.ptxas, out, target, document["kernels"])
        if options.round_trip and target.startswith("gfx"):
            for object_file in sorted({k["object"] for k in document["kernels"]}):
                if why := round_trip.difference(os.path.join(out, object_file), target):
                    raise RuntimeError(f"{object_file}: {why}")
    except RuntimeError as e:
        return row | {"error": str(e)}
    launches = [l for k in document["kernels"] for l in k["launches"]]
    statistics = [l["statistics"] for l in launches]
    matrix = [s for s in statistics if s["matrix_instructions"]]
    subprocess.run(["rm", "-rf", out])
    return row | {
        "kernels": len(document["kernels"]), "launches": len(launches), "ms": round(document["finalize_ms"]),
        "registers": max((s["registers"] for s in statistics), default=0),
        "lds": max((l["lds_bytes"] + l["statistics"]["static_lds_bytes"] for l in launches), default=0),
        "spills": sum(s["spills"] for s in statistics), "matrix_spills": sum(s["spills"] for s in matrix),
        "private": max((s["private_bytes"] for s in statistics), default=0),
        "matrix_launches": len(matrix), "matrix_instructions": sum(s["matrix_instructions"] for s in matrix)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("models")
    parser.add_argument("--targets", help="default: every GPU target of `kiln targets`")
    parser.add_argument("--round-trip", action="store_true", help="disassemble and assemble every AMD object and compare the bytes")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--fp16-only", action="store_true")
    parser.add_argument("--f32-only", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--ptxas")
    parser.add_argument("--json")
    options = parser.parse_args()
    targets = options.targets.split(",") if options.targets else gpu_targets(options.kiln)
    rows, failed = [], 0
    columns = ["kernels", "launches", "ms", "registers", "lds", "spills", "matrix_spills", "private", "matrix_launches", "matrix_instructions"]
    print(f"{'model':28} {'target':15} " + " ".join(f"{c:>{max(7, len(c))}}" for c in columns))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        work = []
        for path in sorted(glob.glob(os.path.join(options.models, "*.onnx"))):
            for half in ([] if options.f32_only else [True]) + ([] if options.fp16_only else [False]):
                base = os.path.basename(path)[:-5]
                if options.only and base not in options.only:
                    continue
                name = base + ("_fp16" if half else "")
                kiln_file = os.path.join(folder, name + ".kiln")
                subprocess.run([options.kiln, "compile", path, "-o", kiln_file, *(["--fp16"] if half else []), *(["--dim", "batch=1:16"] if "dynbatch" in base else [])], check=True, capture_output=True)
                work += [pool.submit(finalize, options, folder, name, kiln_file, t) for t in targets]
        for future in work:
            row = future.result()
            rows.append(row)
            bad = "error" in row or row["matrix_spills"]
            failed += bool(bad)
            text = "FAILED " + row["error"] if "error" in row else " ".join(f"{row[c]:>{max(7, len(c))}}" for c in columns)
            print(f"{row['model']:28} {row['target']:15} {text}", flush=True)
    if options.json:
        json.dump(rows, open(options.json, "w"), indent=1)
    print(f"{len(rows) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
