#!/usr/bin/env python3
"""Steps and prompts of a decoder with weights of 32, 8 and 4 bits on a CPU, beside onnxruntime.

    packed_weights.py KILN FOLDER [--threads 1] [--rows 1 7 17 64] [--rounds 3]

Makes a decoder of 4 layers of 1024 in FOLDER and quantizes its products with onnxruntime's MatMulNBitsQuantizer (blocks
of 32, symmetric). Kiln and onnxruntime take turns; a line has medians in ms for a number of new ids after 64 past ones,
and the median ratio of a round. Outputs are compared first: 2e-2 of the largest for quantized weights (onnxruntime rounds
activations to bytes for some of them), 1e-4 else. Needs onnx, onnxruntime and what its quantizer needs (onnx_ir)."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

import generation

PAST = 64


def make(folder):
    files = {32: f"{folder}/f32.onnx"}
    generation.made(files[32], 4, 1024, 16, 8000, 512)
    for bits in (8, 4):
        quantizer = MatMulNBitsQuantizer(onnx.load(files[32]), bits=bits, block_size=32, is_symmetric=True)
        quantizer.process()
        files[bits] = f"{folder}/{bits}.onnx"
        quantizer.model.save_model_to_file(files[bits])
    return files


def inputs_of(session, rows):
    random, sizes = np.random.default_rng(1), {"batch_size": 1, "sequence_length": rows, "past_sequence_length": PAST}
    made = {}
    for i in session.get_inputs():
        dims = [d if isinstance(d, int) else sizes.get(d, PAST + rows) for d in i.shape]
        made[i.name] = random.standard_normal(dims).astype(np.float32) if "float" in i.type else np.ones(dims, np.int64)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 7, 17, 64])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = args.threads, 3
    failed = False
    for bits, model in make(args.folder).items():
        plan = f"{args.folder}/{bits}.kiln"
        subprocess.run([args.kiln, "compile", model, "-o", plan, "--quiet"], check=True)
        session = onnxruntime.InferenceSession(model, options)
        for rows in args.rows:
            given = inputs_of(session, rows)
            with tempfile.TemporaryDirectory() as data:
                for name, array in given.items():
                    np.save(f"{data}/{name}.npy", array)
                common = [plan, "--load-inputs", data, "--threads", str(args.threads), "--cache", f"{args.folder}/cache"]
                subprocess.run([args.kiln, "run", *common, "--output-dir", f"{data}/out", "--quiet"], check=True, stdout=subprocess.DEVNULL)
                expected, got = session.run(["logits"], given)[0], np.load(f"{data}/out/logits.npy")
                error = float(np.abs(got - expected).max() / np.abs(expected).max())
                failed |= not error < (1e-4 if bits == 32 else 2e-2)
                rounds = []
                for _ in range(args.rounds):
                    done = subprocess.run([args.kiln, "perf", *common, "-n", "20", "--json"], check=True, capture_output=True, text=True)
                    times = []
                    for _ in range(20):
                        begin = time.perf_counter()
                        session.run(None, given)
                        times.append(1e3 * (time.perf_counter() - begin))
                    rounds.append((json.loads(done.stdout)["p50_ms"], statistics.median(times)))
            ours, theirs = (statistics.median(r[i] for r in rounds) for i in (0, 1))
            ratio = statistics.median(b / a for a, b in rounds)
            print(f"{bits:2} bits {os.path.getsize(plan) / 1e6:6.1f} MB {rows:4} rows: kiln {ours:8.3f}, onnxruntime {theirs:8.3f}, ratio {ratio:6.2f}, error {error:.1e}", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
