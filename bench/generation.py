#!/usr/bin/env python3
"""Ids per second of `kiln generate` and of onnxruntime, which take turns.

    generation.py KILN MODEL.onnx [--prompt 33] [--steps 256] [--turns 5]
    generation.py KILN --made 6,384,6,8000 ...      a random decoder: layers, width, heads, vocabulary

onnxruntime runs the same greedy loop with IO binding: what a step writes is bound as what the next one reads, so no
cache is copied by Python. Both use all processors. Kiln's first turn has an empty cache (cold), the others find it.
Times to the first id include opening the model; onnxruntime's include reading the .onnx file.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "tools"))
import generate_test


def made(path, layers, width, heads, vocabulary, context):
    generate_test.LAYERS, generate_test.WIDTH, generate_test.HEADS = layers, width, heads
    generate_test.HEAD, generate_test.VOCABULARY, generate_test.CONTEXT = width // heads, vocabulary, context
    generate_test.SPREAD = 0.02
    generate_test.decoder(path)


def onnxruntime_turn(path, prompt, steps):
    begin = time.perf_counter()
    options = ort.SessionOptions()
    options.log_severity_level = 3
    s = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs, outputs = {i.name: i for i in s.get_inputs()}, [o.name for o in s.get_outputs()]
    caches = [n for n in inputs if n.startswith("past")]
    state = {n: ort.OrtValue.ortvalue_from_numpy(np.zeros([1 if d == "batch_size" else d if isinstance(d, int) else 0 for d in inputs[n].shape], np.float32)) for n in caches}
    ids, past, tokens, times = prompt[None], 0, [], []
    for _ in range(steps):
        total = past + ids.shape[1]
        binding = s.io_binding()
        if "input_ids" in inputs:
            binding.bind_cpu_input("input_ids", ids)
        if "attention_mask" in inputs:
            binding.bind_cpu_input("attention_mask", np.ones((1, total), np.int64))
        if "position_ids" in inputs:
            binding.bind_cpu_input("position_ids", np.arange(past, total)[None])
        for n in caches:
            binding.bind_ortvalue_input(n, state[n])
        for o in outputs:
            binding.bind_output(o, "cpu")
        s.run_with_iobinding(binding)
        results = dict(zip(outputs, binding.get_outputs()))
        state = {n: results[n.replace("past_key_values", "present")] for n in caches}
        tokens.append(int(results["logits"].numpy()[0, -1].argmax()))
        times.append(time.perf_counter())
        past, ids = total, np.array([[tokens[-1]]])
    return tokens, (times[0] - begin) * 1e3, (steps - 1) / (times[-1] - times[0])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln"), p.add_argument("model", nargs="?")
    p.add_argument("--made"), p.add_argument("--prompt", type=int, default=33)
    p.add_argument("--steps", type=int, default=256), p.add_argument("--turns", type=int, default=5)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        model = a.model
        if a.made:
            model = os.path.join(work, "made.onnx")
            made(model, *map(int, a.made.split(",")), a.prompt + a.steps)
        prompt = np.random.default_rng(0).integers(1, 200, a.prompt)
        np.save(os.path.join(work, "ids.npy"), prompt)
        compiled = os.path.join(work, "model.kiln")
        subprocess.run([a.kiln, "compile", model, "-o", compiled, "--quiet", "--dim", "past_sequence_length=0:65536"], check=True)
        command = [a.kiln, "generate", compiled, "--prompt-ids", os.path.join(work, "ids.npy"), "--max-new-tokens", str(a.steps), "--json", "--cache", os.path.join(work, "cache")]
        ours, theirs = [], []
        for _ in range(a.turns + 1):
            ours.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            theirs.append(onnxruntime_turn(model, prompt, a.steps))
        cold, ours = ours[0], ours[1:]
        middle = lambda values: statistics.median(values)
        mine, peer = middle([o["tokens_per_second"] for o in ours]), middle([t[2] for t in theirs[1:]])
        last = ours[-1]
        print(f"ids/s {mine:.0f}, onnxruntime {peer:.0f}: {mine / peer:.2f} x")
        print(f"first id ms: cold {cold['time_to_first_token_ms']:.0f}, warm {middle([o['time_to_first_token_ms'] for o in ours]):.1f}, onnxruntime {middle([t[1] for t in theirs[1:]]):.1f}")
        print(f"plans {last['plans']}, patches {last['patches']}, kernels compiled cold {cold['compiled']}, of them after the first step {cold['compiled_after_first']}; warm {last['compiled']}")
        print(f"copied between host and device {last['copied_bytes_per_step']} bytes a step; state at the end {last['state_bytes']} bytes")
        print("the same ids" if all(o["tokens"] == theirs[0][0] for o in ours) else "the ids differ")


if __name__ == "__main__":
    main()
