#!/usr/bin/env python3
"""Two builds of kiln beside each other, interleaved, so that a change of the machine's speed meets both.

    bench/regress.py OLD_KILN NEW_KILN MODELS_DIR [--only NAME ...] [--device D] [--target T] [--fp16] [--threads N]
                     [--rounds R] [-n RUNS] [--what aot cold warm run] [--limit 1.05] [--json FILE]

For each model and each round, OLD and NEW take turns (the order alternates) at
  aot   `kiln compile`: processor time (user + system, children included) of the process, in ms
  cold  `kiln run` with an empty cache: wall time from start to end, in ms
  warm  `kiln run` with a full cache: wall time from start to end, in ms
  run   `kiln perf -n RUNS`: its p50, in ms
and whether both builds write the same .kiln bytes and the same output bytes. A ratio is the median over the rounds of
NEW / OLD of the same round; beside it stands the interval that covers it in 95 % of 2,000 bootstrap samples. Exits 1
where a column's geometric mean is above --limit, or where a single model's whole interval is.
"""
import argparse, glob, hashlib, json, os, resource, shutil, subprocess, sys, tempfile, time
import numpy as np

COLUMNS = ["aot", "cold", "warm", "run"]


def call(command):
    """Runs it; gives (wall ms, processor ms, standard output). Raises with the program's own words where it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    wall, after = (time.perf_counter() - began) * 1e3, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return wall, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3, done.stdout


def digest(paths):
    h = hashlib.blake2b()
    for path in sorted(paths):
        h.update(os.path.basename(path).encode())
        with open(path, "rb") as f:
            while chunk := f.read(1 << 20):
                h.update(chunk)
    return h.hexdigest()


class build:
    """One of the two executables, with the files that it made of the model at hand."""

    def __init__(self, kiln, folder, options):
        self.kiln, self.folder, self.options = os.path.abspath(kiln), folder, options
        self.file, self.cache, self.outputs = f"{folder}/m.kiln", f"{folder}/cache", f"{folder}/out"
        os.makedirs(folder)

    def aot(self, model):
        dims = ["--dim", "batch=1"] if "dynbatch" in model else []
        return call([self.kiln, "compile", model, "-o", self.file, "--quiet", *dims, *(["--fp16"] if self.options.fp16 else [])])[1]

    def run_command(self, command):
        o = self.options
        threads = ["--threads", o.threads] if o.threads else []
        return [self.kiln, command, self.file, "--cache", self.cache, "--device", o.device, *(["--target", o.target] if o.target else []), *threads]

    def cold(self, _):
        shutil.rmtree(self.cache, ignore_errors=True)
        return call([*self.run_command("run"), "--quiet", "--output-dir", self.outputs])[0]

    def warm(self, _):
        return call([*self.run_command("run"), "--quiet"])[0]

    def run(self, _):
        return json.loads(call([*self.run_command("perf"), "--json", "-n", self.options.n])[2])["p50_ms"]


def interval(ratios, rng):
    samples = np.median(rng.choice(ratios, (2000, len(ratios))), axis=1)
    return np.quantile(samples, [0.025, 0.975])


def measure(model, options, work):
    """Column → list of (old, new) times, one for each round; and which bytes are equal."""
    builds = [build(k, f"{work}/{n}", options) for n, k in (("old", options.old), ("new", options.new))]
    times = {c: [] for c in options.what}
    for b in builds:  # What the first call of a program pays (page cache, driver) belongs to no column.
        b.aot(model)
        b.cold(model)
    for round_ in range(options.rounds):
        for column in options.what:
            pair = [0.0, 0.0]
            for i in (0, 1) if round_ % 2 == 0 else (1, 0):
                pair[i] = getattr(builds[i], column)(model)
            times[column].append(tuple(pair))
    same_file = digest([builds[0].file]) == digest([builds[1].file])
    same_outputs = digest(glob.glob(f"{builds[0].outputs}/*.npy")) == digest(glob.glob(f"{builds[1].outputs}/*.npy"))
    return times, same_file, same_outputs


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("models")
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--device", default="host")
    p.add_argument("--target")
    p.add_argument("--fp16", action="store_true")
    p.add_argument("--threads", type=int)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("-n", type=int, default=20)
    p.add_argument("--what", nargs="*", choices=COLUMNS, default=COLUMNS)
    p.add_argument("--limit", type=float, default=1.05)
    p.add_argument("--json")
    o = p.parse_args()
    rng = np.random.default_rng(1)
    results, failed = {}, False
    print("| model | " + " | ".join(f"{c}: old ms | new ms | ratio [95 %]" for c in o.what) + " | same file | same outputs |")
    print("|---" * (3 * len(o.what) + 3) + "|")
    for model in sorted(glob.glob(f"{o.models}/*.onnx")):
        name = os.path.basename(model)[:-5]
        if o.only and name not in o.only:
            continue
        with tempfile.TemporaryDirectory() as work:
            times, same_file, same_outputs = measure(os.path.abspath(model), o, work)
        cells = []
        results[name] = {"same_file": same_file, "same_outputs": same_outputs}
        for column, pairs in times.items():
            old, new = np.array(pairs).T
            ratio, (low, high) = float(np.median(new / old)), interval(new / old, rng)
            results[name][column] = {"old": float(np.median(old)), "new": float(np.median(new)), "ratio": ratio, "low": float(low), "high": float(high)}
            failed |= bool(low > o.limit)
            cells.append(f"{np.median(old):.3f} | {np.median(new):.3f} | {ratio:.3f} [{low:.3f}, {high:.3f}]")
        print(f"| {name} | " + " | ".join(cells) + f" | {'yes' if same_file else 'no'} | {'yes' if same_outputs else 'no'} |", flush=True)
        if o.json:
            json.dump(results, open(o.json, "w"), indent=1)
    if not results:
        sys.exit(f"regress: no model in {o.models}")
    for column in o.what:
        mean = float(np.exp(np.mean([np.log(r[column]["ratio"]) for r in results.values()])))
        failed |= mean > o.limit
        print(f"{column}: geometric mean of new / old {mean:.3f} over {len(results)} models")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
