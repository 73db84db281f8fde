"""torch.compile with Kiln beside eager torch and inductor: answers, the time of the first call, and the median of later ones.
Weights are random. Needs torch, onnxscript, torchvision and transformers, and Kiln's package.

    PYTHONPATH=build/ci/python python bench/torch_backend.py [--device cuda] [--threads 2] [--cold N] [MODEL...]

Each model and backend has a process of its own. With --cold its first call is timed twice: with empty caches, and in a second
process with the caches of the first (N of the cold ones run at a time; the warm ones measure alone and give the other figures).
`reduce-overhead` is inductor with CUDA graphs.
"""
import argparse
import concurrent.futures
import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings


def image(name):
    import torch
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)()
    if name.startswith("vit"):
        torch.nn.init.normal_(model.heads.head.weight)  # zeros otherwise, which any answer would equal
    return model, torch.randn(1, 3, 224, 224)


def text(kind):
    import torch
    import transformers

    torch.manual_seed(0)
    if kind == "bert":
        config = transformers.BertConfig(num_hidden_layers=6, hidden_size=384, num_attention_heads=6, intermediate_size=1536)
        return transformers.BertModel(config), torch.randint(0, 30000, (1, 64))
    config = transformers.GPT2Config(n_layer=4, n_embd=384, n_head=6, use_cache=False)
    return transformers.GPT2Model(config), torch.randint(0, 50000, (1, 64))


MODELS = {
    "resnet18": lambda: image("resnet18"),
    "mobilenet_v3_small": lambda: image("mobilenet_v3_small"),
    "efficientnet_b0": lambda: image("efficientnet_b0"),
    "vit_b_16": lambda: image("vit_b_16"),
    "bert_6_layers_384": lambda: text("bert"),
    "gpt2_4_layers_384": lambda: text("gpt2"),
}
BACKENDS = ["kiln", "inductor", "reduce-overhead"]


def tensors_of(result):
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    parts = result.to_tuple() if hasattr(result, "to_tuple") else result
    return [t for part in parts if part is not None for t in tensors_of(part)]


def timed(function, device):
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    result = function()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3, result


def median_ms(function, device, runs=30):
    return statistics.median(timed(function, device)[0] for _ in range(runs))


def unwaited_ms(function, device, runs):
    """The median time of the caller's thread, when nothing is under way and nothing is waited for; and the time of a call when
    many are enqueued."""
    import torch

    wait, times = torch.cuda.synchronize if device == "cuda" else lambda: None, []
    for _ in range(runs):
        wait()
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    wait()
    begin = time.perf_counter()
    for _ in range(runs):
        function()
    wait()
    return statistics.median(times) * 1e3, (time.perf_counter() - begin) * 1e3 / runs


@contextlib.contextmanager
def alone(lock):
    """While processes that start wait for the one that measures."""
    if not lock:
        yield
        return
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measure(name, backend, device, threads, lock, calls):
    """One model with one backend, in this process, as a dict of figures."""
    import torch
    from kiln import torch_backend

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    model, x = MODELS[name]()
    model, x = model.eval().to(device), x.to(device)
    with torch.no_grad(), alone(lock):
        expected = tensors_of(model(x))
        eager = median_ms(lambda: model(x), device)
        more = {"kiln": {"backend": torch_backend.kiln, "options": {"threads": threads}}, "inductor": {}, "reduce-overhead": {"mode": "reduce-overhead"}}
        compiled = torch.compile(model, **more[backend])
        first, result = timed(lambda: compiled(x), device)
        error = max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(tensors_of(result), expected))
        for _ in range(calls):
            compiled(x)
        later = median_ms(lambda: compiled(x), device, max(30, calls))
        host, queued = unwaited_ms(lambda: compiled(x), device, max(30, calls)) if calls > 1 else (0, 0)
    counters = torch._dynamo.utils.counters
    refused = [r.refused for r in torch_backend.graphs() if r.refused]
    found = sum(getattr(r, "found", False) for r in torch_backend.graphs())
    return {"eager_ms": eager, "ms": later, "host_ms": host, "queued_ms": queued, "first_s": first / 1e3, "error": error, "graphs": counters["stats"]["unique_graphs"], "breaks": sum(counters["graph_break"].values()), "refused": refused, "found": found}


def in_process(name, backend, chosen, caches=None, lock=""):
    env = dict(os.environ)
    if caches:
        env |= {v: os.path.join(caches, v.lower()) for v in ("KILN_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    done = subprocess.run([sys.executable, __file__, name, "--only", backend, "--device", chosen.device, "--threads", str(chosen.threads), "--calls", str(chosen.calls), "--lock", lock], capture_output=True, text=True, env=env)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["?"])[-1][:300]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def show(name, backend, cold, f):
    if "failed" in f:
        print(f"{name:20} {backend:16} failed: {f['failed']}", flush=True)
        return
    first = f"first call {cold['first_s']:5.1f} s cold, {f['first_s']:5.1f} s warm" if cold else f"first call {f['first_s']:5.1f} s"
    if f["host_ms"]:
        first = f"caller's thread {f['host_ms']:.3f} ms, enqueued {f['queued_ms']:.3f} ms, " + first
    note = f"; runs eagerly: {f['refused']}" if f["refused"] else ""
    print(f"{name:20} {backend:16} {f['ms']:8.3f} ms (eager {f['eager_ms']:.3f}), {first}, error {f['error']:.1e}, {f['graphs']} graphs, {f['breaks']} breaks, {f['found']} found in the cache{note}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cold", type=int, default=0)
    parser.add_argument("--calls", type=int, default=1, help="calls before those that are timed; with more than 1, calls without a wait are timed, too")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--starting", type=int, default=1, help="processes that load torch while another one measures")
    parser.add_argument("--lock", default="", help=argparse.SUPPRESS)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.only:
        print(json.dumps(measure(chosen.models[0], chosen.only, chosen.device, chosen.threads, chosen.lock, chosen.calls)))
        return
    pairs = [(name, backend) for name in chosen.models for backend in chosen.backends.split(",")]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(max(1, chosen.cold)) as pool:
        caches = {p: os.path.join(folder, "-".join(p)) for p in pairs}
        cold = {p: pool.submit(in_process, *p, chosen, caches[p]) for p in pairs} if chosen.cold else {}
        cold = {p: f.result() for p, f in cold.items()}
        lock = os.path.join(folder, "lock")
        pool = concurrent.futures.ThreadPoolExecutor(chosen.starting)
        warm = {p: pool.submit(in_process, *p, chosen, caches[p] if chosen.cold else None, lock) for p in pairs}
        for p, result in warm.items():
            show(*p, cold.get(p), result.result())


if __name__ == "__main__":
    main()
