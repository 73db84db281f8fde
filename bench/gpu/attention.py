#!/usr/bin/env python3
"""Attention on a GPU beside PyTorch's scaled_dot_product_attention: python3 bench/gpu/attention.py KILN [--device
cuda:0] [--only NAME ...]

Each case is an ONNX graph of products, scale, mask and softmax, which Kiln recognizes; answers are compared with
PyTorch in f32. Times are medians of runs that are queued one after the other (`kiln perf`'s queued_ms; CUDA events
around PyTorch's fastest back end).
"""
import argparse, json, os, subprocess, sys, tempfile
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#        name                batch, heads, key heads, queries, keys, depth, causal
CASES = {"long_causal": (1, 16, 16, 4096, 4096, 128, True), "long": (1, 16, 16, 4096, 4096, 64, False), "bert": (1, 12, 12, 128, 128, 64, False),
         "vit": (1, 12, 12, 197, 197, 64, False), "decode": (1, 32, 8, 1, 4096, 128, False), "odd": (2, 3, 3, 333, 517, 72, False),
         "grouped": (2, 16, 4, 1000, 1300, 128, True), "odd_long": (1, 16, 16, 777, 1111, 64, False),
         "queries_4": (1, 32, 8, 4, 4096, 128, False), "queries_16": (1, 32, 32, 16, 1024, 128, False), "queries_17": (1, 8, 8, 17, 4096, 128, False), "queries_256": (1, 8, 8, 256, 2048, 64, False)}
CASES.update({f"decode_{keys}": (1, 32, 8, 1, keys, 128, False) for keys in (64, 512, 1024, 2048, 8192, 16384)})
CASES.update({f"decode_b{batch}": (batch, 32, 8, 1, 4096, 128, False) for batch in (2, 3, 4, 8)})


def build(path, case):
    b, h, g, sq, sk, d, causal = case
    half, nodes, constants = TensorProto.FLOAT16, [], []

    def constant(name, array):
        constants.append(numpy_helper.from_array(array, name))
        return name
    k, v = "k", "v"
    if g != h:
        for t in "kv":
            nodes.append(helper.make_node("Unsqueeze", [t, constant("axis_" + t, np.array([2], np.int64))], [t + "1"]))
            nodes.append(helper.make_node("Expand", [t + "1", constant("many_" + t, np.array([b, g, h // g, sk, d], np.int64))], [t + "2"]))
            nodes.append(helper.make_node("Reshape", [t + "2", constant("flat_" + t, np.array([b, h, sk, d], np.int64))], [t + "3"]))
        k, v = "k3", "v3"
    nodes.append(helper.make_node("Transpose", [k], ["kt"], perm=[0, 1, 3, 2]))
    nodes.append(helper.make_node("MatMul", ["q", "kt"], ["s"]))
    nodes.append(helper.make_node("Mul", ["s", constant("scale", np.array(d ** -0.5, np.float16))], ["t"]))
    score = "t"
    if causal:
        mask = np.where(np.tril(np.ones((sq, sk), bool), sk - sq), 0, -np.inf).astype(np.float16)
        nodes.append(helper.make_node("Add", ["t", constant("mask", mask)], ["m"]))
        score = "m"
    nodes.append(helper.make_node("Softmax", [score], ["p"], axis=-1))
    nodes.append(helper.make_node("MatMul", ["p", v], ["y"]))
    inputs = [helper.make_tensor_value_info(n, half, dims) for n, dims in (("q", [b, h, sq, d]), ("k", [b, g, sk, d]), ("v", [b, g, sk, d]))]
    graph = helper.make_graph(nodes, "attention", inputs, [helper.make_tensor_value_info("y", half, [b, h, sq, d])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def torch_time(q, k, v, causal, runs=30):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    best = {}
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
        try:
            with sdpa_kernel(backend):
                call = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])
                for _ in range(3):
                    call()
                graph = torch.cuda.CUDAGraph()
                stream = torch.cuda.Stream()
                with torch.cuda.stream(stream), torch.cuda.graph(graph, stream=stream):
                    for _ in range(10):
                        call()
                times = []
                for _ in range(runs):
                    a, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                    a.record(); graph.replay(); e.record()
                    torch.cuda.synchronize()
                    times.append(a.elapsed_time(e) / 10)
                best[backend.name] = sorted(times)[len(times) // 2]
        except RuntimeError:
            torch.cuda.synchronize()
    return best


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--only", nargs="*")
    a = p.parse_args()
    import torch
    wrong = 0
    for name, case in CASES.items():
        if a.only and name not in a.only:
            continue
        b, h, g, sq, sk, d, causal = case
        with tempfile.TemporaryDirectory() as folder:
            build(f"{folder}/m.onnx", case)
            rng = np.random.default_rng(1)
            data = {n: rng.standard_normal(dims).astype(np.float16) for n, dims in (("q", (b, h, sq, d)), ("k", (b, g, sk, d)), ("v", (b, g, sk, d)))}
            given = []
            for n, array in data.items():
                np.save(f"{folder}/{n}.npy", array)
                given += ["--input", f"{n}={folder}/{n}.npy"]
            common = [f"{folder}/m.kiln", "--device", a.device, "--no-cache"]
            for command in (["compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln"], ["run", *common, "--output-dir", f"{folder}/out", *given]):
                done = subprocess.run([a.kiln, *command], capture_output=True, text=True, timeout=120)
                if done.returncode:
                    print(name, "FAILED", done.stderr.strip()[-300:])
                    break
            if done.returncode:
                wrong += 1
                continue
            perf = json.loads(subprocess.run([a.kiln, "perf", *common, "-n", "100", "--json"], capture_output=True, text=True, timeout=120).stdout)
            tensors = [torch.from_numpy(data[n]).cuda() for n in "qkv"]
            q, k, v = (t.float() for t in tensors)
            # The last query sees all keys; PyTorch's is_causal would align the first ones.
            seen = torch.ones(sq, sk, dtype=torch.bool, device="cuda").tril(sk - sq) if causal else None
            expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=h != g).cpu().numpy()
            got = np.load(f"{folder}/out/y.npy").astype(np.float32)
            error = np.linalg.norm(got - expected) / np.linalg.norm(expected)
            theirs = torch_time(*tensors, causal)
            ours = perf.get("queued_ms") or perf["p50_ms"]
            fastest = min(theirs, key=theirs.get)
            flops = 4 * b * h * sq * sk * d / (2 if causal else 1)
            wrong += not error < 2e-3
            print(f"{name:12} error {error:.1e} {'ok' if error < 2e-3 else 'WRONG'}  {perf['kernels']} kernels, ours {ours * 1e3:.1f} us ({flops / ours / 1e9:.0f} TFLOP/s, one run {perf['p50_ms'] * 1e3:.1f} us), PyTorch {fastest} {theirs[fastest] * 1e3:.1f} us, ratio {theirs[fastest] / ours:.2f}", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
