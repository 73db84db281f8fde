#!/usr/bin/env python3
"""Many networks beside onnxruntime and OpenVINO on one thread, by processor time: for a machine that others use, too.

    PYTHONPATH=build/ci/python python bench/cpu_survey.py JSON_LINES MODEL.onnx ... [--rounds 2] [--seconds 0.12]

Each network runs in this process, in turn by Kiln (its Python module) and both peers, at the sizes of its file with 1 for
open dimensions and random inputs. A time is the least processor time of a call: another program on the same core does
not count, though it may empty caches. The first outputs are compared: a relative difference from a peer above 1e-3 is
marked. One line for each network is printed and appended to JSON_LINES; the last lines are the geometric mean and the
networks below 1.
"""
import argparse, json, os, tempfile, time

import kiln
import numpy as np
import onnx

from cpu_kinds import feeds_of
from cpu_peers import PEERS

LEAST_CALLS, MOST_DIFFERENCE = 2, 1e-3


def open_dims(path):
    """{name: 1} for the open dimensions of a model's inputs."""
    graph = onnx.load(path, load_external_data=False).graph
    return {d.dim_param: 1 for i in graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}


def least_ms(run, seconds):
    times, end = [], time.perf_counter() + seconds
    run()
    while len(times) < LEAST_CALLS or time.perf_counter() < end:
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times) * 1e3


def measure(o, path):
    with tempfile.TemporaryDirectory() as folder:
        feeds = feeds_of(path)
        model = kiln.compile(path, f"{folder}/m.kiln", dims=open_dims(path))
        session = kiln.Session(model, threads=1, cache=f"{folder}/cache")
        got = next(iter(session.run(feeds).values())).astype(np.float64)
        runners, differences = {"kiln": lambda: session.run(feeds)}, {}
        for name in PEERS:
            runners[name] = PEERS[name](path, 1, feeds)
            want = np.asarray(runners[name]()).astype(np.float64)
            differences[name] = float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30))
        rounds = [{name: least_ms(run, o.seconds) for name, run in runners.items()} for _ in range(o.rounds)]
        session.close()
    ms = {name: min(r[name] for r in rounds) for name in runners}
    return {**ms, "ratio": min(ms[name] for name in PEERS) / ms["kiln"], "difference": min(differences.values())}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("output")
    p.add_argument("models", nargs="+")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.12, help="that a measurement takes at least")
    o = p.parse_args()
    ratios = {}
    for path in o.models:
        name = os.path.basename(path)[:-5]
        row = measure(o, path)
        ratios[name] = row["ratio"]
        with open(o.output, "a", encoding="utf-8") as f:
            f.write(json.dumps({"name": name, **row}) + "\n")
        cells = " | ".join(f"{row[runner]:.2f}" for runner in ("kiln", *PEERS, "ratio"))
        print(f"| {name} | {cells} |{' DIFFERS' if not row['difference'] <= MOST_DIFFERENCE else ''}", flush=True)
    print(f"geometric mean {np.exp(np.mean(np.log(list(ratios.values())))):.3f} of {len(ratios)}, worst {min(ratios.values()):.3f}")
    print("below 1:", ", ".join(f"{name} {r:.2f}" for name, r in sorted(ratios.items(), key=lambda i: i[1]) if r < 1) or "none")


if __name__ == "__main__":
    main()
