#!/usr/bin/env python3
"""Models on a GPU beside PyTorch, in one run, as a table.

    bench/gpu/models.py KILN MODELS_DIR [--device cuda:0] [--only NAME ...] [-n RUNS] [--max-autotune] [--json FILE] [--history FILE]

MODELS_DIR holds filled models (fill.py). For each: cold start (an empty cache: read, finalize, load, first run), warm
process, then the median of runs in f16 at batch 1, ours and PyTorch's in turn in three rounds. PyTorch runs the same
architecture (torchvision, transformers; random weights) as a CUDA graph of the eager model and, with --max-autotune, as
torch.compile(mode="max-autotune"); the faster one counts. The answers are checked by test/long/models_vs_onnxruntime.py
--device; run it first.
"""
import argparse, functools, json, os, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cpu_peers
import history

kiln_json = functools.partial(cpu_peers.kiln_json, timeout=300)


def torch_models():
    """name → (module in f16 on the GPU, inputs): made only when asked for."""
    import torch, torchvision

    def vision(build, size=224):
        def make():
            return build(weights=None).half().cuda().eval(), (torch.randn(1, 3, size, size, device="cuda", dtype=torch.half),)
        return make

    def bert():
        from transformers import BertConfig, BertModel
        model = BertModel(BertConfig()).half().cuda().eval()
        return model, (torch.randint(0, 30000, (1, 128), device="cuda"),)

    v = torchvision.models
    return {"resnet50": vision(v.resnet50), "vit_b_16": vision(v.vit_b_16), "mobilenet_v2": vision(v.mobilenet_v2), "bert_base": bert,
            "squeezenet1_1": vision(v.squeezenet1_1), "densenet121": vision(v.densenet121), "efficientnet_b0": vision(v.efficientnet_b0), "convnext_tiny": vision(v.convnext_tiny)}


def median(times):
    return sorted(times)[len(times) // 2]


def time_calls(call, runs):
    import torch
    times = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return median(times)


def capture(model, inputs):
    """The eager model as a CUDA graph."""
    import torch
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            model(*inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            model(*inputs)
    return graph.replay


def peers(make, autotune):
    """name → callable, compile seconds."""
    import torch
    model, inputs = make()
    began = time.time()
    calls = {"CUDA graph": (capture(model, inputs), time.time() - began)}
    if autotune:
        began = time.time()
        compiled = torch.compile(model, mode="max-autotune")
        with torch.no_grad():
            for _ in range(3):
                compiled(*inputs)
        torch.cuda.synchronize()

        def call():
            with torch.no_grad():
                compiled(*inputs)
        calls["max-autotune"] = (call, time.time() - began)
    return calls


def measure(a, name, make):
    path = os.path.join(a.models, name + ".onnx")
    with tempfile.TemporaryDirectory() as d:
        dims = ["--dim", "batch=1"] if "dynbatch" in name else []
        compiled = kiln_json(a.kiln, "compile", path, "-o", f"{d}/m.kiln", "--fp16", *dims)
        common = [f"{d}/m.kiln", "--device", a.device, "--cache", f"{d}/cache"]
        began = time.time()
        cold = kiln_json(a.kiln, "run", *common)
        cold_wall = time.time() - began
        began = time.time()
        warm = kiln_json(a.kiln, "run", *common)
        warm_wall = time.time() - began
        row = {"model": name, "cold_s": cold_wall, "cold": {k: cold[k] for k in ("read_ms", "finalize_ms", "load_ms", "first_run_ms")}, "warm_s": warm_wall, "misses": warm["cache"]["misses"], "launches": warm["launches"]}
        others = peers(make, a.max_autotune) if make else {}
        ours, theirs = [], {k: [] for k in others}
        for _ in range(3):
            ours.append(kiln_json(a.kiln, "perf", *common, "-n", a.n)["p50_ms"])
            for k, (call, _) in others.items():
                theirs[k].append(time_calls(call, a.n))
        row["ours_ms"] = median(ours)
        row["torch_ms"] = {k: median(t) for k, t in theirs.items()}
        row["torch_compile_s"] = {k: seconds for k, (_, seconds) in others.items()}
        if theirs:
            row["ratio"] = min(row["torch_ms"].values()) / row["ours_ms"]
        row["aot_s"] = compiled.get("elapsed_s")
        return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln")
    p.add_argument("models")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--only", nargs="*", default=["resnet50", "bert_base", "vit_b_16", "mobilenet_v2"])
    p.add_argument("-n", type=int, default=200)
    p.add_argument("--max-autotune", action="store_true")
    p.add_argument("--no-torch", action="store_true")
    p.add_argument("--json")
    history.add_options(p)
    a = p.parse_args()
    log = history.Log(a, a.kiln)
    table = {} if a.no_torch else torch_models()
    rows = []
    for name in a.only:
        try:
            row = measure(a, name, table.get(name))
            peers_text = ", ".join(f"{k} {t:.3f} ms (compile {row['torch_compile_s'][k]:.0f} s)" for k, t in row["torch_ms"].items())
            print(f"{name:18} ours {row['ours_ms']:.3f} ms ({row['launches']} launches), cold {row['cold_s']:.2f} s, warm {row['warm_s']:.2f} s; torch {peers_text}; ratio {row.get('ratio', 0):.2f}", flush=True)
            if "ratio" in row:
                way = min(row["torch_ms"], key=row["torch_ms"].get)
                log.add(history.gpu(a.device), history.case(name, 1, "f16"), f"{history.version_of('torch')}, {way}", row["ours_ms"], row["torch_ms"][way])
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            row = {"model": name, "error": str(e)}
            print(f"{name:18} FAILED {e}", flush=True)
        rows.append(row)
    if a.json:
        json.dump(rows, open(a.json, "w"), indent=1)
    sys.exit(any("error" in r for r in rows))


if __name__ == "__main__":
    main()
