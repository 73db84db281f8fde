"""Makers of random nodes of onnxruntime's domain that builders of language models write (pages, packed tokens, blocks of
keys, weights in blocks), and of some that searches and older exporters write. They join `MAKERS` of contrib_makers.py."""
import ml_dtypes
import numpy as np

from contrib_makers import F16, F32, Case, maker, tolerance_of
from contrib_reference import sigmoid, softmax

F8 = ml_dtypes.float8_e4m3fn


def rotated(x, cos, sin, interleaved):
    """x [tokens, heads, H]; cos and sin [tokens, half]."""
    half = cos.shape[-1]
    c, s = cos[:, None], sin[:, None]
    y = x.copy()
    a, b = (x[..., 0:2 * half:2], x[..., 1:2 * half:2]) if interleaved else (x[..., :half], x[..., half:2 * half])
    real, imaginary = a * c - b * s, a * s + b * c
    if interleaved:
        y[..., 0:2 * half:2], y[..., 1:2 * half:2] = real, imaginary
    else:
        y[..., :half], y[..., half:2 * half] = real, imaginary
    return y


def attended(q, k, v, seen, scale, softcap=0.0, sink=None):
    """q [S, N, H], k and v [T, G, H], seen [S, T] or [N, S, T]. Returns [S, N, V]."""
    groups = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
    scores = np.einsum("snh,tnh->nst", q, k) * scale
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    scores = np.where(seen, scores, -np.inf)
    if sink is None:
        weights = softmax(scores)
    else:
        column = np.broadcast_to(sink[:, None, None], (*scores.shape[:2], 1))
        weights = softmax(np.concatenate([column, scores], -1))[..., 1:]
    return np.einsum("nst,tnv->snv", weights, v)


