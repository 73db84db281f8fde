#!/usr/bin/env python3
"""Steps and prompts of a llama of 1.2 B parameters in f16 on an NVIDIA GPU, `kiln perf` beside torch.compile.

    bench/gpu/llama_steps.py export FILE [--context 1024] [--stacked]  # graph without weights, a few hundred KB; any machine
    bench/gpu/llama_steps.py run KILN [--static FILE ...] [--batches 1,8,32] [--prompts 128,512,2048] [--past 1000]

Two forms of the graph: `genai`, as onnxruntime-genai writes it (bench/gpu/llama.py), and `static`, a module with caches of
a fixed number of rows as torch exports it (--static, one file for each number of rows), a tensor for each layer or, with
--stacked, one for all. Both get the same random weights,
made on the GPU. PyTorch: a module with static caches in torch.compile, without dynamic sizes, captured as a CUDA graph. A prompt
attends to its own keys causally. A step takes the faster of two ways: keys repeated for the heads that share them, with a
mask (`mask`), and FlashAttention over the rows that are filled, which a capture fixes (`rows`). Times are those of runs that
are queued one after the other. The ids chosen for the last position are compared. With --per-kernel, the slowest kernels of
each case with their bytes a second.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import llama  # noqa: E402

SHAPE = [16, 2048, 32, 8, 8192, 128256]
SMALL_INNER, SMALL_VOCABULARY = 64, 256  # of the module that is exported; `run` puts the real sizes in their place


def export(path, context, stacked):
    import torch
    from torch import nn
    from torch.nn import functional as F
    layers, width, heads, kv = SHAPE[:4]
    depth = width // heads

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            y = x.float()
            return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + llama.EPSILON)).to(x.dtype) * self.weight

    def rotate(x, cos, sin):
        a, b = x[..., :depth // 2], x[..., depth // 2:]
        return x * cos + torch.cat([-b, a], -1) * sin

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(SMALL_VOCABULARY, width)
            for name, rows, columns in ("q", width, width), ("k", width, kv * depth), ("v", width, kv * depth), ("o", width, width), ("gate", width, SMALL_INNER), ("up", width, SMALL_INNER), ("down", SMALL_INNER, width):
                setattr(self, name, nn.ModuleList(nn.Linear(rows, columns, bias=False) for _ in range(layers)))
            self.norms = nn.ModuleList(Norm() for _ in range(2 * layers + 1))
            self.head = nn.Linear(width, SMALL_VOCABULARY, bias=False)
            angles = torch.arange(context)[:, None] * llama.THETA ** (-torch.arange(0, depth, 2) / depth)
            self.register_buffer("cos", torch.cat([angles, angles], -1).cos())
            self.register_buffer("sin", torch.cat([angles, angles], -1).sin())

        def forward(self, ids, pos, *caches):
            if not stacked:
                caches = caches[:layers], caches[layers:]
            k_cache, v_cache = caches
            batch, count = ids.shape
            x = self.embed(ids)
            cos, sin = (table[pos].to(x.dtype)[None, None] for table in (self.cos, self.sin))
            mask = torch.arange(context)[None, :] <= pos[:, None]
            keys, values = [], []
            for i in range(layers):
                y = self.norms[2 * i](x)
                q, k, v = (part[i](y).view(batch, count, -1, depth).transpose(1, 2) for part in (self.q, self.k, self.v))
                index = pos.view(1, 1, count, 1).expand(batch, kv, count, depth)
                keys.append(k_cache[i].scatter(2, index, rotate(k, cos, sin)))
                values.append(v_cache[i].scatter(2, index, v))
                k, v = (c[-1][:, :, None].expand(batch, kv, heads // kv, context, depth).reshape(batch, heads, context, depth) for c in (keys, values))
                scores = (rotate(q, cos, sin) @ k.transpose(-1, -2)).float() / math.sqrt(depth)
                weights = torch.softmax(scores.masked_fill(~mask[None, None], float("-inf")), -1).to(x.dtype)
                x = x + self.o[i]((weights @ v).transpose(1, 2).reshape(batch, count, width))
                y = self.norms[2 * i + 1](x)
                x = x + self.down[i](F.silu(self.gate[i](y)) * self.up[i](y))
            logits = self.head(self.norms[-1](x))
            return (logits, torch.stack(keys), torch.stack(values)) if stacked else (logits, *keys, *values)

    caches = [torch.zeros(2, kv, context, depth, dtype=torch.half) for _ in range(2 * layers)]
    if stacked:
        caches = [torch.stack(caches[:layers]), torch.stack(caches[layers:])]
    inputs, outputs = ([f"{part}{end}{number}" for part in "kv" for number in ([""] if stacked else range(layers))] for end in ("_cache", "_out"))
    with torch.no_grad():
        torch.onnx.export(Decoder().half().eval(), (torch.zeros(2, 3, dtype=torch.long), torch.arange(3), *caches), path, dynamo=False, opset_version=17,
                          input_names=["ids", "pos", *inputs], output_names=["logits", *outputs],
                          dynamic_axes={"ids": {0: "batch", 1: "sequence"}, "pos": {0: "sequence"}, **{name: {int(stacked): "batch"} for name in inputs}})
    strip(path)


def strip(path):
    """Leaves only the names and dims of weights in the file."""
    model = onnx.load(path)
    real = {SMALL_INNER: SHAPE[4], SMALL_VOCABULARY: SHAPE[5]}
    at = 0
    for t in model.graph.initializer:
        if np.prod(t.dims) < 4096 or t.name in ("cos", "sin"):
            continue
        dims = [real.get(d, d) for d in t.dims]
        t.ClearField("raw_data")
        t.ClearField("dims")
        t.dims.extend(dims)
        t.data_location = onnx.TensorProto.EXTERNAL
        at += -at % 4096
        for key, value in ("location", "weights.bin"), ("offset", str(at)), ("length", str(2 * math.prod(dims))):
            t.external_data.add(key=key, value=value)
        at += 2 * math.prod(dims)
    for output in model.graph.output:
        for d in output.type.tensor_type.shape.dim:
            if d.dim_value in real:
                d.dim_value = real[d.dim_value]
    del model.graph.value_info[:]
    onnx.save(model, path)


class Weights(llama.Llama):
    """The weights of bench/gpu/llama.py's names, drawn on the GPU."""

    def tensors(self):
        import torch
        w, kv = self.width, self.kv * self.head
        shapes = {"embed": (self.vocabulary, w)}
        for i in range(self.layers):
            shapes |= {f"{i}.qkv": (w, w + 2 * kv), f"{i}.o": (w, w), f"{i}.gate": (w, self.inner), f"{i}.up": (w, self.inner), f"{i}.down": (self.inner, w)}
        shapes["head"] = (w, self.vocabulary)
        for seed, (name, size) in enumerate(shapes.items()):
            random = torch.Generator(device="cuda").manual_seed(seed)
            yield name, torch.randn(size, generator=random, device="cuda", dtype=torch.half) * (1.0 if name == "embed" else size[0] ** -0.5)

    def weights(self):
        for name, tensor in self.tensors():
            yield name, tensor.cpu().numpy()

    def fill(self, skeleton, to):
        """Writes the weights of a stripped file, which are in the order of their use, and returns the path of the model."""
        os.makedirs(to, exist_ok=True)
        model = onnx.load(skeleton, load_external_data=False)
        places = {t.name: int(next(e.value for e in t.external_data if e.key == "offset")) for t in model.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL}
        used = [n.input[0 if n.op_type == "Gather" else 1] for n in model.graph.node if n.op_type in ("Gather", "MatMul")]
        names = [n for n in used if n in places]
        kv = self.kv * self.head
        arrays = []
        for name, tensor in self.tensors():
            parts = tensor.split([self.width, kv, kv], 1) if name.endswith(".qkv") else [tensor]
            arrays += [p.contiguous() for p in parts]
        assert len(arrays) == len(names), (len(arrays), len(names))
        with open(os.path.join(to, "weights.bin"), "wb") as f:
            for name, array in zip(names, arrays):
                f.seek(places[name])
                f.write(array.cpu().numpy().tobytes())
        path = os.path.join(to, "model.onnx")
        onnx.save(model, path)
        return path


