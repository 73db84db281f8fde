#!/usr/bin/env python3
"""Matrix instructions of every model's AMD kernels that some lanes of a wave may be off for: there must be none.

    exec_masks.py KILN EXEC_MASKS MODELS_DIR [--targets gfx1100,gfx1201,...] [--only NAME ...] [--types f32,f16] [--jobs N] [--json FILE]

EXEC_MASKS is the program of exec_masks.cpp (build folder, test/long). For each target and type one line with the sums
over all models: kernels, those with matrix instructions, those with some under a narrowed EXEC; matrix instructions,
narrowed ones; instructions of all kernels and of those with matrix instructions; of the latter the most vector
registers, their sum, and spilled registers. Every kernel that has narrowed ones is named. Exits 1 if there is one.
"""
import argparse, glob, itertools, json, os, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

TARGETS = "gfx906 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1151 gfx1201".split()


def check(options, folder, name, kiln_file, target):
    """[(symbol, instructions, matrix, narrowed, registers, spills)] of one model."""
    out = os.path.join(folder, f"{name}_{target}")
    dims = ["--dim", "batch=3"] if "dynbatch" in name else []
    finalize = [options.kiln, "finalize", kiln_file, "--target", target, "-o", out, "--no-cache", "--quiet"]
    subprocess.run(finalize + dims, check=True)
    objects = sorted(glob.glob(os.path.join(out, "*.hsaco")))
    run = subprocess.run([options.exec_masks, *objects], stdout=subprocess.PIPE, text=True)
    if run.returncode > 1:
        sys.exit(f"{options.exec_masks} failed on {name} for {target}")
    subprocess.run(["rm", "-rf", out])
    lines = [line.split() for line in run.stdout.splitlines()]
    return [(line[1], *map(int, line[2:])) for line in lines]


def totals(kernels):
    """The columns of a line; `kernels` as check() gives them, with the model in front."""
    matrix = [k for k in kernels if k[3]]
    return {"kernels": len(kernels), "matrix_kernels": len(matrix), "narrowed_kernels": sum(k[4] > 0 for k in matrix),
            "matrix_instructions": sum(k[3] for k in matrix), "narrowed": sum(k[4] for k in matrix),
            "instructions": sum(k[2] for k in kernels), "in_matrix_kernels": sum(k[2] for k in matrix),
            "registers": max((k[5] for k in matrix), default=0), "registers_sum": sum(k[5] for k in matrix),
            "spills": sum(k[6] for k in matrix)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("exec_masks")
    parser.add_argument("models")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--types", default="f32,f16")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        files = {}
        for path in sorted(glob.glob(os.path.join(options.models, "*.onnx"))):
            base = os.path.basename(path)[:-5]
            if options.only and base not in options.only:
                continue
            for kind in options.types.split(","):
                files[base, kind] = os.path.join(folder, f"{base}_{kind}.kiln")
                flags = {"f32": [], "f16": ["--fp16"], "bf16": ["--bf16"]}[kind]
                flags += ["--dim", "batch=1:16"] if "dynbatch" in base else []
                subprocess.run([options.kiln, "compile", path, "-o", files[base, kind], "--quiet", *flags], check=True)
        if not files:
            sys.exit(f"no models in {options.models}")
        for target, kind in itertools.product(options.targets.split(","), options.types.split(",")):
            work = {base: pool.submit(check, options, folder, f"{base}_{kind}", path, target)
                    for (base, of), path in files.items() if of == kind}
            kernels = [(base, *kernel) for base, future in work.items() for kernel in future.result()]
            rows.append({"target": target, "type": kind, "models": len(work)} | totals(kernels))
            if len(rows) == 1:
                print(" ".join(f"{key:>{max(8, len(key))}}" for key in rows[0]))
            print(" ".join(f"{value:>{max(8, len(key))}}" for key, value in rows[-1].items()), flush=True)
            for base, symbol, _, count, found, *_ in filter(lambda k: k[4], kernels):
                print(f"    {base} {symbol}: {found} of {count}")
    if options.json:
        json.dump(rows, open(options.json, "w"), indent=1)
    narrowed = sum(row["narrowed_kernels"] for row in rows)
    print(f"{sum(row['matrix_kernels'] for row in rows) - narrowed} passed, {narrowed} failed, 0 skipped")
    sys.exit(narrowed > 0)


if __name__ == "__main__":
    main()
