#!/usr/bin/env python3
"""Graph replay beside launches on a GPU, as a table.

    bench/gpu/replay.py KILN MODELS_DIR [--device cuda:0] [--only NAME ...] [--tokens 500] [--json FILE] [--sanitizer]

MODELS_DIR holds filled models (fill.py). Every model runs at batch 1 in f16 (llama_decode_fp16 as it is, and once more
as 500 tokens with its KV cache fed back in the memory of the device, with f16 and with int4 weights; *int8* and *int4*
files as they are, see qdq_model.py) with --graph off, on and auto in turn, in rounds. The columns: the median of a run
in ms, tokens (runs) per second over all runs, the time in which the host gives a run away (us), the gain of replay,
what auto decided and how far it is from the better of both (%): in a process that takes the decision of an earlier one,
and in the process that measured and decided; whether the outputs are the same bytes, and what patching costs: the
host's time for a run whose tensors take turns among more sets than there are graphs for, and that per patched node.
"""
import argparse, glob, json, os, subprocess, sys, tempfile, time

NAMES = ["llama_decode_fp16", "resnet50", "mobilenet_v2", "yolov10n", "bert_base", "llama_decode_fp16 --int4-weights"]


def kiln(*arguments, timeout=170):
    done = subprocess.run([*map(str, arguments), "--json"], capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise RuntimeError(" ".join(map(str, arguments[1:3])) + ": " + (done.stderr.strip() or done.stdout.strip())[-300:])
    return json.loads(done.stdout)


def median(values):
    return sorted(values)[len(values) // 2]


def forget_decisions(work):
    for record in glob.glob(os.path.join(work, "cache", "records", "*.graph.json")):
        os.remove(record)


def same_files(a, b):
    names = sorted(os.listdir(a))
    return names == sorted(os.listdir(b)) and all(open(os.path.join(a, n), "rb").read() == open(os.path.join(b, n), "rb").read() for n in names)


def zero_position(folder):
    import numpy as np
    path = os.path.join(folder, "zero.npy")
    np.save(path, np.zeros([1], np.int64))
    return path


def measure(o, work, name, compiled, extra, runs, key):
    """One row: the policies in turn, `o.rounds` times; the outputs of the last run of each compared."""
    found, outputs, later, remembered = {p: [] for p in ("off", "on", "auto")}, {}, [], True
    for round_number in range(o.rounds):
        for policy in sorted(found, key=lambda p: (list(found).index(p) + round_number) % 3):  # so that none always comes last
            outputs[policy] = os.path.join(work, f"{key}.{policy}".replace(" ", "_"))
            forget_decisions(work)  # each process measures for itself
            found[policy].append(kiln(o.kiln, "perf", compiled, "--device", o.device, "--cache", os.path.join(work, "cache"), "--graph", policy, "-n", runs, "--warmup", o.warmup,
                                      "--output-dir", outputs[policy], *extra))
            if policy == "auto":
                decided = found[policy][-1]["graph"]["decision"]
                later.append(kiln(o.kiln, "perf", compiled, "--device", o.device, "--cache", os.path.join(work, "cache"), "-n", runs, "--warmup", o.warmup, *extra))
                remembered &= later[-1]["graph"]["remembered"] and later[-1]["graph"]["decision"] == decided
    ms = {p: median([d["p50_ms"] for d in found[p]]) for p in found}
    later_ms = median([d["p50_ms"] for d in later])
    queued = {p: median([d["queued_ms"] for d in found[p]]) for p in found}
    rate = {p: median([d["runs_per_second"] for d in found[p]]) for p in found}
    host = {p: 1000 * median([d["host_ms"] for d in found[p]]) for p in found}
    graph, auto = found["on"][-1]["graph"], found["auto"][-1]["graph"]
    patch = {}
    if not extra and not o.no_patches:
        turns = kiln(o.kiln, "perf", compiled, "--device", o.device, "--cache", os.path.join(work, "cache"), "--graph", "on", "-n", 48, "--warmup", 3, "--tensor-sets", 16)
        per_run = turns["graph"]["patches"] / max(1, turns["graph"]["replays"] - 1)
        patch = {"patched_nodes": per_run, "patched_host_us": 1000 * turns["host_ms"], "patch_us": (1000 * turns["host_ms"] - host["on"]) / max(1, per_run)}
    best = min(ms["off"], ms["on"])
    return {"name": key, "launches": found["on"][-1]["launches"], "off_ms": ms["off"], "on_ms": ms["on"], "auto_ms": later_ms, "deciding_ms": ms["auto"], "off_queued_ms": queued["off"], "on_queued_ms": queued["on"],
            "off_per_s": rate["off"], "on_per_s": rate["on"], "auto_per_s": rate["auto"], "gain": rate["on"] / rate["off"], "host_off_us": host["off"], "host_on_us": host["on"],
            "auto": str(auto["decision"]), "on": found["on"][-1]["graph"]["decision"], "all_auto": [d["graph"]["decision"] for d in found["auto"]], "all_on": [d["graph"]["decision"] for d in found["on"]],
            "all_ms": {p: [d["p50_ms"] for d in f] for p, f in (found | {"later": later}).items()}, "remembered": remembered,
            "auto_loss_percent": 100 * (later_ms / best - 1), "deciding_loss_percent": 100 * (ms["auto"] / best - 1),
            "same_bytes": same_files(outputs["off"], outputs["on"]) and same_files(outputs["off"], outputs["auto"]), "graph": graph, "auto_graph": auto, **patch}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("kiln"), ap.add_argument("models")
    ap.add_argument("--device", default="cuda:0")
    ap.add_argument("--only", nargs="*")
    ap.add_argument("--rounds", type=int, default=2)
    ap.add_argument("--tokens", type=int, default=500)
    ap.add_argument("-n", "--runs", type=int, default=500)
    ap.add_argument("--warmup", type=int, default=300, help="runs, beyond the rise of clocks")
    ap.add_argument("--json")
    ap.add_argument("--no-patches", action="store_true", help="do not measure what patching costs")
    ap.add_argument("--sanitizer", action="store_true", help="one replayed model under compute-sanitizer")
    ap.add_argument("--seconds", type=float, default=600, help="begin no model after this")
    o = ap.parse_args()
    begin, rows, wrong = time.time(), [], 0
    quantized = sorted(f[:-5] for f in os.listdir(o.models) if f.endswith(".onnx") and ("int8" in f or "int4" in f or "qdq" in f))
    with tempfile.TemporaryDirectory() as work:
        print(f"{'model':<28}{'launches':>9}{'off ms':>9}{'on ms':>9}{'auto ms':>9}{'off/s':>9}{'on/s':>9}{'gain':>7}{'host off us':>12}{'host on us':>11}  {'auto':<16}{'loss %':>7}{'deciding %':>11}  bytes", flush=True)
        for name in NAMES + quantized if o.only is None else o.only:
            if time.time() - begin > o.seconds:
                print(f"{name:<28} not measured: the time is over", flush=True)
                continue
            try:
                compiled = os.path.join(work, name.replace(" ", "_") + ".kiln")
                model, *typed = name.split()
                if not typed and "fp16" not in name and name not in quantized:
                    typed = ["--fp16"]
                kiln(o.kiln, "compile", os.path.join(o.models, model + ".onnx"), "-o", compiled, *typed)
                cases = [(name, [], o.runs)]
                if model.startswith("llama_decode"):
                    position = zero_position(work)
                    feed = ["--input", f"pos={position}", "--count-up", "pos", "--feed", "k_out=k_cache", "--feed", "v_out=v_cache"]
                    cases.append((name + " (tokens)", feed, o.tokens))
                for key, extra, runs in cases:
                    r = measure(o, work, name, compiled, extra, runs, key)
                    rows.append(r)
                    wrong += not r["same_bytes"] or not r["remembered"]
                    print(f"{key:<28}{r['launches']:>9}{r['off_ms']:>9.3f}{r['on_ms']:>9.3f}{r['auto_ms']:>9.3f}{r['off_per_s']:>9.0f}{r['on_per_s']:>9.0f}{r['gain']:>7.2f}{r['host_off_us']:>12.1f}"
                          f"{r['host_on_us']:>11.1f}  {r['auto']:<16}{r['auto_loss_percent']:>7.1f}{r['deciding_loss_percent']:>11.1f}  {'same' if r['same_bytes'] else 'DIFFERENT'}{'' if r['remembered'] else ', decision not remembered'}", flush=True)
                    if "patch_us" in r:
                        print(f"    new pointers on every run: {r['patched_nodes']:.1f} nodes patched, host {r['patched_host_us']:.1f} us a run, {r['patch_us']:.2f} us a node", flush=True)
                    print(f"    per round: on {r['all_on']}, auto {r['all_auto']}, ms {json.dumps(r['all_ms'])}", flush=True)
                    print(f"    queued off {r['off_queued_ms']:.3f} on {r['on_queued_ms']:.3f} ms; on {json.dumps(r['graph'])}; auto {json.dumps(r['auto_graph'])}", flush=True)
            except Exception as e:  # the other models are measured all the same
                wrong += 1
                print(f"{name:<28} {e}", flush=True)
        if o.sanitizer:
            name = "mobilenet_v2"
            compiled = os.path.join(work, "sanitized.kiln")
            kiln(o.kiln, "compile", os.path.join(o.models, name + ".onnx"), "-o", compiled, "--fp16")
            done = subprocess.run(["compute-sanitizer", "--error-exitcode", "9", o.kiln, "perf", compiled, "--device", o.device, "--cache", os.path.join(work, "cache"), "--graph", "on", "-n", "3",
                                   "--warmup", "1"], capture_output=True, text=True, timeout=150)
            summary = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR SUMMARY" in line]
            print("compute-sanitizer, replayed:", done.returncode, *summary, flush=True)
            wrong += done.returncode != 0 or not summary
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
