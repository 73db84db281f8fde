#!/usr/bin/env python3
"""A llama of any size in f16, as onnxruntime-genai writes it, with `kiln generate` beside torch.compile.

    bench/gpu/llama.py KILN [--shape 16,2048,32,8,8192,128256] [--prompt 512] [--new 256] [--device cuda:0] [--keep DIR]

shape: layers, width, heads, heads of keys and values, width of the feed-forward part, vocabulary. Both sides have the
same random weights, take turns, and choose greedily. PyTorch runs a module with a static cache through torch.compile; its
step is captured as a CUDA graph that feeds itself, and its first ids are compared with ours. Times of the prompt are those
of its fourth run in a process (ours: `kiln perf` of the same sizes). --memory compares the memory that the device has in use
(nvidia-smi) beyond that of a tiny model with weights and caches. --history FILE appends the ratios of step and prompt.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import history
from llama_model import EPSILON, THETA, Llama  # noqa: F401 (THETA is for llama_steps.py)

def torch_side(llama, context):
    import torch
    from torch.nn import functional as F
    weights = {name: torch.from_numpy(a).cuda() for name, a in llama.weights()}
    cos, sin = (torch.from_numpy(np.concatenate([a, a], -1)).cuda() for a in llama.rotations())
    caches = torch.zeros(llama.layers, 2, 1, llama.kv, context, llama.head, dtype=torch.half, device="cuda")
    ones = torch.ones(llama.width, dtype=torch.half, device="cuda")
    columns = torch.arange(context, device="cuda")

    def rotate(x, position):
        a, b = x.chunk(2, -1)
        return x * cos[position] + torch.cat([-b, a], -1) * sin[position]

    def logits(ids, position):
        x = weights["embed"][ids]
        mask = columns[None, :] <= position[:, None]
        for i in range(llama.layers):
            q, k, v = (F.rms_norm(x, (llama.width,), ones, EPSILON) @ weights[f"{i}.qkv"]).split([llama.width, llama.kv * llama.head, llama.kv * llama.head], -1)
            q, k, v = (t.unflatten(-1, (-1, llama.head)).transpose(1, 2) for t in (q, k, v))
            caches[i, 0].index_copy_(2, position, rotate(k, position))
            caches[i, 1].index_copy_(2, position, v)
            k, v = (caches[i, j][:, :, None].expand(-1, -1, llama.heads // llama.kv, -1, -1).reshape(1, llama.heads, context, llama.head) for j in (0, 1))
            a = F.scaled_dot_product_attention(rotate(q, position), k, v, attn_mask=mask)
            x = x + a.transpose(1, 2).flatten(2) @ weights[f"{i}.o"]
            n = F.rms_norm(x, (llama.width,), ones, EPSILON)
            x = x + (F.silu(n @ weights[f"{i}.gate"]) * (n @ weights[f"{i}.up"])) @ weights[f"{i}.down"]
        return F.rms_norm(x[:, -1], (llama.width,), ones, EPSILON) @ weights["head"]

    return logits


def torch_times(llama, prompt, new):
    import torch
    context = 256
    while context < len(prompt) + new:
        context *= 2
    logits = torch_side(llama, context)
    with torch.no_grad():
        compiled = torch.compile(lambda ids, position: logits(ids, position).argmax(-1), fullgraph=True, dynamic=False)
        whole, positions = torch.tensor([prompt], device="cuda"), torch.arange(len(prompt), device="cuda")
        ids, position = torch.zeros(1, 1, dtype=torch.long, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda")
        for _ in range(3):
            compiled(whole, positions), compiled(ids, position)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # a step feeds the next one
            ids.copy_(compiled(ids, position)[None])
            position += 1
        for turn in range(4):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            ids.copy_(compiled(whole, positions)[None])
            torch.cuda.synchronize()
            first, tokens = time.perf_counter(), [ids.clone()]
            position.fill_(len(prompt))
            for _ in range(new - 1):
                graph.replay()
                tokens.append(ids.clone())
            torch.cuda.synchronize()
            times = {"prefill_ms": 1e3 * (first - begin), "step_ms": 1e3 * (time.perf_counter() - first) / (new - 1)}

        def score(ids):
            with torch.no_grad():
                return logits(torch.tensor([ids], device="cuda"), torch.arange(len(ids), device="cuda"))[0].float()

        return times | {"tokens": torch.cat(tokens).flatten().tolist(), "score": score}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kiln")
    arguments.add_argument("--shape", default="16,2048,32,8,8192,128256")
    arguments.add_argument("--prompt", type=int, default=512)
    arguments.add_argument("--new", type=int, default=256)
    arguments.add_argument("--device", default="cuda:0")
    arguments.add_argument("--keep", help="folder for the model and the cache")
    arguments.add_argument("--no-torch", action="store_true")
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--batch", type=int, default=1, help="equal prompts of kiln generate; PyTorch has one")
    arguments.add_argument("--compile", default="", help="more options of kiln compile, e.g. --int4-weights; not with --keep of another")
    arguments.add_argument("--per-kernel", action="store_true", help="print the slowest kernels of a step and of the prompt")
    arguments.add_argument("--memory", action="store_true", help="print the device's memory in use")
    history.add_options(arguments)
    o = arguments.parse_args()
    log = history.Log(o, o.kiln)
    work = o.keep or tempfile.mkdtemp()
    os.makedirs(work, exist_ok=True)
    llama = Llama([int(n) for n in o.shape.split(",")], 4096 if o.prompt + o.new <= 4096 else o.prompt + o.new)
    file = f"{work}/llama.kiln"
    if not os.path.exists(file):
        llama.save(f"{work}/llama.onnx")
        begin = time.perf_counter()
        subprocess.run([o.kiln, "compile", f"{work}/llama.onnx", "-o", file, "--quiet", *o.compile.split()], check=True)
        print(f"compile {time.perf_counter() - begin:.1f} s", flush=True)
    prompt = np.random.default_rng(7).integers(0, llama.vocabulary, o.prompt)
    np.save(f"{work}/prompt.npy", prompt if o.batch == 1 else np.tile(prompt, (o.batch, 1)))

    def ours(*more):
        done = subprocess.run([o.kiln, *more, "--device", o.device, "--cache", f"{work}/cache", "--json"], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr[-600:])
        return json.loads(done.stdout)

    def generate():
        return ours("generate", file, "--prompt-ids", f"{work}/prompt.npy", "--max-new-tokens", str(o.new))

    def perf(sequence, past, *more):
        return ours("perf", file, "--dim", "batch_size=1", "--dim", f"sequence_length={sequence}", "--dim", f"past_sequence_length={past}", "--dim", f"total_sequence_length={past + sequence}", *more)

    def most_memory(model, prompt_ids):
        """(The document of `kiln generate`, MiB in use on the device at most, before it MiB)."""
        used = lambda: int(subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"], capture_output=True, text=True).stdout)
        before, most, ended = used(), 0, threading.Event()

        def poll():
            nonlocal most
            while not ended.is_set():
                most = max(most, used())

        thread = threading.Thread(target=poll)
        thread.start()
        document = ours("generate", model, "--prompt-ids", prompt_ids, "--max-new-tokens", str(o.new))
        ended.set(), thread.join()
        return document, most - before

    cold = generate()
    print(f"cold: first id after {cold['time_to_first_token_ms']:.0f} ms", flush=True)
    theirs = None if o.no_torch else torch_times(llama, prompt.tolist(), o.new)
    mine = [generate() for _ in range(o.turns)]
    steps = [1e3 * o.batch / g["tokens_per_second"] for g in mine]
    prefill = {} if o.batch > 1 else {way: perf(o.prompt, 0, "--specialize", way, "-n", "20") for way in ("off", "eager")}
    print({k: v for k, v in mine[-1].items() if k != "tokens"})
    print("prompts in ms", [round(g["prefill_ms"], 2) for g in mine], flush=True)
    print(f"step ms {statistics.median(steps):.3f}; prompt ms", {way: round(p["p50_ms"], 3) for way, p in prefill.items()}, flush=True)
    if theirs:
        same = next((i for i, (a, b) in enumerate(zip(mine[-1]["tokens"], theirs["tokens"])) if a != b), o.new)
        print(f"torch.compile: step ms {theirs['step_ms']:.3f}, prompt ms {theirs['prefill_ms']:.3f}; the first {same} ids are equal; decode {theirs['step_ms'] / statistics.median(steps):.2f} x", flush=True)
        network, precision = f"llama {o.shape}", "int4" if "--int4-weights" in o.compile else "f16"
        peer = f"{history.version_of('torch')}, compile as a CUDA graph"
        log.add(history.gpu(o.device), history.case(network, o.batch, precision, f"steps after {o.prompt}"), peer, statistics.median(steps), theirs["step_ms"])
        if prefill:
            ours_ms = min(p["p50_ms"] for p in prefill.values())
            log.add(history.gpu(o.device), history.case(network, o.batch, precision, f"prompt of {o.prompt}"), peer, ours_ms, theirs["prefill_ms"])
        if same < o.new:
            scores = theirs["score"](prompt.tolist() + mine[-1]["tokens"][:same])
            a, b = mine[-1]["tokens"][same], theirs["tokens"][same]
            print(f"  then we chose a logit of {scores[a]:.4f} and PyTorch one of {scores[b]:.4f}; the largest is {scores.max():.4f}, the deviation {scores.std():.4f}", flush=True)
    if o.memory:
        tiny = Llama([1, 64, 2, 2, 128, 256], 4096)
        tiny.save(f"{work}/tiny.onnx")
        subprocess.run([o.kiln, "compile", f"{work}/tiny.onnx", "-o", f"{work}/tiny.kiln", "--quiet"], check=True)
        np.save(f"{work}/tiny.npy", prompt % 256)
        whole, of_tiny = most_memory(file, f"{work}/prompt.npy"), most_memory(f"{work}/tiny.kiln", f"{work}/tiny.npy")
        weights, caches = sum(array.nbytes for _, array in llama.weights()) / 2**20, whole[0]["state_bytes"] / 2**20
        print(f"memory: {whole[1] - of_tiny[1]} MiB beyond the {of_tiny[1]} of a tiny model; weights {weights:.0f}, caches {caches:.0f} MiB: {(whole[1] - of_tiny[1]) / (weights + caches):.3f}", flush=True)
    if o.per_kernel:
        for sequence, past, way in (1, o.prompt, "off"), (o.prompt, 0, "off"), (o.prompt, 0, "eager"):
            p = perf(sequence, past, "--specialize", way, "--per-kernel", "-n", "10")
            totals = {}
            for k in p["per_kernel"]:
                ms, launches = totals.get(k["symbol"], (0, 0))
                totals[k["symbol"]] = ms + k["ms"], launches + k["launches"]
            print(f"{sequence} ids after {past}, {way}: {p['p50_ms']:.3f} ms, {p['launches']} launches")
            for symbol, (ms, launches) in sorted(totals.items(), key=lambda t: -t[1][0])[:14]:
                print(f"  {ms:.4f} ms {launches:4} launches {symbol}", flush=True)


if __name__ == "__main__":
    main()
