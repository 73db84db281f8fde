#!/usr/bin/env python3
"""Models that onnxruntime's own tools quantize, against onnxruntime: error, size, time.

    quantized_models.py KILN MODELS_DIR [--only WORD ...] [--models resnet50 bert_base llama_decode_fp32_small] [--runs 3] [--device cuda:0] [--json FILE]

Ways: QDQ and QOperator (quantize_static, per tensor and per channel, calibrated by min-max, entropy and percentile),
dynamic, MatMulNBits of 4 and 8 bits, and f16 with the transformer optimizer's fusions. The error is ||kiln - ort|| /
||ort|| of the same model. A number in the middle may be rounded either way: two roundings that are independent differ by
the root of 2 of what each differs from f32. So the error must be below the root of 2 times that of the quantization itself
(||ort - f32|| / ||f32||), and kiln's distance to f32 at most 1.1 times the latter. Times are medians of interleaved runs of
both, in milliseconds. Needs onnxruntime with its quantization tools (sympy for f16).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models_vs_onnxruntime import make_inputs  # noqa: E402


class Reader:
    """Three batches of random inputs for the calibration."""

    def __init__(self, batches):
        self.batches = iter(batches)

    def get_next(self):
        return next(self.batches, None)


def static(form, calibration="MinMax", per_channel=False, activation="QUInt8"):
    def quantize(source, target, batches):
        from onnxruntime import quantization as q
        from onnxruntime.quantization.shape_inference import quant_pre_process
        prepared = target + ".prepared.onnx"
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        kind = q.QuantType.QInt8 if activation == "QInt8" else q.QuantType.QUInt8
        q.quantize_static(prepared, target, Reader(batches), quant_format=getattr(q.QuantFormat, form), per_channel=per_channel, activation_type=kind, weight_type=q.QuantType.QInt8,
                          calibrate_method=getattr(q.CalibrationMethod, calibration))
    return quantize


def dynamic(source, target, batches):
    from onnxruntime import quantization as q
    q.quantize_dynamic(source, target, weight_type=q.QuantType.QInt8)


def n_bits(bits):
    def quantize(source, target, batches):
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True, bits=bits)
        quantizer.process()
        quantizer.model.save_model_to_file(target)
    return quantize


def half(source, target, batches):
    from onnxruntime.transformers.float16 import convert_float_to_float16
    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def optimized(source, target, batches):
    from onnxruntime.transformers import optimizer
    made = optimizer.optimize_model(source, model_type="bert", num_heads=12, hidden_size=768, opt_level=0)
    made.convert_float_to_float16(keep_io_types=True)
    made.save_model_to_file(target)


CONV = {"qdq": static("QDQ"), "qdq_per_channel": static("QDQ", per_channel=True), "qdq_entropy": static("QDQ", "Entropy"), "qdq_int8": static("QDQ", activation="QInt8"),
        "qoperator": static("QOperator"), "qoperator_per_channel": static("QOperator", per_channel=True), "dynamic": dynamic, "fp16": half}
WAYS = {"resnet50": CONV, "bert_base": {"qdq": static("QDQ"), "qdq_per_channel": static("QDQ", per_channel=True), "qoperator": static("QOperator"), "dynamic": dynamic, "nbits4": n_bits(4),
                                        "nbits8": n_bits(8), "optimized_fp16": optimized},
        "llama_decode_fp32_small": {"dynamic": dynamic, "nbits4": n_bits(4), "nbits8": n_bits(8), "fp16": half}}


def session_of(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_kiln(kiln, path, feeds, folder, device="host"):
    """(outputs, the compiled file)"""
    given = []
    for name, a in feeds.items():
        np.save(f"{folder}/{name}.npy", a)
        given += ["--input", f"{name}={folder}/{name}.npy"]
    compiled = f"{folder}/m.kiln"
    shapes = [w for i in onnx.load(path, load_external_data=False).graph.input for d, size in zip(i.type.tensor_type.shape.dim, feeds[i.name].shape) if d.dim_param
              for w in ("--dim", f"{d.dim_param}={size}")]
    seen = {}
    for word in shapes[1::2]:
        seen.setdefault(word.split("=")[0], word)
    subprocess.run([kiln, "compile", path, "-o", compiled, *(w for word in seen.values() for w in ("--dim", word))], check=True, capture_output=True, text=True)
    subprocess.run([kiln, "run", compiled, "--device", device, "--quiet", "--cache", f"{folder}/cache", "--output-dir", f"{folder}/out", *given], check=True, capture_output=True, text=True)
    outputs = {f[:-4]: np.load(f"{folder}/out/{f}") for f in os.listdir(f"{folder}/out")}
    return outputs, compiled


def kiln_time(kiln, compiled, folder, device="host"):
    done = subprocess.run([kiln, "perf", compiled, "--device", device, "--cache", f"{folder}/cache", "-n", "7", "--warmup", "2", "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["p50_ms"]


def ort_time(session, feeds):
    times = []
    for _ in range(9):
        began = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - began) * 1e3)
    return float(np.median(times[2:]))


def distance(a, b):
    x, y = (np.concatenate([np.asarray(v, np.float64).ravel() for v in side]) for side in (a, b))
    return float(np.linalg.norm(x - y) / max(1e-30, np.linalg.norm(y)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("models")
    parser.add_argument("--models", dest="names", nargs="*", default=list(WAYS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--device", default="host")
    parser.add_argument("--json")
    o = parser.parse_args()
    rows, bad = [], 0
    for name in o.names:
        source = f"{o.models}/{name}.onnx"
        model = onnx.load(source)
        inputs = make_inputs(model, {})
        batches = [inputs]
        plain = session_of(source)
        base = plain.run(None, inputs)
        for way, quantize in {"f32": None, **WAYS[name]}.items():
            if o.only and way not in o.only:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/q.onnx"
                row = {"model": name, "way": way}
                try:
                    if quantize:
                        quantize(source, path, batches)
                    else:
                        path = source
                    session = session_of(path)
                    want = session.run(None, inputs)
                    row.update(onnx_mb=os.path.getsize(path) / 1e6, quantization=distance(want, base))
                    got, compiled = run_kiln(o.kiln, path, inputs, folder, o.device)
                    outputs = [got[v.name] for v in session.get_outputs()]
                    row.update(kiln_mb=os.path.getsize(compiled) / 1e6, error=distance(outputs, want), kiln_quantization=distance(outputs, base))
                    rounds = [(kiln_time(o.kiln, compiled, folder, o.device), ort_time(session, inputs)) for _ in range(o.runs)]
                    row.update(kiln_ms=float(np.median([r[0] for r in rounds])), ort_ms=float(np.median([r[1] for r in rounds])))
                    # Two ways of rounding the same numbers can differ by one step of the quantization.
                    row["right"] = row["error"] < max(1e-3, 2 ** 0.5 * row["quantization"]) and row["kiln_quantization"] < max(1e-3, 1.1 * row["quantization"])
                except subprocess.CalledProcessError as e:
                    row.update(right=False, why=e.stderr.strip()[-300:])
                except Exception as e:  # a tool of onnxruntime that cannot quantize this model
                    row.update(skipped=f"{type(e).__name__}: {str(e)[:200]}")
            bad += row.get("right") is False
            rows.append(row)
            print({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
