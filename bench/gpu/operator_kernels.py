#!/usr/bin/env python3
"""Kernels of single operators beside PyTorch, without kiln on the GPU's machine, as a table.

    bench/gpu/operator_kernels.py make KILN FOLDER CASE[:NAME=VALUE,...] ...    # anywhere
    bench/gpu/operator_kernels.py run FOLDER                                    # on the GPU

CASE: attention_TYPE_HEADS_QUERIES_KEYS_DEPTH[_causal], rotated_TYPE_HEADS_QUERIES_KEYS_DEPTH (rotary embedding of the
queries), product_TYPE_M_K_N, int4_f16_M_K_N (weights of 4 bits in groups of 128, beside PyTorch's f16 product),
convolution_TYPE_BATCH_CHANNELS_SIZE (3x3), norm_TYPE_ROWS_WIDTH, softmax_TYPE_OUTER_AXIS_INNER. `run` fills outputs and
scratch with NaN, compares with PyTorch in f64 (f32 for attention of many keys), and times a CUDA graph of the launches
of one run (a launch that only splits or packs weights counts once) beside a CUDA graph of PyTorch's operator, TF32 off;
products take turns among sets of operands that
fill more than the cache. Exit code 1 where one is wrong.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel_cases  # noqa: E402


GROUP = 128  # weights of 4 bits that share a scale


def parsed(text):
    kind, element, *rest = text.split("_")
    return kind, element, [int(n) for n in rest if n.isdigit()], "causal" in rest


def build(path, text):
    import numpy as np
    import onnx
    from onnx import TensorProto as T, helper as h, numpy_helper
    kind, element, n, causal = parsed(text)
    tensor, array = (T.FLOAT, np.float32) if element == "f32" else (T.FLOAT16, np.float16)
    nodes, constants = [], []

    def constant(name, data):
        constants.append(numpy_helper.from_array(data, name))
        return name

    if kind == "attention":
        heads, queries, keys, depth = n
        inputs = {"q": (1, heads, queries, depth), "k": (1, heads, keys, depth), "v": (1, heads, keys, depth)}
        nodes = [h.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), h.make_node("MatMul", ["q", "kt"], ["s"]),
                 h.make_node("Mul", ["s", constant("scale", np.array(depth ** -0.5, array))], ["t"])]
        if causal:
            mask = np.where(np.tril(np.ones((queries, keys), bool), keys - queries), 0, -np.inf).astype(array)
            nodes.append(h.make_node("Add", ["t", constant("mask", mask)], ["m"]))
        nodes += [h.make_node("Softmax", ["m" if causal else "t"], ["p"], axis=-1), h.make_node("MatMul", ["p", "v"], ["y"])]
        out = inputs["q"]
    elif kind == "rotated":
        heads, queries, keys, depth = n
        inputs = {"q": (1, heads, queries, depth), "cos": (queries, depth), "sin": (queries, depth), "k": (1, heads, keys, depth), "v": (1, heads, keys, depth)}
        numbers = {name: constant(name, np.array([at], np.int64)) for name, at in (("zero", 0), ("middle", depth // 2), ("last", depth), ("axis", 3))}
        nodes = [h.make_node("Slice", ["q", "zero", "middle", "axis"], ["a"]), h.make_node("Slice", ["q", "middle", "last", "axis"], ["b"]), h.make_node("Neg", ["b"], ["n"]),
                 h.make_node("Concat", ["n", "a"], ["turned"], axis=3), h.make_node("Mul", ["q", "cos"], ["qc"]), h.make_node("Mul", ["turned", "sin"], ["qs"]), h.make_node("Add", ["qc", "qs"], ["r"]),
                 h.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), h.make_node("MatMul", ["r", "kt"], ["s"]), h.make_node("Softmax", ["s"], ["p"], axis=-1), h.make_node("MatMul", ["p", "v"], ["y"])]
        out = inputs["q"]
    elif kind == "product":
        inputs, out = {"x": (n[0], n[1]), "w": (n[1], n[2])}, (n[0], n[2])
        nodes = [h.make_node("MatMul", ["x", "w"], ["y"])]
    elif kind == "int4":
        inputs, out = {"x": (n[0], n[1])}, (n[0], n[2])
        data = np.random.default_rng(1).integers(0, 256, n[1] * n[2] // 2, dtype=np.uint8)
        constants.append(h.make_tensor("w", T.INT4, [n[1], n[2]], data.tobytes(), raw=True))
        scales = constant("scales", np.random.default_rng(2).random((n[1] // GROUP, n[2])).astype(array))
        nodes = [h.make_node("DequantizeLinear", ["w", scales], ["d"], axis=0, block_size=GROUP), h.make_node("MatMul", ["x", "d"], ["y"])]
    elif kind == "convolution":
        batch, channels, size = n
        inputs, out = {"x": (batch, size, size, channels)}, (batch, size, size, channels)
        weights = constant("w", np.random.default_rng(1).standard_normal((channels, channels, 3, 3)).astype(array))
        nodes = [h.make_node("Transpose", ["x"], ["xt"], perm=[0, 3, 1, 2]), h.make_node("Conv", ["xt", weights], ["c"], pads=[1, 1, 1, 1]),
                 h.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])]
    elif kind == "norm":
        inputs, out = {"x": tuple(n), "a": (n[1],), "b": (n[1],)}, tuple(n)
        nodes = [h.make_node("LayerNormalization", ["x", "a", "b"], ["y"], axis=-1)]
    else:
        inputs, out = {"x": tuple(n)}, tuple(n)
        nodes = [h.make_node("Softmax", ["x"], ["y"], axis=1)]
    infos = [h.make_tensor_value_info(k, tensor, list(d)) for k, d in inputs.items()]
    graph = h.make_graph(nodes, "operator", infos, [h.make_tensor_value_info("y", tensor, list(out))], constants)
    opset, ir = (21, 10) if kind == "int4" else (17, 8)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=ir), path)


def operator(name):
    """PyTorch's call and floating-point operations (or bytes, negative); inputs are in the order of the kernel's."""
    import torch
    from torch.nn import functional as F
    kind, element, n, causal = parsed(name)
    size = 4 if element == "f32" else 2
    if kind == "attention":
        heads, queries, keys, depth = n
        seen = torch.ones(queries, keys, dtype=torch.bool, device="cuda").tril(keys - queries) if causal and queries != keys else None
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=causal and seen is None), 4 * heads * queries * keys * depth / (1 + causal)
    if kind == "rotated":
        heads, queries, keys, depth = n

        def rotated(q, cos, sin, k, v):
            a, b = q.chunk(2, -1)
            return F.scaled_dot_product_attention(q * cos + torch.cat([-b, a], -1) * sin, k, v, scale=1.0)
        return rotated, 4 * heads * queries * keys * depth
    if kind == "int4":
        return lambda x, w: x @ w.T, 2 * n[0] * n[1] * n[2]
    if kind == "product":
        return lambda x, w: x @ w, 2 * n[0] * n[1] * n[2]
    if kind == "convolution":
        return lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1).permute(0, 2, 3, 1), 18 * n[0] * n[1] ** 2 * n[2] ** 2
    if kind == "norm":
        return lambda x, a, b: F.layer_norm(x, (n[1],), a, b), -2 * n[0] * n[1] * size
    return lambda x: torch.softmax(x, 1), -2 * n[0] * n[1] * n[2] * size


def best_of_torch(kind, calls):
    import driver
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    if kind != "attention":
        return driver.time_ms(calls), ""
    best = (float("inf"), "none")
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
        try:
            with sdpa_kernel(backend):
                best = min(best, (driver.time_ms(calls), backend.name))
        except RuntimeError:
            torch.cuda.synchronize()
    return best


def random_inputs(about, kind, n):
    import torch
    types = {"f32": torch.float32, "f16": torch.float16}
    tensors = []
    for i, shape in enumerate(about["inputs"]):
        dims = [int(d) for d in shape[shape.index("[") + 1:-1].split(",")]
        if shape.startswith("i4["):
            tensors.append(torch.randint(0, 256, (*dims[:-1], dims[-1] // 2), device="cuda", dtype=torch.uint8))
            continue
        scale = (9 * n[1]) ** -0.5 if kind == "convolution" and i == 1 else 1
        tensors.append((torch.randn(dims, device="cuda") * scale).to(types[shape.split("[")[0]]))
    return tensors


def for_torch(kind, tensors):
    """The kernel's inputs as PyTorch's operator takes them: weights of 4 bits as f16."""
    import torch
    if kind != "int4":
        return tensors
    x, packed, scales = tensors
    low, high = packed & 15, packed >> 4
    numbers = torch.stack([low, high], -1).flatten(-2).to(torch.int8)
    return [x, ((numbers - 16 * (numbers > 7)).to(x.dtype) * scales).flatten(1)]


def run_case(path, text, peers):
    import driver
    import torch
    name = text.partition(":")[0]
    kind, element, n, _ = parsed(name)
    torch.manual_seed(5)
    tensors = random_inputs(kernel_cases.description(path), kind, n)
    kernel = kernel_cases.Kernel(path, tensors)
    kernel.calls()()
    torch.cuda.synchronize()
    peer, flops = operator(name)
    wide = torch.float64 if flops < 2e11 else torch.float32
    expected = peer(*(t.to(wide) for t in for_torch(kind, tensors))).double()
    error = ((kernel.output.double() - expected).norm() / expected.norm()).item()
    first = kernel.output.clone()

    def repeated(launch):
        weights = launch["prepare"] and all(a["index"] > 0 for a in launch["arguments"] if a["kind"] == "input")
        return not weights or kind == "attention"

    # Weights of a product come from memory: rotate among so many sets that the cache holds none until its next turn.
    bytes_of_set = sum(t.nbytes for t in tensors)
    sets = [(tensors, kernel)]
    while kind in ("product", "int4") and bytes_of_set * len(sets) < 400e6 and len(sets) < 20:
        more = random_inputs(kernel.about, kind, n)
        sets.append((more, kernel_cases.Kernel(path, more, kernel.module)))
        sets[-1][1].calls()()
    launches = [k.calls(repeated) for _, k in sets]
    ours = driver.time_ms(launches)
    kernel.output.fill_(float("nan"))
    launches[0]()
    torch.cuda.synchronize()
    good = error < (1e-5 if element == "f32" else 4e-3) and torch.equal(first, kernel.output)
    if name not in peers:
        theirs, how = best_of_torch(kind, [lambda s=for_torch(kind, s): peer(*s) for s, _ in sets])
        their_error = ((peer(*for_torch(kind, tensors)).double() - expected).norm() / expected.norm()).item()
        peers[name] = theirs, how, their_error
    theirs, how, their_error = peers[name]
    rate = f"{flops / ours / 1e9:.0f} TFLOP/s" if flops > 0 else f"{-flops / ours / 1e6:.0f} GB/s"
    if kind in ("product", "int4") and n[0] <= 64:
        rate = f"{bytes_of_set / ours / 1e6:.0f} GB/s"
    print(f"{text:58} {'ok   ' if good else 'WRONG'} {error:.1e} ({their_error:.1e}) {1e3 * ours:9.1f} us {rate:>13} x{launches[0].count}  torch {1e3 * theirs:9.1f} us {how[:9]:9} ratio {theirs / ours:.2f}", flush=True)
    kernel.module.unload()
    return good


def run(folder):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    peers = {}
    return kernel_cases.run(folder, lambda path, text: run_case(path, text, peers))


if __name__ == "__main__":
    sys.exit(kernel_cases.make(*sys.argv[2:4], sys.argv[4:], build) if sys.argv[1] == "make" else run(sys.argv[2]))
