#!/usr/bin/env python3
"""The hazard checker (test/hazards) over every kernel of every model for every AMD target.

    hazards_of_models.py KILN FOLDER... [--targets gfx942,...] [--only NAME ...] [--fp16-only|--f32-only] [--round-trip] [--known FOLDER] [--json FILE]

FOLDER has NAME.onnx or NAME.kiln. A line for each model and target: kernels, instructions, faults. Code that was looked at before for the same
processor, or for another of the same generation and limits, is not looked at again: "seen before" counts it. With --round-trip every object is also
disassembled and assembled again. With --json, rows that FILE has already are not made again, unless the finalization failed. Exits 1 if there is a fault or a finalization that failed.
"""
import argparse
import glob
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import round_trip

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hazards"))
import checks
import hazards
import machine_code


def amd_targets(kiln):
    document = json.loads(subprocess.run([kiln, "targets", "--json"], check=True, capture_output=True, text=True).stdout)
    return [t["name"] for t in document["targets"] if t["name"].startswith("gfx")]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["?"])[-1][:300])


def identity(lines, launch, processor):
    """Two kernels with the same one get the same answer from the checker."""
    begin = lines[0][0]
    text = "\n".join(f"{address - begin:x} {text} {to and to - begin}" for address, text, to in lines)
    rules = (checks.generation(processor), hazards.limits(processor), hazards.threads_of(launch))
    return hashlib.sha256(f"{rules}\n{text}".encode()).hexdigest()


class Known:
    """The faults of kernels that were looked at, by identity. With a folder, several processes share them."""

    def __init__(self, folder=None):
        self.folder, self.found = folder, {}

    def get(self, key):
        if key not in self.found and self.folder and os.path.exists(path := os.path.join(self.folder, key)):
            with open(path) as f:
                self.found[key] = json.load(f)
        return self.found.get(key)

    def put(self, key, faults):
        self.found[key] = faults
        if self.folder:
            with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False) as f:
                json.dump(faults, f)
            os.replace(f.name, os.path.join(self.folder, key))


def check(folder, known):
    """(kernels, instructions, how many of the kernels were seen before, faults) of the objects in a folder."""
    kernels, instructions, before, faults = 0, 0, 0, []
    for path, launch, lines, meta, processor in hazards.kernels_of(folder):
        kernels, instructions = kernels + 1, instructions + len(lines)
        key = identity(lines, launch, processor)
        found = known.get(key)
        if found is None:
            found = checks.check_kernel(machine_code.instructions(lines), processor, hazards.threads_of(launch), None, None)
            known.put(key, found)
        else:
            before += 1
        faults += [f"{launch['symbol']}: {f}" for f in found + checks.resource_faults([text for _, text, _ in lines], meta, hazards.limits(processor))]
    return kernels, instructions, before, faults


def row_of(options, path, half, target, known, folder):
    name = os.path.splitext(os.path.basename(path))[0]
    row = {"model": name, "type": "f16" if half else "f32", "target": target}
    bounds = ["--dim", "batch=1:16"] if "dynbatch" in name else []
    size = ["--dim", "batch=3"] if "dynbatch" in name else []
    try:
        compiled = f"{folder}/{name}_{row['type']}.kiln"
        if path.endswith(".kiln"):
            compiled = path
        elif not os.path.exists(compiled):
            run(options.kiln, "compile", path, "-o", compiled, *(["--fp16"] if half else []), *bounds)
        with tempfile.TemporaryDirectory(dir=folder) as objects:
            run(options.kiln, "finalize", compiled, "--target", target, "-o", objects, "--no-cache", "--in-process", *size)
            if options.round_trip:
                for path, why in round_trip.differences(sorted(glob.glob(f"{objects}/*.hsaco")), target).items():
                    raise RuntimeError(f"{os.path.basename(path)}: {why}")
            kernels, instructions, before, faults = check(objects, known)
            row |= {"kernels": kernels, "instructions": instructions, "seen_before": before, "faults": faults}
    except RuntimeError as e:
        row["error"] = str(e)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--targets", help="default: every AMD target of `kiln targets`")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--fp16-only", action="store_true")
    parser.add_argument("--f32-only", action="store_true")
    parser.add_argument("--round-trip", action="store_true")
    parser.add_argument("--known", help="folder in which several of these processes tell each other which kernels they have looked at")
    parser.add_argument("--json")
    options = parser.parse_args()
    targets = options.targets.split(",") if options.targets else amd_targets(options.kiln)
    rows, known = [], Known(options.known)
    if options.json and os.path.exists(options.json):
        with open(options.json) as f:
            rows = [r for r in json.load(f) if "error" not in r]
    done = {(r["model"], r["type"], r["target"]) for r in rows}
    models = sorted((p for d in options.folders for p in glob.glob(f"{d}/*.onnx") + glob.glob(f"{d}/*.kiln")), key=os.path.getsize)
    for path in models:
        name = os.path.splitext(os.path.basename(path))[0]
        if options.only and name not in options.only:
            continue
        for half in ([] if options.f32_only else [True]) + ([] if options.fp16_only else [False]):
            with tempfile.TemporaryDirectory() as folder:
                for target in targets:
                    if (name, "f16" if half else "f32", target) in done:
                        continue
                    row = row_of(options, path, half, target, known, folder)
                    rows.append(row)
                    text = row.get("error") or f"{row['kernels']} kernels ({row['seen_before']} seen before), {row['instructions']} instructions, {len(row['faults'])} faults"
                    print(f"{name:28} {row['type']} {target:15} {text}", *row.get("faults", []), sep="\n  " if row.get("faults") else " ", flush=True)
                    if options.json:
                        with open(options.json, "w") as f:
                            json.dump(rows, f, indent=1)
    good = [r for r in rows if "error" not in r]
    faults = sum(len(r["faults"]) for r in good)
    print(f"{len(good)} of {len(rows)} finalized; {sum(r['kernels'] for r in good)} kernels, {sum(r['instructions'] for r in good)} instructions, {faults} faults")
    return 1 if faults or len(good) < len(rows) or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
