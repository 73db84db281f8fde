#!/usr/bin/env python3
"""Both tiers of models, as a table and as JSON.

    bench/tuning/tiers.py KILN MODELS_DIR [--only NAME ...] [--device D] [--fp16] [--budget 60s] [--effort full] [-n RUNS] [--json FILE]

For each model, in an empty cache: wall time to the first output of a process that has nothing; runs while kernels are
tuned in the background (`kiln perf --tune`): medians and 99th percentiles before, meanwhile and afterwards; then a warm
process, which must start with what was found and compile nothing (--if-cached); then processes of both tiers in turn
(the defaults out of a cache of their own), whose medians make the speed-up.
"""
import argparse, json, os, subprocess, sys, tempfile, time


def kiln_json(*arguments):
    began = time.perf_counter()
    done = subprocess.run([*map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")
    return json.loads(done.stdout), time.perf_counter() - began


def measure(a, path):
    name = os.path.basename(path)[:-5]
    with tempfile.TemporaryDirectory() as d:
        file, device = f"{d}/m.kiln", ["--device", a.device, "--cache", f"{d}/cache"]
        kiln_json(a.kiln, "compile", path, "-o", file, *(["--fp16"] if a.fp16 else []), *(["--dim", "batch=1"] if "dynbatch" in name else []))
        cold, cold_wall = kiln_json(a.kiln, "run", file, *device)
        perf, _ = kiln_json(a.kiln, "perf", file, *device, "-n", a.runs, "--warmup", 5, "--tune", a.effort, "--tune-budget", a.budget)
        warm, warm_wall = min((kiln_json(a.kiln, "run", file, *device, "--if-cached") for _ in range(3)), key=lambda r: r[1])
        t = perf["tuning"]
        caches, tiers = (f"{d}/defaults", f"{d}/cache"), ([], [])
        for i in range(1 + a.rounds):
            for cache, times in zip(caches, tiers):
                p50 = kiln_json(a.kiln, "perf", file, "--device", a.device, "--cache", cache, "-n", a.runs // a.rounds)[0]["p50_ms"]
                if i:  # the first process compiles, and decides about graphs
                    times.append(p50)
        tier0, tier1 = (sorted(x)[len(x) // 2] for x in tiers)
        return dict(model=name, cold_s=cold_wall, first_output_ms=cold["finalize_ms"] + cold["load_ms"] + cold["first_run_ms"], tier1_s=t["seconds"], kernels=t["kernels"], tuned=t["tuned"],
                    improved=t["improved"], swaps=t["swaps"], tier0_ms=tier0, tier1_ms=tier1, speedup=tier0 / tier1, all_ms=tiers, gain_in_process=t["gain"], p99_ratio=t["p99_ratio"], during=t["during"], tier0=t["tier0"],
                    warm_s=warm_wall, warm_misses=warm["cache"]["misses"], warm_read_ms=warm["read_ms"], warm_load_ms=warm["load_ms"], warm_finalize_ms=warm["finalize_ms"], warm_first_run_ms=warm["first_run_ms"], warm_tuned=warm["tuning"]["tuned"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("models")
    parser.add_argument("--only", nargs="*", default=["resnet50", "bert_base"])
    parser.add_argument("--device", default="host")
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--effort", default="full")
    parser.add_argument("-n", "--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    a = parser.parse_args()
    rows = []
    print("| model | cold process s | first output ms | tier 1 after s | kernels tuned (improved) | tier 0 ms | tier 1 ms | speed-up | p99 while tuning / before | warm process s | warm misses |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in a.only:
        r = measure(a, os.path.join(a.models, name + ".onnx"))
        rows.append(r)
        print(f"| {r['model']} | {r['cold_s']:.2f} | {r['first_output_ms']:.0f} | {r['tier1_s']:.1f} | {r['tuned']} of {r['kernels']} ({r['improved']}) | {r['tier0_ms']:.3f} | {r['tier1_ms']:.3f} | {r['speedup']:.2f} | {r['p99_ratio']:.2f} | {r['warm_s']:.3f} | {r['warm_misses']} |", flush=True)
        if a.json:
            with open(a.json, "w") as f:
                json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
