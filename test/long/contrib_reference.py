"""Operators of onnxruntime's domain that its CPU provider does not have, in numpy, from docs/ContribOperators.md."""
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def NhwcConv(x, w, b=None, **attributes):
    return convolved(x, w.transpose(0, 3, 1, 2), b, **attributes)


def convolved(x, w, b=None, strides=(1, 1), pads=(0, 0, 0, 0), group=1, **_):
    x = np.pad(x.astype(np.float64), [(0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)])
    m, per_group, kh, kw = w.shape
    h, v = (x.shape[1] - kh) // strides[0] + 1, (x.shape[2] - kw) // strides[1] + 1
    y = np.zeros((x.shape[0], h, v, m))
    for o in range(m):
        first = o // (m // group) * per_group
        for i in range(h):
            for j in range(v):
                part = x[:, i * strides[0]:i * strides[0] + kh, j * strides[1]:j * strides[1] + kw, first:first + per_group]
                y[:, i, j, o] = np.einsum("nhwc,chw->n", part, w[o])
    return (y if b is None else y + b).astype(np.float32)


def NhwcFusedConv(x, w, b=None, z=None, activation="Relu", **attributes):
    y = convolved(x, w, b, **attributes)
    if z is not None:
        y = y + z
    return {"Relu": lambda v: np.maximum(v, 0), "Tanh": np.tanh, "Sigmoid": sigmoid}[activation](y)


def SkipGroupNorm(x, gamma, beta, skip=None, bias=None, groups=1, channels_last=1, activation=0, epsilon=1e-5):
    dtype = x.dtype
    x = x.astype(np.float64)
    if skip is not None:
        skip = skip.astype(np.float64)
        if skip.ndim == 2:
            skip = skip[:, None, None, :] if channels_last else skip[:, :, None, None]
        x = x + skip
    if bias is not None:
        x = x + (bias if channels_last else bias[:, None, None])
    total = x
    x = x if channels_last else x.transpose(0, 2, 3, 1)
    n, h, w, c = x.shape
    g = x.reshape(n, h, w, groups, c // groups)
    mean, var = g.mean((1, 2, 4), keepdims=True), g.var((1, 2, 4), keepdims=True)
    y = ((g - mean) / np.sqrt(var + epsilon)).reshape(n, h, w, c) * gamma + beta
    if activation:
        y = y * sigmoid(y)
    y = y if channels_last else y.transpose(0, 3, 1, 2)
    return y.astype(dtype), total.astype(dtype)


def GroupNorm(x, gamma, beta, **attributes):
    return SkipGroupNorm(x, gamma, beta, **attributes)[0]


def GemmFastGelu(x, w, b=None):
    y = x @ w if b is None else x @ w + b
    return 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))


def MatMulNBits(a, b, s, z=None, K=0, N=0, bits=4, block_size=32):
    per_byte, blocks = 8 // bits, b.shape[1]
    unpack = lambda p: np.stack([p >> (bits * i) & ((1 << bits) - 1) for i in range(per_byte)], -1).reshape(*p.shape[:-1], -1).astype(np.float32)
    q = unpack(b)
    zero = float(1 << (bits - 1)) if z is None else unpack(z.reshape(N, -1))[:, :blocks, None]
    w = ((q - zero) * s.reshape(N, blocks, 1)).reshape(N, -1)[:, :K]
    return a @ w.T


def RelativePositionBias(table, queries, keys, max_distance=128, is_bidirectional=0):
    buckets, heads = table.shape
    table = table.reshape(heads, buckets)  # its dims say [buckets, heads], its data is column-major
    distance = np.arange(int(keys))[None, :] - np.arange(int(queries))[:, None]
    base = np.zeros_like(distance)
    if is_bidirectional:
        buckets //= 2
        base = np.where(distance > 0, buckets, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = buckets // 2
    far = exact + (np.log(np.maximum(distance, 1).astype(np.float32) / exact) / np.log(max_distance / exact) * (buckets - exact)).astype(np.int64)
    bucket = base + np.where(distance < exact, distance, np.minimum(far, buckets - 1))
    return table[:, bucket][None]


def GatedRelativePositionBias(query, query_bias, positions, weight, bias, eco, num_heads=1):
    b, s, d = query.shape
    q = (query + query_bias).reshape(b, s, num_heads, d // num_heads).transpose(0, 2, 1, 3)
    gates = sigmoid((q @ weight + bias).reshape(b, num_heads, s, 2, -1).sum(-1))
    update, reset = gates[..., :1], gates[..., 1:]
    return (update * (reset * eco - 1) + 2) * positions


def BiasSoftmax(x, bias, axis=1, is_inner_broadcast=0):
    total = x + bias
    return softmax(total.reshape(*total.shape[:axis], -1)).reshape(total.shape)


def QLinearReduceMean(x, scale, zero, out_scale, out_zero, axes=None, keepdims=1):
    mean = ((x.astype(np.float32) - zero) * scale).mean(tuple(axes), keepdims=bool(keepdims))
    info = np.iinfo(out_zero.dtype)
    return np.clip(np.rint(mean / out_scale) + out_zero, info.min, info.max).astype(out_zero.dtype)


def ComplexMul(a, b):
    c = (a[..., 0] + 1j * a[..., 1]) * (b[..., 0] + 1j * b[..., 1])
    return np.stack([c.real, c.imag], -1).astype(np.float32)


def ComplexMulConj(a, b):
    return ComplexMul(a, b * np.array([1, -1], np.float32))
