#!/usr/bin/env python3
"""Operators of onnxruntime's domain with random attributes, shapes and optional inputs (contrib_makers.py), against
onnxruntime's CPU provider. Operators that have only CUDA kernels there are compared with numpy (contrib_reference.py).

    contrib_ops.py KILN [--count 500] [--seed 0] [--only NAME ...] [--per-model 25] [--finalize TARGET ...]

Several nodes become one model, for speed. A node that differs is run again alone and printed with its inputs. Exits 1
if a node is wrong; a node that kiln refuses, or that onnxruntime cannot run, is counted and printed with the reason.
With --finalize the models are also finalized for these targets.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from contrib_makers import MAKERS, Random  # noqa: E402
from operator_case import model_of, reference  # noqa: E402
import serving_makers  # noqa: E402, F401: its makers join MAKERS
import stream_makers  # noqa: E402, F401


def expected(op, case, node):
    if case.numpy:
        given = [None if i is None else i[1] for i in case.inputs]
        results = case.numpy(*given, **case.attributes)
        results = results if isinstance(results, tuple) else (results,)
        return dict(zip(node.outputs, results))
    model, feeds = model_of([node])
    return reference(model, feeds)


def finalized(kiln, targets, folder):
    """Returns why the kernels of the last model cannot be finalized for a target, or an empty string."""
    for target in targets:
        done = subprocess.run([kiln, "finalize", f"{folder}/m.kiln", "--target", target, "-o", f"{folder}/objects", "--no-cache"], capture_output=True, text=True)
        if done.returncode:
            return f"{target}: {done.stderr.strip()[-400:]}"
    return ""


def run_kiln(kiln, nodes, folder):
    model, feeds = model_of(nodes)
    onnx.save(model, f"{folder}/m.onnx")
    environment = {**os.environ, "KILN_CACHE_DIR": f"{folder}/cache"}
    done = subprocess.run([kiln, "compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln"], capture_output=True, text=True, env=environment)
    if done.returncode:
        return done.stderr.strip()[-400:]
    given = []
    for name, a in feeds.items():
        np.save(f"{folder}/{name}.npy", a)
        given += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run([kiln, "run", f"{folder}/m.kiln", "--quiet", "--no-cache", "--output-dir", f"{folder}/out", *given], capture_output=True, text=True, env=environment)
    if done.returncode:
        return done.stderr.strip()[-400:]
    return {o: np.load(f"{folder}/out/{o}.npy") for n in nodes for o in n.outputs}


def difference(want, got, tolerance):
    """Returns why the results differ, or an empty string."""
    for name, w in want.items():
        g, w = got[name], np.asarray(w)
        if w.shape != g.shape:
            return f"{name}: {g.shape} instead of {w.shape}"
        if w.dtype.kind in "iub":
            most = 1 if w.dtype.itemsize == 1 and w.dtype.kind != "b" else 0  # a quantized number in the middle may go either way
            off = np.abs(w.astype(np.int64) - g.astype(np.int64)).max(initial=0)
            if off > most:
                return f"{name}: off by {off}"
            continue
        scale = max(1e-2, float(np.abs(w[np.isfinite(w)]).max(initial=0)))
        if not np.allclose(g.astype(np.float64), w.astype(np.float64), rtol=0, atol=tolerance * scale, equal_nan=True):
            return f"{name}: off by {np.abs(g.astype(np.float64) - w).max():.3g} of {scale:.3g}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-model", type=int, default=25)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--finalize", nargs="*", default=[])
    o = parser.parse_args()
    names = [n for n in MAKERS if not o.only or n in o.only]
    counts = {n: collections.Counter() for n in names}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for begin in range(0, o.count, o.per_model):
            cases = []
            for i in range(begin, min(begin + o.per_model, o.count)):
                op = names[i % len(names)]
                case = MAKERS[op](Random([o.seed, i]))
                node = case.node(op, f"c{i}_")
                try:
                    cases.append((op, case, node, expected(op, case, node), i))
                except Exception as e:  # onnxruntime's exceptions have no common base
                    counts[op]["no reference"] += 1
                    if counts[op]["no reference"] == 1:
                        print(f"no reference: {op} {case.attributes}: {str(e)[-200:]!r}")
            together = run_kiln(o.kiln, [c[2] for c in cases], folder) if cases else {}
            if isinstance(together, dict) and (why := finalized(o.kiln, o.finalize, folder)):
                print(f"not finalized: {why}")
                wrong += 1
            for op, case, node, want, i in cases:
                got = together if isinstance(together, dict) else run_kiln(o.kiln, [node], folder)
                about = f"{op} (seed {o.seed}, case {i}) {case.attributes} { {x[0]: (x[1].shape, str(x[1].dtype)) for x in case.inputs if x} }"
                if isinstance(got, str):
                    kind = "refused" if "unsupported" in got else "failed"
                    counts[op][kind] += 1
                    wrong += kind == "failed"
                    if counts[op][kind] <= 3:
                        print(f"{kind}: {about}: {got}")
                    continue
                why = difference(want, got, case.tolerance)
                counts[op]["wrong" if why else "right"] += 1
                wrong += bool(why)
                if why and counts[op]["wrong"] <= 3:
                    print(f"wrong: {about}: {why}")
    total = sum(counts.values(), collections.Counter())
    for n in names:
        print(f"{n:34s} {dict(counts[n])}")
    print(f"onnxruntime {onnxruntime.__version__}: {dict(total)}")
    return 1 if wrong or not total["right"] else 0


if __name__ == "__main__":
    sys.exit(main())
