#!/usr/bin/env python3
"""ONNX's node tests through ONNX Runtime with Kiln's plug-in.

    onnxruntime_backend.py PLUGIN [--only TEXT] [--share I/N]

A case counts as taken if Kiln runs all of its nodes. What onnxruntime alone does not run is left out. Exits 1 if an answer
is wrong where onnxruntime's own is right.
"""
import argparse
import collections
import os
import re
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx.backend.test.case import node
from onnx.backend.test.runner import Runner

from onnxruntime_plugin import Captured, taken


def agrees(case, outputs, expected):
    try:
        Runner.assert_similar_outputs(expected, outputs, rtol=case.rtol, atol=case.atol)
        return True
    except Exception:
        return False


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("plugin")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--share", default="0/1", help="the cases I, I + N, I + 2 N, ...")
    o = arguments.parse_args()
    ort.register_execution_provider_library("kiln", os.path.abspath(o.plugin))
    devices = [d for d in ort.get_ep_devices() if d.ep_name == "KilnExecutionProvider"]
    counts, reasons = collections.Counter(), collections.Counter()
    first, step = map(int, o.share.split("/"))
    for case in sorted(node.collect_testcases(None), key=lambda c: c.name)[first::step]:
        if o.only not in case.name:
            continue
        data = case.model.SerializeToString()
        names = [i.name for i in case.model.graph.input]
        try:
            quiet = ort.SessionOptions()
            quiet.log_severity_level = 4
            alone = ort.InferenceSession(data, quiet, providers=["CPUExecutionProvider"])
            sets = [(dict(zip(names, inputs)), list(outputs)) for inputs, outputs in case.data_sets]
            right = all(agrees(case, alone.run(None, feed), expected) for feed, expected in sets)
        except Exception:
            counts["onnxruntime does not run it"] += 1
            continue
        options = ort.SessionOptions()
        options.log_severity_level = 1
        options.add_provider_for_devices(devices, {})
        with Captured() as log:
            try:
                session = ort.InferenceSession(data, options)
                good = all(agrees(case, session.run(None, feed), expected) for feed, expected in sets)
                problem = "" if good or not right else "WRONG"
            except Exception as e:
                problem = f"FAILS {str(e)[:160]}"
        nodes, of, _ = taken(log.text)
        if problem:
            print(f"{case.name:60} {nodes}/{of} {problem}", flush=True)
        what = problem.split()[0] if problem else "onnxruntime is wrong itself" if not right else "right, taken whole" if nodes == of else "right, left to onnxruntime"
        counts[what] += 1
        if not problem and nodes < of:
            for reason in re.findall(r"Kiln leaves nodes to ONNX Runtime \(\d+\): ([^\x1b\n]*)", log.text):
                reasons[re.sub(r"'[^']*'", "'…'", reason)[:90]] += 1
    print(dict(counts))
    for reason, times in reasons.most_common(40):
        print(f"{times:5} {reason}")
    return int(counts["WRONG"] + counts["FAILS"] > 0)


if __name__ == "__main__":
    sys.exit(main())
