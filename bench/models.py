#!/usr/bin/env python3
"""Every model beside onnxruntime and OpenVINO, in one run, as a table.

    bench/models.py KILN MODELS_DIR [--only NAME ...] [--threads T ...] [-n RUNS] [--rounds R] [--history FILE]

For each model: AOT time and file size (against the ONNX file); in a cold cache the time to finalize and run first; in a
second process the wall time from its start to its first output and its cache misses; then medians of repeated runs, ours
and the peers' in turn (the best median of the rounds counts), for each number of threads (default: all processors). The
ratio is the faster peer's time over ours: above 1 Kiln is faster. A measurement during which other programs kept more than
0.15 processors busy is repeated, up to three times; if it is still disturbed, --history leaves the case out. Peers that are
not installed are left out.
models_vs_onnxruntime.py checks the answers; run it first.
"""
import argparse, functools, glob, os, sys, tempfile, time
import onnx

import history
from cpu_peers import PEERS, SECONDS, in_turn, installed, kiln_json, median_ms, record

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "long"))
from models_vs_onnxruntime import make_inputs


def timed(*arguments):
    """The document of a command, and its wall time in s."""
    began = time.perf_counter()
    document = kiln_json(*arguments)
    return document, time.perf_counter() - began


def fixed_dims(path):
    """The sizes of a model's open dimensions."""
    return {"batch": 1} if "dynbatch" in os.path.basename(path) else {}


def compile_command(kiln, path, plan):
    return [kiln, "compile", path, "-o", plan, *(word for name, size in fixed_dims(path).items() for word in ("--dim", f"{name}={size}"))]


def starts(kiln, path, folder):
    """Compiles a model into `folder`/m.kiln and fills `folder`/cache: the cells of what happens once."""
    compiled, aot = timed(*compile_command(kiln, path, f"{folder}/m.kiln"))
    run = [kiln, "run", f"{folder}/m.kiln", "--cache", f"{folder}/cache"]
    cold = kiln_json(*run)
    warm, wall = min((timed(*run) for _ in range(3)), key=lambda r: r[1])
    cold_s = (cold["finalize_ms"] + cold["load_ms"] + cold["first_run_ms"]) / 1e3
    size = compiled["bytes"] / os.path.getsize(path)
    return [f"{aot:.2f}", f"{size:.4f}", warm["kernels"], warm["interpreted"], f"{cold_s:.2f}", f"{wall:.3f}", warm["cache"]["misses"]]


def steady(a, path, folder, feeds, threads):
    """{runner: best median in ms}, and how many processors other programs used."""
    perf = [a.kiln, "perf", f"{folder}/m.kiln", "--cache", f"{folder}/cache", "--threads", threads, "-n", a.n, "--duration", f"{SECONDS}s"]
    runners = {"kiln": lambda: kiln_json(*perf)["p50_ms"]}
    for name in a.peers:
        runners[name] = functools.partial(median_ms, PEERS[name](path, threads, feeds), a.n, SECONDS)
    return in_turn(runners, a.rounds)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln", type=os.path.abspath)
    p.add_argument("models")
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--threads", nargs="*", type=int, default=[len(os.sched_getaffinity(0))])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("-n", type=int, default=20)
    history.add_options(p)
    a = p.parse_args()
    a.peers, log = installed(), history.Log(a, a.kiln)
    if not a.peers:
        sys.exit("models: no peer is installed")
    once = ["AOT s", "size / ONNX", "kernels", "interpreted", "cold finalize + load + first run s", "warm process s", "warm misses"]
    print("| " + " | ".join(["model", *once, "threads", "kiln ms", *(f"{name} ms" for name in a.peers), "best peer / kiln"]) + " |")
    print("|---" * (4 + len(once) + len(a.peers)) + "|")
    for path in sorted(glob.glob(f"{a.models}/*.onnx")):
        name = os.path.basename(path)[:-5]
        if a.only and name not in a.only:
            continue
        feeds = make_inputs(onnx.load(path), fixed_dims(path))
        with tempfile.TemporaryDirectory() as folder:
            cells = starts(a.kiln, path, folder)
            for threads in a.threads:
                ms, others = steady(a, path, folder, feeds, threads)
                ratio = min(ms[peer] for peer in a.peers) / ms["kiln"]
                times = (f"{t:.2f}" for t in ms.values())
                print("| " + " | ".join([name, *map(str, cells), str(threads), *times, f"{ratio:.2f}"]) + " |", flush=True)
                record(log, threads, history.case(name), ms, others)
                cells = [""] * len(cells)


if __name__ == "__main__":
    main()