def torch_case(batch, count, past, context, way):
    """One process: compiles, waits for a line on standard input, times, and prints JSON."""
    import torch
    from torch.nn import functional as F
    llm = Weights(SHAPE, context)
    weights = dict(llm.tensors())
    cos, sin = (torch.from_numpy(np.concatenate([a, a], -1)).cuda() for a in llm.rotations())
    # A tensor for each: inductor copies the whole of a tensor of which a part is written.
    caches = [[torch.zeros(batch, llm.kv, context, llm.head, dtype=torch.half, device="cuda") for _ in range(2)] for _ in range(llm.layers)]
    ones = torch.ones(llm.width, dtype=torch.half, device="cuda")
    columns = torch.arange(context, device="cuda")

    def rotate(x, position):
        a, b = x.chunk(2, -1)
        return x * cos[position] + torch.cat([-b, a], -1) * sin[position]

    def step(ids, position):
        x = weights["embed"][ids]
        mask = (columns <= position[:, None])[None, None]
        for i in range(llm.layers):
            q, k, v = (F.rms_norm(x, (llm.width,), ones, llama.EPSILON) @ weights[f"{i}.qkv"]).split([llm.width, llm.kv * llm.head, llm.kv * llm.head], -1)
            q, k, v = (t.unflatten(-1, (-1, llm.head)).transpose(1, 2) for t in (q, k, v))
            q, k = rotate(q, position), rotate(k, position)
            caches[i][0].index_copy_(2, position, k)
            caches[i][1].index_copy_(2, position, v)
            if way == "mask":
                k, v = (caches[i][j][:, :, None].expand(-1, -1, llm.heads // llm.kv, -1, -1).reshape(batch, llm.heads, context, llm.head) for j in (0, 1))
                a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            elif way == "rows":
                a = F.scaled_dot_product_attention(q, *(c[:, :, :past + 1] for c in caches[i]), enable_gqa=True)
            else:
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + a.transpose(1, 2).flatten(2) @ weights[f"{i}.o"]
            n = F.rms_norm(x, (llm.width,), ones, llama.EPSILON)
            x = x + (F.silu(n @ weights[f"{i}.gate"]) * (n @ weights[f"{i}.up"])) @ weights[f"{i}.down"]
        return F.rms_norm(x, (llm.width,), ones, llama.EPSILON) @ weights["head"]

    ids = torch.from_numpy(case_ids(batch, count)).cuda()
    position = torch.arange(past, past + count, device="cuda")
    with torch.no_grad():
        begin = time.perf_counter()
        compiled = torch.compile(step, fullgraph=True, dynamic=False)
        for _ in range(3):
            logits = compiled(ids, position)
        chosen = logits[:, -1].argmax(-1).tolist()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = compiled(ids, position)
        torch.cuda.synchronize()
        print(json.dumps({"compile_s": time.perf_counter() - begin}), flush=True)
        sys.stdin.readline()
        times, runs = [], 20
        for _ in range(6):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            for _ in range(runs):
                graph.replay()
            last.record()
            torch.cuda.synchronize()
            times.append(first.elapsed_time(last) / runs)
    print(json.dumps({"ms": sorted(times[1:])[2], "chosen": chosen}), flush=True)


def case_ids(batch, count):
    return np.random.default_rng(batch * 4096 + count).integers(0, SHAPE[5], (batch, count))


def caches_of(model):
    """The rows of the caches of a static form, and the options of `kiln perf` that feed them."""
    graph = onnx.load(model, load_external_data=False).graph
    feeds = [f"{output.name}={cache.name}" for output, cache in zip(graph.output[1:], graph.input[2:])]
    return graph.input[2].type.tensor_type.shape.dim[-2].dim_value, [part for feed in feeds for part in ("--feed", feed)]


def weight_bytes():
    layers, width, heads, kv, inner, vocabulary = SHAPE
    return 2 * (layers * (2 * width * width + 2 * width * kv * (width // heads) + 3 * width * inner) + width * vocabulary)


def flops(batch, count):
    layers, width, heads, kv, _, vocabulary = SHAPE
    return batch * count * weight_bytes() + 2 * layers * batch * count * count * width


def run(o):
    work = o.keep or tempfile.mkdtemp()
    os.makedirs(work, exist_ok=True)
    cases = [(int(b), 1, o.past) for b in o.batches.split(",") if b] + [(1, int(n), 0) for n in o.prompts.split(",") if n]
    peers = {}
    if not o.no_torch:
        for case in cases:
            context = next(c for c in (1024, 4096, 8192, 32768) if sum(case[1:]) <= c)
            for way in ("mask", "rows") if case[1] == 1 else ("causal",):
                arguments = [sys.executable, os.path.abspath(__file__), "torch", *map(str, case), str(context), way]
                peers.setdefault(case, {})[way] = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    models, feeds, failed = {}, {}, 0
    llm = Weights(SHAPE, 8192)

    def kiln(*arguments):
        done = subprocess.run([o.kiln, *arguments], capture_output=True, text=True, timeout=o.limit)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or done.stdout.strip())[-600:])
        return done.stdout

    def compiled(name, path, *more):
        begin = time.perf_counter()
        kiln("compile", path, "-o", f"{work}/{name}.kiln", "--quiet", *o.compile.split(), *more)
        print(f"{name}: compiled in {time.perf_counter() - begin:.1f} s", flush=True)
        return f"{work}/{name}.kiln"

    if "genai" in o.forms:
        llm.save(f"{work}/genai.onnx")
        models["genai"] = compiled("genai", f"{work}/genai.onnx")
    for file in o.static:
        model = llm.fill(file, f"{work}/{os.path.basename(file)}.d")
        rows, feeds[model] = caches_of(model)
        models[f"static {rows}"] = model if o.fixed else compiled(f"static_{rows}", model)
        feeds[f"static {rows}"] = feeds.pop(model)
    for case, ways in peers.items():
        for way, peer in ways.items():
            print("torch.compile", case, way, peer.stdout.readline().strip() or "FAILED", flush=True)

    def given(**arrays):
        for name, array in arrays.items():
            np.save(f"{work}/{name}.npy", array)
        return [part for name in arrays for part in ("--input", f"{name}={work}/{name}.npy")]

    for case in cases:
        batch, count, past = case
        theirs = None
        print(f"batch {batch}, {count} ids after {past}", flush=True)
        for way, peer in peers.get(case, {}).items():
            out, _ = peer.communicate("go\n")
            if peer.returncode:
                print(f"  torch.compile, {way}: failed", flush=True)
                continue
            found = json.loads(out.strip().splitlines()[-1])
            print(f"  torch.compile, {way}: {found['ms']:.3f} ms", flush=True)
            theirs = min(theirs or found, found, key=lambda t: t["ms"])
        for name, file in models.items():
            ids, flat = case_ids(batch, count), []
            if name == "genai":
                flat = [*given(input_ids=ids, attention_mask=np.ones((batch, past + count), np.int64)), "--dim", f"past_sequence_length={past}", "--dim", f"total_sequence_length={past + count}"]
            else:
                rows = int(name.split()[1])
                if past + count > rows or (rows > 1024 and past + count <= 1024):
                    continue
                if o.fixed:
                    file = compiled(f"static_{rows}", file, "--dim", f"batch={batch}", "--dim", f"sequence={count}")
                flat = [*given(ids=ids, pos=np.arange(past, past + count)), *feeds[name]]
            compared = 1 < count <= 512
            flat += ["--output-dir", f"{work}/out"] if compared else []
            try:
                p = json.loads(kiln("perf", file, "--device", o.device, "--cache", f"{work}/cache", "--specialize", "eager", "-n", "60", "--json", *flat, *(["--per-kernel"] if o.per_kernel else []), *o.perf.split()))
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                failed += 1
                print(f"  {name}: FAILED {e}", flush=True)
                continue
            ms = p.get("queued_ms") or p["p50_ms"]
            rate = f"{weight_bytes() / ms / 1e9:.2f} TB/s of weights" if count == 1 else f"{flops(batch, count) / ms / 1e9:.0f} TFLOP/s"
            print(f"  {name}: {ms:.3f} ms ({p['p50_ms']:.3f} waited for), {p['launches']} launches, {rate}" + (f", {theirs['ms'] / ms:.2f} x" if theirs else ""), flush=True)
            if theirs and compared:
                logits = np.load(f"{work}/out/logits.npy")[:, -1].astype(np.float32)
                mine, other = logits.argmax(-1), theirs["chosen"]
                gap = float((logits.max(-1) - logits[np.arange(batch), other]).max())
                print(f"     the last id is {'equal' if list(mine) == other else f'different, its logits by {gap:.4f} of {logits.std():.3f}'}", flush=True)
                failed += gap > 0.1 * logits.std()
            totals = {}
            for k in p.get("per_kernel") or []:
                time_ms, launches, moved = totals.get(k["symbol"], (0, 0, 0))
                totals[k["symbol"]] = time_ms + k["ms"], launches + k["launches"], moved + k["bytes"]
            for symbol, (time_ms, launches, moved) in sorted(totals.items(), key=lambda t: -t[1][0])[:12]:
                print(f"     {time_ms:7.4f} ms {launches:4} launches {1e3 * time_ms / launches:8.2f} us each {moved / time_ms / 1e6:6.0f} GB/s {symbol}", flush=True)
    return 1 if failed else 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = arguments.add_subparsers(dest="way", required=True)
    way = ways.add_parser("export")
    way.add_argument("file")
    way.add_argument("--context", type=int, default=1024)
    way.add_argument("--stacked", action="store_true", help="one tensor for the caches of all layers")
    way = ways.add_parser("torch")
    way.add_argument("case", type=int, nargs=4)
    way.add_argument("how")
    way = ways.add_parser("run")
    way.add_argument("kiln")
    way.add_argument("--static", nargs="*", default=[])
    way.add_argument("--fixed", action="store_true", help="compile the static form for the sizes of each case, instead of once")
    way.add_argument("--forms", default="genai")
    way.add_argument("--batches", default="1,8,32")
    way.add_argument("--prompts", default="128,512,2048")
    way.add_argument("--past", type=int, default=1000)
    way.add_argument("--device", default="cuda:0")
    way.add_argument("--keep", help="folder for models and the cache")
    way.add_argument("--no-torch", action="store_true")
    way.add_argument("--per-kernel", action="store_true")
    way.add_argument("--perf", default="", help="more options of kiln perf")
    way.add_argument("--compile", default="", help="more options of kiln compile, such as --compile=--int4-weights")
    way.add_argument("--limit", type=float, default=120, help="seconds for one command")
    o = arguments.parse_args()
    if o.way == "export":
        return export(o.file, o.context, o.stacked)
    if o.way == "torch":
        return torch_case(*o.case, o.how)
    return run(o)


if __name__ == "__main__":
    sys.exit(main())
