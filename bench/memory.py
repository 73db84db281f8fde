#!/usr/bin/env python3
"""Memory of Kiln, onnxruntime, OpenVINO and torch on the processor, as a table: what runs need, and what stays resident.

    PYTHONPATH=build/release/python bench/memory.py KILN MODELS_DIR [--only NAME ...] [--threads 1] [--json FILE]

KILN compiles each model; the Python package of Kiln runs it with a warm cache. Each system has a process of its own, which
imports its library, loads the model and runs it five times. All figures are in MB; pages of shared libraries do not count:

  arena     Kiln: `arena_bytes`, the plan of the values between kernels, with scratch memory
  runs      resident memory that the five runs add at their peak. Kiln: anonymous memory at their end, since the first run
            also maps its packed weights. onnxruntime's Python package does not give the statistics of its arena; here it has
            its default settings (kNextPowerOfTwo, memory patterns), but weights outside of it: room that they leave when they
            are packed would hide what runs need
  resident  after the runs, over what the imported library needs: weights, packed weights, values; onnxruntime with default
            settings. "of it mapped" are pages of the model's and the cache's files, which processes share and the system may
            drop

torch runs the network of its libraries, or the graph itself as calls of torch (gpu/network_peers.py). A system that is not
installed or cannot run a model has "-".
"""
import argparse
import ctypes
import gc
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEMS = {"kiln": "Kiln", "onnxruntime": "onnxruntime", "openvino": "OpenVINO", "torch": "torch"}  # package → its name
RUNS = 5


def resident():
    """MB in memory: `anonymous`, `files` (mapped ones), `libraries`, and `all` of them."""
    found = {"anonymous": 0.0, "files": 0.0, "libraries": 0.0}
    with open("/proc/self/smaps", encoding="utf-8") as f:
        for line in f:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                path = line.split(None, 5)[5].strip() if len(line.split(None, 5)) > 5 else ""
                kind = "libraries" if re.search(r"\.so\b|/python", path) else "files" if path.startswith("/") else "anonymous"
            elif line.startswith("Rss:"):
                found[kind] += int(line.split()[1]) * 1024 / 1e6
    return found | {"all": sum(found.values())}


def peak():
    """The most that was resident since peak_again(), in MB."""
    with open("/proc/self/status", encoding="ascii") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) * 1024 / 1e6


def peak_again():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def import_kiln(job, feeds):
    """Imports the library; gives what loads the model, which gives what runs it once, and Kiln's session."""
    import kiln

    def load():
        session = kiln.open(job["plan"]).session(threads=job["threads"], cache=job["cache"])
        return (lambda: session.run(feeds)), session
    return load


def import_torch(job, feeds):
    import torch
    sys.path.append(os.path.join(HERE, "gpu"))
    import network_peers
    torch.set_num_threads(job["threads"])

    def load():
        module, inputs = network_peers.make(job["name"], job["model"], 1, "fp16" in job["name"], "cpu")

        def run():
            with torch.no_grad():
                module(*inputs)
        return run, None
    load()  # imports the libraries that have the network
    gc.collect()
    return load


def import_peer(job, feeds):
    import cpu_peers
    __import__(job["system"])
    return lambda: (cpu_peers.PEERS[job["system"]](job["model"], job["threads"], feeds, **job["options"]), None)


def worker(job):
    """In a process of its own: prints what the system of a job needs."""
    feeds = dict(np.load(job["feeds"]))
    system = job["system"]
    load = {"kiln": import_kiln, "torch": import_torch}.get(system, import_peer)(job, feeds)
    ctypes.CDLL(None).malloc_trim(0)
    imported = resident()
    run, session = load()
    ctypes.CDLL(None).malloc_trim(0)
    loaded = resident()
    peak_again()
    for _ in range(RUNS):
        run()
    most, after = peak(), resident()
    kept = {kind: after[kind] - imported[kind] for kind in after}
    runs = most - loaded["all"] - (after["libraries"] - loaded["libraries"])
    found = {"runs": runs, "resident": kept["anonymous"] + kept["files"], "mapped": kept["files"]}
    if session:
        found |= {"runs": after["anonymous"] - loaded["anonymous"], "arena": session.last_program()["arena_bytes"] / 1e6}
    print(json.dumps(found))


def measure(o, path, folder):
    """{system: its figures}; a system that cannot run the model is left out, with a line on standard error."""
    import models
    import onnx

    models.kiln_json(*models.compile_command(o.kiln, path, f"{folder}/m.kiln"))
    np.savez(f"{folder}/feeds.npz", **models.make_inputs(onnx.load(path), models.fixed_dims(path)))
    job = {"name": os.path.basename(path)[:-5], "model": path, "plan": f"{folder}/m.kiln", "cache": f"{folder}/cache",
           "feeds": f"{folder}/feeds.npz", "threads": o.threads}
    found = {}

    def ask(system, **options):
        command = [sys.executable, os.path.abspath(__file__), "worker", json.dumps(job | {"system": system, "options": options})]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{job['name']}: {system}: {done.stderr.strip().splitlines()[-1]}")
        return json.loads(done.stdout.splitlines()[-1])

    for system in o.systems:
        try:
            found[system] = ask(system)
            if system == "kiln":  # the first process has filled the cache
                found[system] = ask(system)
            if system == "onnxruntime":
                found[system]["runs"] = ask(system, weights_in_arena=False)["runs"]
        except RuntimeError as e:
            print(e, file=sys.stderr)
    return found


def row(name, size, found):
    def cell(system, figure):
        return f"{found[system][figure]:.1f}" if system in found else "-"
    others = [s for s in SYSTEMS if s != "kiln"]
    runs = [cell("kiln", "arena"), cell("kiln", "runs"), *(cell(s, "runs") for s in others)]
    kept = [f"{cell('kiln', 'resident')} ({cell('kiln', 'mapped')})", *(cell(s, "resident") for s in others)]
    return "| " + " | ".join([name, f"{size:.1f}", *runs, *kept]) + " |"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln", type=os.path.abspath)
    p.add_argument("models")
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--json")
    o = p.parse_args()
    o.systems = [s for s in SYSTEMS if importlib.util.find_spec(s)]
    if "kiln" not in o.systems:
        sys.exit("memory: Kiln's Python package is not found; set PYTHONPATH, for example to build/release/python")
    peers = [text for s, text in SYSTEMS.items() if s != "kiln"]
    print("| model | ONNX MB | Kiln: arena | " + " | ".join(f"{t}: runs" for t in SYSTEMS.values()) + " | Kiln: resident (of it mapped) | "
          + " | ".join(f"{t}: resident" for t in peers) + " |\n" + "|---|" + "--:|" * 10)
    table = {}
    for path in sorted(glob.glob(f"{o.models}/*.onnx")):
        name = os.path.basename(path)[:-5]
        if o.only and name not in o.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            table[name] = measure(o, path, folder)
        print(row(name, os.path.getsize(path) / 1e6, table[name]), flush=True)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(table, f, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(json.loads(sys.argv[2]))
    else:
        main()
