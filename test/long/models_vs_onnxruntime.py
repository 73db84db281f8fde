#!/usr/bin/env python3
"""Every model against onnxruntime, through the command line: compile, run, compare.

    models_vs_onnxruntime.py KILN MODELS_DIR [--only NAME ...] [--fp16] [--target T] [--device D] [--sanitizer] [--timeout SECONDS] [--json FILE]

MODELS_DIR holds filled models (fill.py). Inputs are seeded; integer inputs that index something stay in range. The
measure is
||out - ref|| / ||ref||: at most 1e-4 for f32 and 1e-2 for f16 models (or --fp16); integer outputs must agree. Outputs
must be finite wherever the reference is. --sanitizer runs every model under compute-sanitizer's memcheck, which must
find nothing. Exits 1 if any model fails; prints one line per model.
"""
import argparse, glob, json, os, subprocess, sys, tempfile, time
import numpy as np
import onnx
import onnxruntime as ort

TYPES = {1: np.float32, 10: np.float16, 7: np.int64, 6: np.int32, 9: np.bool_, 11: np.float64}
RANGES = {"input_ids": 30000, "ids": 1000, "pos": 60, "attention_mask": 2}


def make_inputs(model, dims):
    rng = np.random.default_rng(7)
    init = {t.name for t in model.graph.initializer}
    result = {}
    for v in model.graph.input:
        if v.name in init:
            continue
        t = v.type.tensor_type
        shape = [dims.get(d.dim_param, 1) if d.dim_param else d.dim_value for d in t.shape.dim]
        dtype = TYPES[t.elem_type]
        if np.issubdtype(dtype, np.integer):
            result[v.name] = rng.integers(0, RANGES.get(v.name, 2), shape).astype(dtype)
            if v.name == "attention_mask":
                result[v.name][...] = 1
                result[v.name][..., -9:] = 0
        else:
            result[v.name] = rng.standard_normal(shape).astype(dtype)
    return result


def check(kiln, path, fp16, target, device, sanitizer, timeout=300):
    name = os.path.basename(path)[:-5]
    dims = {"batch": 3} if "dynbatch" in name else {}
    model = onnx.load(path)
    inputs = make_inputs(model, dims)
    half = fp16 or any(i.type.tensor_type.elem_type == 10 for i in model.graph.input)
    with tempfile.TemporaryDirectory() as d:
        arguments = []
        for n, a in inputs.items():
            np.save(f"{d}/{n}.npy", a)
            arguments += ["--input", f"{n}={d}/{n}.npy"]
        began = time.time()
        # Open dimensions stay open in the file; the inputs' shapes bind them when it runs.
        keep_open = sum((["--dim", f"{k}=1:16"] for k in dims), [])
        subprocess.run([kiln, "compile", path, "-o", f"{d}/m.kiln", *(["--fp16"] if fp16 else []), *keep_open], check=True, capture_output=True, text=True)
        compiled = time.time()
        run = [kiln, "run", f"{d}/m.kiln", "--output-dir", f"{d}/out", "--cache", f"{d}/cache", *arguments]
        if target:
            run += ["--target", target]
        if device:
            run += ["--device", device]
        if sanitizer:
            # Once without, so that the kernels are in the cache.
            subprocess.run(run, check=True, capture_output=True, text=True, timeout=timeout)
            run = ["compute-sanitizer", "--error-exitcode", "99", *run]
        done = subprocess.run(run, check=True, capture_output=True, text=True, timeout=timeout)
        if sanitizer and "ERROR SUMMARY: 0 errors" not in done.stdout + done.stderr:
            return dict(model=name, ok=False, error="compute-sanitizer gave no summary: " + (done.stdout + done.stderr)[-200:])
        ran = time.time()
        options = ort.SessionOptions()
        options.log_severity_level = 3
        if fp16:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        expected = session.run(None, inputs)
        worst, ok = 0.0, True
        for out, want in zip(session.get_outputs(), expected):
            got = np.load(f"{d}/out/{out.name.replace('/', '_').replace(':', '_')}.npy")
            if got.shape != want.shape or got.dtype != want.dtype:
                return dict(model=name, ok=False, error=f"{out.name}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}")
            if np.issubdtype(want.dtype, np.floating):
                g, w = got.astype(np.float64), want.astype(np.float64)
                ok &= bool(np.isfinite(g[np.isfinite(w)]).all())
                worst = max(worst, float(np.linalg.norm(g - w) / max(np.linalg.norm(w), 1e-30)))
            else:
                ok &= bool((got == want).all())
        limit = 1e-2 if half else 1e-4
        return dict(model=name, ok=bool(ok and worst <= limit), error_norm=worst, limit=limit, compile_s=round(compiled - began, 2), cold_run_s=round(ran - compiled, 2))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("models")
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--fp16", action="store_true")
    p.add_argument("--target")
    p.add_argument("--device")
    p.add_argument("--sanitizer", action="store_true")
    p.add_argument("--timeout", type=float, default=300, help="seconds for the run of a model")
    p.add_argument("--json")
    a = p.parse_args()
    rows, failed = [], 0
    for path in sorted(glob.glob(f"{a.models}/*.onnx")):
        if a.only and os.path.basename(path)[:-5] not in a.only:
            continue
        try:
            row = check(os.path.abspath(a.kiln), path, a.fp16, a.target, a.device, a.sanitizer, a.timeout)
        except subprocess.CalledProcessError as e:
            row = dict(model=os.path.basename(path)[:-5], ok=False, error=(e.stderr.strip() or e.stdout.strip())[-300:])
        except subprocess.TimeoutExpired:
            row = dict(model=os.path.basename(path)[:-5], ok=False, error="timed out")
        failed += not row["ok"]
        rows.append(row)
        print(("ok    " if row["ok"] else "FAIL  ") + json.dumps(row), flush=True)
    if a.json:
        json.dump(rows, open(a.json, "w"), indent=1)
    print(f"{len(rows) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
