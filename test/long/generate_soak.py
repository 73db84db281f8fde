#!/usr/bin/env python3
"""Memory and time of `kiln generate` over many ids of one prompt.

    generate_soak.py KILN [--ids 10000] [--made 4,192,4,4000]

Prints for every tenth of the ids: the mean time of an id, resident memory, open descriptors. Exits 1 if memory grows
although the room of the caches does not, or if descriptors are left open.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import generation

PROMPT = 33


def room(ids):
    rows = 256
    while rows < ids + PROMPT:
        rows *= 2
    return rows


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kiln"), arguments.add_argument("--ids", type=int, default=10000)
    arguments.add_argument("--made", default="4,192,4,4000", help="layers, width, heads, vocabulary")
    a = arguments.parse_args()
    marks = []
    with tempfile.TemporaryDirectory() as work:
        model = os.path.join(work, "model.onnx")
        generation.made(model, *map(int, a.made.split(",")), a.ids + PROMPT)
        subprocess.run([a.kiln, "compile", model, "-o", model + ".kiln", "--quiet"], check=True)
        np.save(os.path.join(work, "ids.npy"), np.arange(1, PROMPT + 1))
        command = [a.kiln, "generate", model + ".kiln", "--prompt-ids", os.path.join(work, "ids.npy"), "--max-new-tokens", str(a.ids), "--ignore-stop-ids", "--cache", os.path.join(work, "cache")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            last = time.perf_counter()
            for count, _ in enumerate(process.stdout, 1):
                if count % (a.ids // 10):
                    continue
                now = time.perf_counter()
                with open(f"/proc/{process.pid}/statm") as file:
                    resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
                descriptors = len(os.listdir(f"/proc/{process.pid}/fd"))
                marks.append((room(count), resident, descriptors))
                print(f"{count:7} ids, {(now - last) / (a.ids // 10) * 1e3:.3f} ms each, {resident} MiB, {descriptors} descriptors", flush=True)
                last = now
    grown = [m for before, m in zip(marks[1:], marks[2:]) if m[0] == before[0] and m[1] > before[1] * 1.05]
    left = marks[-1][2] > marks[0][2] if marks else True
    print("memory grew within one room" if grown else "memory is flat within each room")
    return 1 if grown or left or len(marks) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
