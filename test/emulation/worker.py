"""The emulator's process: reads jobs as lines of JSON on standard input, answers each with one line.

    KILN_AMD_MACHINE=LIBRARY worker.py

A job is {folder, inputs: {name: .npy}, outputs: folder, orders: [...]}. Lines with "at" say what is running, so that
the process that waits knows where this one died: an out-of-bounds access ends it with SIGSEGV, by design. One process
runs many jobs.
"""
import json
import os
import sys
import time

import numpy as np

import amd_machine


def answer(channel, message):
    channel.write(json.dumps(message) + "\n")
    channel.flush()


def run_job(job, runner, channel):
    from program import Program

    began = time.time()
    program = Program(job["folder"], runner, lambda at: answer(channel, {"at": at}))
    inputs = {name: np.load(path) for name, path in job["inputs"].items()}
    orders = job["orders"] if program.has_order() else job["orders"][:1]
    results = []
    for order in orders:
        results.append(program.run(inputs, order))
    files = {}
    for name, data in results[0].items():
        files[name] = os.path.join(job["outputs"], f"{len(files)}.bin")
        with open(files[name], "wb") as f:
            f.write(data)
    differing = [o for o, r in zip(orders, results) if r != results[0]]
    return {"done": True, "outputs": files, "orders": orders, "differing": differing, "resources": program.resources(),
            "steps": len(program.program["steps"]), "instructions": program.instructions, "seconds": round(time.time() - began, 2)}


def main():
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the emulator prints is not an answer
    amd_machine.load()
    for line in sys.stdin:
        try:
            answer(channel, run_job(json.loads(line), amd_machine, channel))
        except Exception as e:
            answer(channel, {"done": False, "error": f"{type(e).__name__}: {e}"})


if __name__ == "__main__":
    main()
