#!/usr/bin/env python3
"""Models through ONNX Runtime's own session, with its CPU provider and with Kiln's plug-in: answers, nodes taken, times.

    onnxruntime_plugin.py PLUGIN ZOO FILLED [NAME...] [--option NAME=VALUE ...] [--gpu cuda:0]

PLUGIN is libonnxruntime_providers_kiln.so, ZOO a folder with zoo.py and NAME.json files that say which inputs a model has
(all cases run in one session; other models get random inputs), FILLED has the models NAME.onnx. Exits 1 if an answer is wrong or a session fails. Answers
are compared with a session that optimizes a little (ORT_ENABLE_BASIC), because the full optimizer changes answers of some
quantized models; times with one that optimizes fully. --gpu takes the provider whose tensors are in the memory of this GPU.
"""
import argparse
import glob
import json
import os
import re
import statistics
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort


def taken(log):
    """How many nodes Kiln runs, of how many, in how many parts."""
    found = re.search(r"Kiln runs (\d+) of (\d+) nodes in (\d+) parts", log)
    return tuple(int(n) for n in found.groups()) if found else (0, 0, 0)


class Captured:
    """What native code writes to standard error."""

    def __enter__(self):
        self.file, self.kept = tempfile.TemporaryFile(), os.dup(2)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *ignored):
        os.dup2(self.kept, 2)
        os.close(self.kept)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")


def difference(expected, got):
    if isinstance(expected, (list, dict)):
        pairs = [(expected[k], got[k]) for k in expected] if isinstance(expected, dict) else list(zip(expected, got, strict=True))
        return max([difference(np.asarray(a) if np.isscalar(a) else a, np.asarray(b) if np.isscalar(b) else b) for a, b in pairs], default=0.0)
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return float("inf")
    if not expected.size:
        return 0.0
    if expected.dtype.kind not in "fV":
        return float(not np.array_equal(expected, got))
    a, b = expected.astype(np.float64), got.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return float(np.max(np.where(same, 0, np.abs(a - b)))) / max(1e-6, float(np.max(np.abs(a[np.isfinite(a)]), initial=0)))


def milliseconds(session, feed):
    times, end = [], time.perf_counter() + 0.25
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 30):
        begin = time.perf_counter()
        session.run(None, feed)
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def plain_inputs(session):
    """For models that no JSON file describes: open dimensions are 2, integers small."""
    types = {"float": "float32", "float16": "float16", "double": "float64"}
    result = {}
    for i in session.get_inputs():
        kind = i.type[len("tensor("):-1]
        fill = {"kind": "normal"} if kind in types else {"kind": "randint", "low": 0, "high": 2}
        result[i.name] = {"shape": [d if isinstance(d, int) else 2 for d in i.shape], "dtype": types.get(kind, kind), "fill": fill}
    return {"inputs": result}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("plugin")
    arguments.add_argument("zoo")
    arguments.add_argument("filled")
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--option", action="append", default=[])
    arguments.add_argument("--gpu", default="")
    o = arguments.parse_args()
    sys.path.insert(0, o.zoo)
    import zoo
    ort.register_execution_provider_library("kiln", os.path.abspath(o.plugin))
    name = "KilnGpuExecutionProvider" if o.gpu else "KilnExecutionProvider"
    devices = [d for d in ort.get_ep_devices() if d.ep_name == name and d.ep_metadata.get("device", "") == o.gpu]
    counts, whole, ratios = {}, 0, []
    for file in sorted(glob.glob(f"{o.filled}/*.onnx")):
        name = os.path.basename(file)[:-5]
        if o.names and name not in o.names:
            continue
        described = f"{o.zoo}/{name}.json"
        about = json.load(open(described)) if os.path.exists(described) else {}
        quiet = ort.SessionOptions()
        quiet.log_severity_level = 4
        try:
            peer = ort.InferenceSession(file, quiet, providers=["CPUExecutionProvider"])
            quiet.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
            reference = ort.InferenceSession(file, quiet, providers=["CPUExecutionProvider"])
        except Exception:
            counts["onnxruntime refuses"] = counts.get("onnxruntime refuses", 0) + 1
            continue
        options = ort.SessionOptions()
        options.log_severity_level = 1
        options.add_provider_for_devices(devices, dict(p.split("=", 1) for p in o.option))
        begin, result, worst, ratio = time.perf_counter(), "right", 0.0, None
        with Captured() as log:
            try:
                session = ort.InferenceSession(file, options)
                opened = time.perf_counter() - begin
                for case, shapes in enumerate(about.get("shapes") or [plain_inputs(reference)]):
                    feed = {n: zoo.make_input(name, case, n, spec) for n, spec in shapes["inputs"].items()}
                    try:
                        expected = reference.run(None, feed)
                    except Exception:
                        continue
                    got = session.run(None, feed)
                    worst = max([worst] + [difference(a, b) for a, b in zip(expected, got)])
                    if case == 0:
                        session.run(None, feed)
                        ratio = milliseconds(peer, feed) / milliseconds(session, feed)
                # Types that both compute in their own order differ by more than the exporter's framework does.
                if not worst <= max(about.get("tolerance", 1e-3), 2e-3):
                    result = "wrong"
            except Exception as e:
                result, opened = f"fails: {str(e)[:150]}", 0
        nodes, of, parts = taken(log.text)
        whole += nodes == of and parts == 1
        counts[result.split(":")[0]] = counts.get(result.split(":")[0], 0) + 1
        if ratio and nodes:
            ratios.append(ratio)
        reasons = re.findall(r"Kiln leaves nodes to ONNX Runtime \(\d+\): ([^\x1b\n]*)", log.text)
        print(f"{name:44} {nodes:4}/{of:<4} in {parts:<2} {opened:6.1f} s  {worst:8.1e}  {ratio or 0:6.2f} x  {result}  {'; '.join(reasons)[:140]}", flush=True)
        session = None
    print(counts, f"whole graphs {whole}, onnxruntime's time over Kiln's, geometric mean {statistics.geometric_mean(ratios):.2f}" if ratios else "")
    return int(any(k.startswith(("wrong", "fails")) for k in counts))


if __name__ == "__main__":
    sys.exit(main())
