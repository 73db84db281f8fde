#!/usr/bin/env python3
"""What `--int4-weights` costs in accuracy, against onnxruntime with the model's own weights.

    int4_accuracy.py KILN MODELS_DIR [--only NAME ...] [--fp16]

One line per model: how many weights were quantized, their bytes, ||out - ref|| / ||ref|| of every float output without
and with quantization, and the cosine between the quantized output and the reference. Nothing passes or fails here:
weights drawn at random, as fill.py makes them, lose the most. Inputs as in models_vs_onnxruntime.py.
"""
import argparse
import glob
import json
import os
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime

from models_vs_onnxruntime import make_inputs


def run(kiln, path, inputs, options):
    with tempfile.TemporaryDirectory() as d:
        arguments = []
        for name, data in inputs.items():
            np.save(f"{d}/{name}.npy", data)
            arguments += ["--input", f"{name}={d}/{name}.npy"]
        compiled = json.loads(subprocess.run([kiln, "compile", path, "-o", f"{d}/m.kiln", "--json", *options], check=True, capture_output=True, text=True).stdout)
        subprocess.run([kiln, "run", f"{d}/m.kiln", "--output-dir", f"{d}/out", "--cache", f"{d}/cache", *arguments], check=True, capture_output=True, text=True)
        return compiled, {name[:-4]: np.load(f"{d}/out/{name}").astype(np.float64) for name in os.listdir(f"{d}/out")}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("models")
    p.add_argument("--only", nargs="*", default=["llama_decode_fp16", "bert_base", "vit_b_16"])
    p.add_argument("--fp16", action="store_true")
    a = p.parse_args()
    kiln, half = os.path.abspath(a.kiln), ["--fp16"] if a.fp16 else []
    for path in sorted(glob.glob(f"{a.models}/*.onnx")):
        name = os.path.basename(path)[:-5]
        if name not in a.only:
            continue
        inputs = make_inputs(onnx.load(path), {})
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        expected = {o.name.replace("/", "_").replace(":", "_"): r.astype(np.float64) for o, r in zip(session.get_outputs(), session.run(None, inputs)) if np.issubdtype(r.dtype, np.floating)}
        _, plain = run(kiln, path, inputs, half)
        compiled, packed = run(kiln, path, inputs, [*half, "--int4-weights"])
        row = {"model": name, **compiled["int4_weights"], "outputs": {}}
        for output, want in expected.items():
            error = lambda got: float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30))  # noqa: E731
            cosine = float(np.vdot(packed[output], want) / max(np.linalg.norm(packed[output]) * np.linalg.norm(want), 1e-30))
            row["outputs"][output] = {"plain": error(plain[output]), "int4": error(packed[output]), "cosine": cosine}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