def lengths_of(r, sequences):
    lengths = r.integers(1, 5, sequences)
    return lengths, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def paged_reference(*inputs, num_heads=1, kv_num_heads=1, softcap=0.0, local_window_size=-1, is_causal=1, do_rotary=0, rotary_interleaved=0, k_quant_type="NONE",
                    v_quant_type="NONE", kv_cache_layout="SEPARATE", v_head_size=0, scale=0.0, rotary_offset=0, **_):
    inputs = list(inputs) + [None] * (17 - len(inputs))
    q, k, v, keys, values, cum, past, table, cos, sin, slots, sink, qn, kn, ks, vs, _ = (None if i is None else i.astype(np.float64) if i.dtype.kind == "f" else i for i in inputs)
    dtype = inputs[0].dtype
    tokens, depth = len(q), keys.shape[3]
    if k is None:
        q, k, v = np.split(q, [num_heads * depth, (num_heads + kv_num_heads) * depth], 1)
    q, k = q.reshape(tokens, num_heads, depth), k.reshape(tokens, kv_num_heads, depth)
    sequence = np.repeat(np.arange(len(past)), np.diff(cum))
    position = np.concatenate([p + np.arange(n) for p, n in zip(past, np.diff(cum))])
    norm = lambda x, w: (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w).astype(dtype).astype(np.float64)
    if qn is not None:
        q, k = norm(q, qn), norm(k, kn)
    if do_rotary:
        turned = lambda x: np.concatenate([x[..., :rotary_offset], rotated(x[..., rotary_offset:], cos[position], sin[position], rotary_interleaved)], -1).astype(dtype).astype(np.float64)
        q, k = turned(q), turned(k)
    size = keys.shape[1]
    at = table[sequence, position // size] * size + position % size if slots is None else slots
    flat_k = inputs[3].reshape(-1, kv_num_heads, depth).copy()
    quantized = lambda x, s: np.clip(np.rint(x / s), -128, 127) if s is not None else x
    flat_k[at[at >= 0]] = quantized(k, ks)[at >= 0].astype(flat_k.dtype)
    if kv_cache_layout == "LATENT":
        width = v_head_size or depth
        flat_v = flat_k[..., :width]
    else:
        flat_v = inputs[4].reshape(-1, kv_num_heads, depth).copy()
        flat_v[at[at >= 0]] = quantized(v.reshape(tokens, kv_num_heads, depth), vs)[at >= 0].astype(flat_v.dtype)
    result = []
    for b in range(len(past)):
        rows = (table[b][:, None] * size + np.arange(size)).ravel()
        own_k, own_v = flat_k[rows].astype(np.float64), flat_v[rows].astype(np.float64)
        own_k, own_v = own_k * (1 if ks is None else ks.reshape(-1)[0]), own_v * (1 if vs is None or kv_cache_layout == "LATENT" else vs.reshape(-1)[0])
        own, order = position[sequence == b][:, None], np.arange(len(rows))[None]
        seen = order <= (own if is_causal else past[b] + (sequence == b).sum() - 1)
        if local_window_size >= 0:
            seen = seen & (order > own - local_window_size)
        result.append(attended(q[sequence == b], own_k, own_v, seen, scale or depth ** -0.5, softcap, sink))
    y = np.concatenate(result).reshape(tokens, -1).astype(dtype)
    return (y, flat_k.reshape(inputs[3].shape)) if kv_cache_layout == "LATENT" else (y, flat_k.reshape(inputs[3].shape), flat_v.reshape(inputs[4].shape))


@maker
def PagedAttention(r):
    g, h, sequences = r.some(1, 2), r.one_of(8, 16), r.some(1, 3)
    n, size, width = g * r.some(1, 3), r.one_of(2, 4), r.some(2, 3)
    lengths, cum = lengths_of(r, sequences)
    past = np.array([r.some(0, size * width - l) for l in np.minimum(lengths, size * width)], np.int32)
    lengths = np.minimum(lengths, size * width)
    cum = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    tokens, pages = int(cum[-1]), sequences * width + 1
    table = r.permutation(pages)[:sequences * width].reshape(sequences, width).astype(np.int32)
    latent, packed = r.maybe(0.2), r.maybe(0.3)
    more = {}
    if latent:
        g, packed, more = 1, False, {"kv_cache_layout": "LATENT", "v_head_size": h // 2, "scale": 0.3}
    quantized = not latent and r.maybe(0.3)
    cache = lambda name: (name, r.integers(-100, 100, (pages, size, g, h)).astype(np.int8) if quantized else r.normal_of(pages, size, g, h, dtype=F16))
    rows = lambda name, heads: (name, r.normal_of(tokens, heads * h, dtype=F16))
    inputs = [rows("q", n + 2 * g if packed else n), None if packed else rows("k", g), None if packed or latent else rows("v", g), cache("kc"), None if latent else cache("vc"),
              ("c", cum), ("p", past), ("t", table)]
    rotary = r.maybe()
    inputs += [("cos", r.normal_of(16, h // 4, dtype=F16)), ("sin", r.normal_of(16, h // 4, dtype=F16))] if rotary else [None, None]
    slots = None
    if r.maybe(0.3):
        sequence = np.repeat(np.arange(sequences), lengths)
        position = np.concatenate([a + np.arange(l) for a, l in zip(past, lengths)])
        slots = ("sl", np.where(r.random(tokens) < 0.3, -1, table[sequence, position // size] * size + position % size).astype(np.int32))
    norms = r.maybe(0.3)
    inputs += [slots, ("s", r.normal_of(n, dtype=F16)) if r.maybe(0.3) else None, ("qn", r.normal_of(h, dtype=F16)) if norms else None, ("kn", r.normal_of(h, dtype=F16)) if norms else None]
    inputs += [("ks", np.array([0.02], F32)), ("vs", np.array([0.03], F32))] if quantized else []
    if quantized:
        more.update(k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR")
    return Case(inputs, ["y", "ok"] if latent else ["y", "ok", "ov"], 1e-2, numpy=paged_reference, num_heads=n, kv_num_heads=g, softcap=r.one_of(0.0, 5.0),
                local_window_size=r.one_of(-1, 2), is_causal=r.one_of(1, 1, 0), do_rotary=int(rotary), rotary_interleaved=r.some(0, 1),
                rotary_offset=r.one_of(0, h // 2) if rotary else 0, **more)


def sparse_reference(q, k, v, keys, values, rows, columns, most, total, cos=None, sin=None, num_heads=1, kv_num_heads=1, sparse_block_size=16, do_rotary=0, rotary_interleaved=0, **_):
    b, s, depth = q.shape[0], q.shape[1], keys.shape[3]
    if k is None:
        q, k, v = np.split(q, [num_heads * depth, (num_heads + kv_num_heads) * depth], 2)
    layouts = np.zeros((len(rows), rows.shape[1] - 1, rows.shape[1] - 1), bool)
    for i, layout in enumerate(layouts):
        for j in range(len(layout)):
            layout[j, columns[i, rows[i, j]:rows[i, j + 1]]] = True
    keys, values, result = keys.copy(), values.copy(), []
    for i in range(b):
        past = 0 if most.item() == s else int(total[i]) - s
        position = past + np.arange(s)
        own_q, own_k = q[i].reshape(s, num_heads, depth), k[i].reshape(s, kv_num_heads, depth)
        if do_rotary:
            own_q, own_k = (rotated(x, cos[position], sin[position], rotary_interleaved) for x in (own_q, own_k))
        keys[i, :, past:past + s], values[i, :, past:past + s] = own_k.transpose(1, 0, 2), v[i].reshape(s, kv_num_heads, depth).transpose(1, 0, 2)
        order = np.arange(keys.shape[2])
        blocks = layouts[:, np.minimum(position // sparse_block_size, layouts.shape[1] - 1)][:, :, np.minimum(order // sparse_block_size, layouts.shape[1] - 1)]
        seen = blocks[np.arange(num_heads) % len(layouts)] & (order[None] <= position[:, None])
        result.append(attended(own_q, keys[i].transpose(1, 0, 2), values[i].transpose(1, 0, 2), seen, depth ** -0.5).reshape(s, -1))
    return np.stack(result).astype(np.float32), keys, values


@maker
def SparseAttention(r):
    g, h, b, blocks, block = r.some(1, 2), r.one_of(8, 16), r.some(1, 2), r.some(2, 4), 16
    count = r.some(1, 2)
    n, room = g * count * r.some(1, 2), blocks * block
    prompt, packed, rotary = r.maybe(), r.maybe(0.3), r.maybe()
    s = r.some(1, room) if prompt else 1
    total = np.full(b, s, np.int32) if prompt else r.integers(2, room + 1, b).astype(np.int32)
    layouts = np.tril(r.random((count, blocks, blocks)) < 0.5) | np.eye(blocks, dtype=bool)
    rows = np.concatenate([np.zeros((count, 1), int), layouts.sum(2).cumsum(1)], 1).astype(np.int32)
    columns = np.zeros((count, int(rows[:, -1].max())), np.int32)
    for i, layout in enumerate(layouts):
        columns[i, :rows[i, -1]] = np.nonzero(layout)[1]
    inputs = [("q", r.normal_of(b, s, (n + 2 * g if packed else n) * h)), None if packed else ("k", r.normal_of(b, s, g * h)), None if packed else ("v", r.normal_of(b, s, g * h)),
              ("pk", r.normal_of(b, g, room, h)), ("pv", r.normal_of(b, g, room, h)), ("r", rows), ("c", columns), ("m", np.array([total.max()], np.int32)), ("t", total)]
    inputs += [("cos", r.normal_of(room, h // 2)), ("sin", r.normal_of(room, h // 2))] if rotary else []
    return Case(inputs, ["y", "ok", "ov"], constants=["r", "c"], numpy=sparse_reference, num_heads=n, kv_num_heads=g, sparse_block_size=block, do_rotary=int(rotary),
                rotary_interleaved=r.some(0, 1))


@maker
def VarlenCausalConvWithState(r):
    sequences, c, taps, dilation = r.some(1, 3), r.some(1, 5), r.some(2, 4), r.some(1, 2)
    _, cum = lengths_of(r, sequences)
    return Case([("x", r.normal_of(int(cum[-1]), c)), ("w", r.normal_of(c, 1, taps)), ("c", cum), ("b", r.normal_of(c)) if r.maybe() else None,
                 ("s", r.normal_of(sequences, c, (taps - 1) * dilation))], ["y", "after"], activation=r.one_of("silu", "swish", "none"), dilation=dilation)


@maker
def NGramRepeatBlock(r):
    b, s, vocabulary = r.some(1, 3), r.some(1, 12), r.some(3, 6)
    return Case([("i", r.integers(0, vocabulary, (b, s))), ("s", r.normal_of(b, vocabulary))], ngram_size=r.some(1, 3))


@maker
def MaxpoolWithMask(r):
    axes = r.some(1, 3)
    size, window = [r.some(2, 6) for _ in range(axes)], [r.some(1, 2) for _ in range(axes)]
    return Case([("x", r.normal_of(r.some(1, 2), r.some(1, 3), *size)), ("m", (r.random((1, 1, *size)) < 0.8).astype(np.int32))], kernel_shape=window,
                strides=[r.some(1, 2) for _ in range(axes)], pads=[0] * axes + [r.some(0, w - 1) for w in window])


@maker
def UnfoldTensor(r):
    shape = [r.some(2, 6) for _ in range(r.some(1, 3))]
    axis = r.some(0, len(shape) - 1)
    return Case([("x", r.normal_of(*shape))], dim=r.one_of(axis, axis - len(shape)), size=r.some(1, shape[axis]), step=r.some(1, 2))


@maker
def Unique(r):
    return Case([("x", r.integers(0, 5, r.some(1, 12)).astype(F32))], ["y", "at", "count"])


@maker
def BranchwiseRMSNorm(r):
    c, h = r.some(1, 4), r.some(1, 8)
    flat, dtype = r.maybe(), r.one_of(F32, F16)
    scale = r.one_of(None, (c * h,), (c, h), (h,))
    return Case([("x", r.normal_of(2, 3, *((c * h,) if flat else (c, h)), dtype=dtype)), ("s", r.normal_of(*scale, dtype=dtype)) if scale else None], tolerance=tolerance_of(dtype),
                epsilon=1e-5, **({"num_branches": c} if flat else {}))


@maker
def ScaledSiLU(r):
    dtype = r.one_of(F32, F16)
    return Case([("x", r.normal_of(2, 5, dtype=dtype)), ("s", np.array(0.7, dtype)) if r.maybe() else None], tolerance=tolerance_of(dtype), alpha=1.3)


@maker
def SwiGLU(r):
    def reference(gate, up=None, activation_alpha=1.0, activation_beta=0.0, limit=0.0):
        if up is None:
            gate, up = np.split(gate, 2, -1)
        if limit > 0:
            gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
        return gate * sigmoid(activation_alpha * gate) * (up + activation_beta)
    split = r.maybe()
    return Case([("g", r.normal_of(3, 8, scale=3)), None if split else ("u", r.normal_of(3, 8, scale=3))], numpy=reference, activation_alpha=r.one_of(1.0, 1.702),
                activation_beta=r.one_of(0.0, 1.0), limit=r.one_of(0.0, 2.0))


@maker
def MulInteger(r):
    kind = r.one_of(np.uint8, np.int8)
    zero = lambda name: (name, np.array(5, kind)) if r.maybe() else None
    return Case([("a", r.bytes_of(2, 3, dtype=kind)), zero("az"), ("b", r.bytes_of(3, dtype=kind)), zero("bz")],
                numpy=lambda a, az, b, bz=None: (a.astype(np.int32) - (0 if az is None else int(az))) * (b.astype(np.int32) - (0 if bz is None else int(bz))))


@maker
def TorchEmbedding(r):
    return Case([("w", r.normal_of(7, 3)), ("i", r.integers(0, 7, (2, 4)))], numpy=lambda w, i: w[i])


@maker
def MatMulBlockQuantizedFp8Weight(r):
    n, k, block = r.some(1, 9), r.one_of(32, 48, 80), r.one_of(16, 32)

    def reference(a, b, scale, a_scale=None, bias=None, block_size=128):
        w = b.astype(np.float32) * np.repeat(scale, block_size, 1)[:, :b.shape[1]]
        x = a.astype(np.float32)
        x = x if a_scale is None else np.clip(x / a_scale, -448, 448).astype(F8).astype(np.float32) * a_scale
        return (x @ w.T + (0 if bias is None else bias)).astype(a.dtype)
    return Case([("a", r.normal_of(r.some(1, 3), k, dtype=F16)), ("b", r.normal_of(n, k).astype(F8)), ("s", np.abs(r.normal_of(n, -(-k // block)))), ("as", F32(0.01)) if r.maybe() else None,
                 ("c", r.normal_of(n, dtype=F16)) if r.maybe() else None], tolerance=5e-3, constants=["b", "s"], numpy=reference, block_size=block)


@maker
def MatMulBlockQuantizedFp4Weight(r):
    n, k = r.some(1, 9), r.one_of(32, 48, 64)
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)

    def reference(a, b, scale, scale_2, _=None, bias=None, block_size=16):
        w = table[np.stack([b & 15, b >> 4], -1).reshape(len(b), -1)] * np.repeat(scale.view(F8).astype(np.float32), block_size, 1)[:, :2 * b.shape[1]] * scale_2
        return (a.astype(np.float32) @ w.T + (0 if bias is None else bias)).astype(a.dtype)
    return Case([("a", r.normal_of(r.some(1, 3), k, dtype=F16)), ("b", r.bytes_of(n, k // 2)), ("s", np.abs(r.normal_of(n, k // 16)).astype(F8).view(np.uint8)), ("g", F32(0.3)), None,
                 ("c", r.normal_of(n, dtype=F16)) if r.maybe() else None], tolerance=5e-3, constants=["b", "s", "g"], numpy=reference, block_size=16)


@maker
def DynamicTimeWarping(r):
    shape = [r.some(1, 9), r.some(1, 9)]
    costs = r.normal_of(*shape) if r.maybe() else r.integers(0, 3, shape).astype(F32)
    return Case([("x", costs[None] if r.maybe() else costs)])


@maker
def BifurcationDetector(r):
    count, least = r.some(1, 8), r.some(1, 2)
    begin = r.some(0, count)
    source, predicted = r.integers(0, 3, count), r.integers(0, 3, count + 1 - begin)
    if r.maybe():
        predicted[:count - begin] = source[begin:]
    return Case([("s", source), ("c", r.integers(0, 3, r.some(1, 4))), ("p", np.array(begin)), ("q", predicted) if r.maybe() else None], ["t", "i"],
                min_ngram_size=least, max_ngram_size=least + r.some(0, 2))
