#!/usr/bin/env python3
"""Looks for hazards in AMD code objects that an emulator of single instructions does not show (docs/hazards.md).

    hazards.py FOLDER...                 folders of `kiln finalize --target gfx... -o FOLDER`
    hazards.py --mutations N FOLDER...   removes one wait or barrier at a time, N times, and expects each to be found

Prints a line for each fault and counts at the end. Exits 1 if there is a fault, or if fewer than 95 % of the mutations
are found.
"""
import argparse
import json
import os
import random
import sys
import time

import checks
import machine_code

# What a thread and a workgroup can have (LLVM's AMDGPU user guide, AMDHSA kernel descriptor).
LIMITS = {"gfx90a": (512, 64), "gfx942": (512, 64), "gfx950": (512, 160), "gfx9-4-generic": (512, 64), "gfx908": (512, 64), "gfx1250": (1024, 320), "gfx1251": (1024, 320)}


def limits(processor):
    registers, kib = LIMITS.get(processor, (256, 64))
    return {"registers": registers, "lds_bytes": kib << 10}


def kernels_of(folder):
    """(path, launch, lines of the disassembly, metadata, processor) of each launch of a folder."""
    with open(os.path.join(folder, "kernels.json")) as f:
        kernels = [(os.path.join(folder, k["object"]), k["launches"]) for k in json.load(f)["kernels"]]
    notes = {path: machine_code.notes(path) for path, _ in kernels}
    found = {}
    for processor in {processor for processor, _ in notes.values()}:
        found |= machine_code.disassembled([path for path, (p, _) in notes.items() if p == processor], processor)
    for path, launches in kernels:
        for launch in launches:
            symbol = launch["symbol"]
            yield path, launch, found[path][symbol], notes[path][1][symbol], notes[path][0]


def threads_of(launch):
    x, y, z = launch["block"]
    return x * y * z


def is_mutable(x):
    return x.name.startswith(("s_waitcnt", "s_wait_")) and not x.name.startswith(("s_wait_alu", "s_waitcnt_depctr")) or x.name in ("s_barrier", "s_barrier_signal")


def without(code, i):
    """The code without one wait, or without a barrier (both halves of it on RDNA 4)."""
    gone = {i}
    if code[i].name == "s_barrier_signal":
        gone.add(next(j for j in range(i + 1, len(code)) if code[j].name == "s_barrier_wait"))
    kept = []
    for j, x in enumerate(code):
        text = "s_nop 0" if j in gone else x.text
        kept.append(machine_code.Instruction(x.address, text, x.target))
    return machine_code.link(kept)


def mutate(found, count, seed):
    chance = random.Random(seed)
    places = [(k, i) for k, (_, _, code, _, _) in enumerate(found) for i, x in enumerate(code) if is_mutable(x)]
    chosen = chance.sample(places, min(count, len(places)))
    caught = {}
    for k, i in sorted(chosen):
        path, launch, code, _, processor = found[k]
        name = "barrier" if "barrier" in code[i].name else "wait"
        faults = checks.check_kernel(without(code, i), processor, threads_of(launch))
        caught.setdefault(name, []).append(bool(faults))
        if not faults:
            print(f"not found: {processor} {os.path.basename(path)} {launch['symbol']}: without {code[i].text} at {code[i].address - code[0].address:#x}", flush=True)
    total = sum(map(len, caught.values()))
    good = sum(map(sum, caught.values()))
    print(f"{good} of {total} mutations found ({', '.join(f'{sum(c)} of {len(c)} {n}s' for n, c in sorted(caught.items()))})")
    return total > 0 and good >= 0.95 * total


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folders", nargs="+")
    p.add_argument("--mutations", type=int, default=0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--slow", type=float, default=20, help="name kernels that take longer than this, in seconds")
    options = p.parse_args()
    found = [(path, launch, machine_code.instructions(lines), meta, processor) for folder in options.folders for path, launch, lines, meta, processor in kernels_of(folder)]
    if options.mutations:
        return 0 if mutate(found, options.mutations, options.seed) else 1
    faults, instructions = 0, 0
    for path, launch, code, meta, processor in found:
        began = time.time()
        for fault in checks.check_kernel(code, processor, threads_of(launch), meta, limits(processor)):
            faults += 1
            print(f"{processor} {path} {launch['symbol']}: {fault}", flush=True)
        instructions += len(code)
        if (took := time.time() - began) > options.slow:
            print(f"{took:.0f} s for {launch['symbol']} ({len(code)} instructions)")
    print(f"{len(found)} kernels, {instructions} instructions, {faults} faults")
    return 1 if faults or not found else 0


if __name__ == "__main__":
    sys.exit(main())
