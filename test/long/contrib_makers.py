"""Makers of random nodes of onnxruntime's domain: `MAKERS` has one function for each operator, which returns a `Case`.
contrib_ops.py runs them."""
import os
import sys

import numpy as np
import onnx

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import contrib_reference  # noqa: E402
from operator_case import Node  # noqa: E402

F32, F16 = np.float32, np.float16
MAKERS = {}


class Case:
    """A node, the tolerance of its results in parts of their largest, and the function that computes them if
    onnxruntime cannot."""

    def __init__(self, inputs, outputs=("y",), tolerance=1e-4, constants=(), numpy=None, **attributes):
        self.inputs = [i and (i[0], np.asarray(i[1])) for i in inputs]
        self.outputs, self.tolerance, self.constants, self.numpy, self.attributes = list(outputs), tolerance, constants, numpy, attributes

    def node(self, op, prefix):
        return Node(prefix, op, self.inputs, self.outputs, self.constants, **self.attributes)


def maker(f):
    MAKERS[f.__name__] = f
    return f


class Random(np.random.Generator):
    def __init__(self, seed):
        super().__init__(np.random.PCG64(seed))

    def normal_of(self, *shape, dtype=F32, scale=1.0):
        return (self.standard_normal(shape) * scale).astype(dtype)

    def bytes_of(self, *shape, dtype=np.uint8):
        info = np.iinfo(dtype)
        return self.integers(info.min, info.max + 1, shape).astype(dtype)

    def maybe(self, chance=0.5):
        return bool(self.random() < chance)

    def one_of(self, *choices):
        return choices[int(self.integers(len(choices)))]

    def mask(self, *shape):
        """A padding mask: 1 for a valid key. The first key is always valid, because a row without keys depends on the order
        of roundings."""
        kept = self.integers(0, 2, shape).astype(np.int32)
        kept[..., 0] = 1
        return kept

    def some(self, low, high):
        return int(self.integers(low, high + 1))


def tolerance_of(dtype):
    return 1e-4 if dtype == F32 else 4e-3


@maker
def Trilu(r):
    x = r.normal_of(*([r.some(1, 3)] if r.maybe() else []), r.some(1, 6), r.some(1, 6))
    return Case([("x", x), ("k", np.array(r.some(-3, 3), np.int64)) if r.maybe() else None], upper=r.some(0, 1))


@maker
def ExpandDims(r):
    rank = r.some(1, 3)
    return Case([("x", r.normal_of(*[r.some(1, 4) for _ in range(rank)])), ("a", np.array(r.some(-rank - 1, rank), np.int32))], constants=["a"])


@maker
def GridSample(r):
    n, c, h, w = r.some(1, 2), r.some(1, 3), r.some(2, 6), r.some(2, 6)
    grid = r.uniform(-1.2, 1.2, (n, r.some(1, 5), r.some(1, 5), 2)).astype(F32)
    return Case([("x", r.normal_of(n, c, h, w)), ("g", grid)], align_corners=r.some(0, 1), padding_mode=r.one_of("zeros", "border", "reflection"), mode=r.one_of("bilinear", "bicubic"))


@maker
def NhwcMaxPool(r):
    x = r.bytes_of(r.some(1, 2), r.some(4, 8), r.some(4, 8), r.some(1, 5), dtype=r.one_of(np.uint8, np.int8))
    pad = r.some(0, 1)
    return Case([("x", x)], kernel_shape=[r.some(2, 3), r.some(2, 3)], strides=[r.some(1, 2), r.some(1, 2)], pads=[pad] * 4)


@maker
def QLinearConv(r):
    group = r.one_of(1, 1, 2)
    c, m, k = group * r.some(1, 3), group * r.some(1, 3), r.some(1, 3)
    kind, last = r.one_of(np.uint8, np.int8), r.some(0, 1)
    x = r.bytes_of(r.some(1, 2), c, r.some(4, 7), r.some(4, 7), dtype=kind)
    if last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    w = r.bytes_of(m, c // group, k, k, dtype=np.int8)
    inputs = [("x", x), ("xs", F32(0.02)), ("xz", np.array(3, kind)), ("w", w), ("ws", np.abs(r.normal_of(m)) / 50 + F32(0.001)), ("wz", np.zeros(m, np.int8)),
              ("ys", F32(0.1)), ("yz", np.array(5, kind)), ("b", r.integers(-300, 300, m).astype(np.int32)) if r.maybe() else None]
    return Case(inputs, constants=["xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], group=group, channels_last=last, pads=[r.some(0, 1)] * 4, strides=[r.some(1, 2)] * 2)


def conv(r, op):
    group = r.one_of(1, 1, 2)
    c, m, k = group * r.some(1, 3), group * r.some(1, 3), r.some(1, 3)
    stride, pad = r.some(1, 2), r.some(0, 1)
    h, w = r.some(4, 7), r.some(4, 7)
    x = r.normal_of(r.some(1, 2), h, w, c)
    inputs = [("x", x), ("w", r.normal_of(m, c // group, k, k)), ("b", r.normal_of(m)) if r.maybe() else None]
    more = {}
    if op == "NhwcFusedConv":
        more["activation"] = r.one_of("Relu", "Tanh", "Sigmoid")
        if r.maybe():
            out = [(e + 2 * pad - k) // stride + 1 for e in (h, w)]
            inputs.append(("z", r.normal_of(x.shape[0], *out, m)))
    return Case(inputs, constants=["w", "b"], numpy=getattr(contrib_reference, op), group=group, strides=[stride] * 2, pads=[pad] * 4, **more)


@maker
def NhwcConv(r):
    case = conv(r, "NhwcConv")  # its weights have the channels last, as onnxruntime's optimizer writes them
    name, weights = case.inputs[1]
    case.inputs[1] = (name, np.ascontiguousarray(weights.transpose(0, 2, 3, 1)))
    return case


@maker
def ConvTransposeWithDynamicPads(r):
    c, m, k = r.some(1, 3), r.some(1, 3), r.some(2, 3)
    return Case([("x", r.normal_of(r.some(1, 2), c, r.some(3, 5), r.some(3, 5))), ("w", r.normal_of(c, m, k, k)), ("p", np.array([r.some(0, 1) for _ in range(4)], np.int64)),
                 ("b", r.normal_of(m)) if r.maybe() else None], constants=["w", "p", "b"], strides=[r.some(1, 2)] * 2)


@maker
def NhwcFusedConv(r):
    return conv(r, "NhwcFusedConv")


def group_norm(r, op):
    groups = r.some(1, 4)
    c, last, dtype = groups * r.some(1, 4), r.some(0, 1), r.one_of(F32, F16)
    n, h, w = r.some(1, 2), r.some(1, 5), r.some(2, 5)
    shape = (n, h, w, c) if last else (n, c, h, w)
    inputs = [("x", r.normal_of(*shape, dtype=dtype)), ("g", r.normal_of(c)), ("b", r.normal_of(c))]
    outputs = ["y"]
    if op == "SkipGroupNorm":
        one = (n, 1, 1, c) if last else (n, c, 1, 1)
        inputs += [("s", r.normal_of(*r.one_of(shape, one, (n, c)), dtype=dtype)), ("c", r.normal_of(c, dtype=dtype)) if r.maybe() else None]
        outputs += ["sum"] if r.maybe() else []
    return Case(inputs, outputs, tolerance_of(dtype), numpy=getattr(contrib_reference, op), groups=groups, channels_last=last, activation=r.some(0, 1), epsilon=r.one_of(1e-5, 1e-3))


@maker
def GroupNorm(r):
    return group_norm(r, "GroupNorm")


@maker
def SkipGroupNorm(r):
    return group_norm(r, "SkipGroupNorm")


@maker
def GemmFastGelu(r):
    k, n = r.some(1, 9), r.some(1, 9)
    return Case([("x", r.normal_of(*([2] if r.maybe() else []), 3, k)), ("w", r.normal_of(k, n)), ("b", r.normal_of(n)) if r.maybe() else None], numpy=contrib_reference.GemmFastGelu)


@maker
def MatMulNBits(r):
    bits, block, k, n = r.one_of(4, 4, 8, 2), r.one_of(16, 32, 64), r.one_of(32, 64, 80, 128), r.some(1, 9)
    blocks = -(-k // block)
    zeros = r.one_of(None, ("z", r.bytes_of(n * ((blocks * bits + 7) // 8))))
    return Case([("a", r.normal_of(r.some(1, 3), k)), ("b", r.bytes_of(n, blocks, block * bits // 8)), ("s", r.normal_of(n * blocks)), zeros], tolerance=1e-3,
                constants=["b", "s", "z"], numpy=contrib_reference.MatMulNBits if bits == 2 else None, K=k, N=n, bits=bits, block_size=block)


@maker
def MatMulBnb4(r):
    block, k, n = r.one_of(16, 32, 64), r.one_of(16, 32, 64, 48), r.some(1, 9)
    count = n * k
    return Case([("a", r.normal_of(r.some(1, 3), k)), ("b", r.bytes_of((count + 1) // 2)), ("s", np.abs(r.normal_of((count + block - 1) // block)))], tolerance=1e-3,
                constants=["b", "s"], K=k, N=n, block_size=block, quant_type=r.some(0, 1))


@maker
def GatherBlockQuantized(r):
    rows, block, depth = r.some(3, 9), r.one_of(16, 32), r.one_of(32, 64)
    kind = r.one_of("u4", "i4", "u8")
    dtype = {"u4": onnx.TensorProto.UINT4, "i4": onnx.TensorProto.INT4, "u8": None}[kind]
    shape = (rows, r.some(1, 3), depth) if r.maybe() else (rows, depth)
    scales = (*shape[:-1], depth // block)
    index = r.integers(-rows, rows, r.one_of((3,), (2, 2), ())).astype(r.one_of(np.int32, np.int64))
    zero = r.maybe()
    if kind == "u8":
        bits = r.one_of(4, 8)
        table, zeros = r.bytes_of(*shape[:-1], depth * bits // 8), r.bytes_of(*scales[:-1], -(-scales[-1] * bits // 8))
    else:
        bits = 4
        info = onnx.helper.tensor_dtype_to_np_dtype(dtype)
        low = -8 if kind == "i4" else 0
        table, zeros = (r.integers(low, low + 16, s).astype(np.int8 if low else np.uint8).astype(info) for s in (shape, scales))
    return Case([("d", table), ("i", index), ("s", r.normal_of(*scales)), ("z", zeros) if zero else None], constants=["d", "s", "z"], block_size=block, bits=bits,
                gather_axis=0, quantize_axis=len(shape) - 1)


@maker
def Inverse(r):
    n = r.some(1, 7)
    return Case([("x", r.normal_of(*([r.some(1, 3)] if r.maybe() else []), n, n) + 2 * np.eye(n, dtype=F32))], tolerance=2e-3)


@maker
def CropAndResize(r):
    n, boxes = r.some(1, 3), r.some(1, 4)
    corners = np.sort(r.uniform(-0.1, 1.1, (boxes, 2, 2)), axis=1).reshape(boxes, 4).astype(F32)
    return Case([("x", r.normal_of(n, r.some(1, 3), r.some(2, 6), r.some(2, 6))), ("r", corners), ("b", r.integers(0, n, boxes).astype(np.int32)),
                 ("s", np.array([r.some(1, 5), r.some(1, 5)], np.int32))], constants=["s"], tolerance=1e-3, mode=r.one_of("bilinear", "nearest"), extrapolation_value=r.one_of(0.0, 3.0))


@maker
def RelativePositionBias(r):
    n, buckets = r.some(1, 12), r.one_of(8, 32)
    return Case([("t", r.normal_of(buckets, r.some(1, 4))), ("q", np.array(n, np.int64)), ("k", np.array(n, np.int64))], constants=["q", "k"],
                numpy=contrib_reference.RelativePositionBias, max_distance=r.one_of(20, 128), is_bidirectional=r.some(0, 1))


@maker
def GatedRelativePositionBias(r):
    b, s, n, h, d = r.some(1, 2), r.some(1, 4), r.some(1, 3), r.one_of(4, 8), r.one_of(4, 8)
    return Case([("q", r.normal_of(b, s, n * h)), ("qb", r.normal_of(n * h)), ("p", r.normal_of(1, n, s, s)), ("w", r.normal_of(h, d)), ("c", r.normal_of(d)),
                 ("e", r.normal_of(1, n, 1, 1))], numpy=contrib_reference.GatedRelativePositionBias, num_heads=n)


@maker
def BiasSoftmax(r):
    b, n, s, t = r.some(1, 2), r.some(1, 3), r.some(1, 4), r.some(1, 6)
    inner = r.some(0, 1)
    return Case([("x", r.normal_of(b, n, s, t)), ("b", r.normal_of(*((b, 1, 1, t) if inner else (1, 1, s, t))))], numpy=contrib_reference.BiasSoftmax, axis=3, is_inner_broadcast=inner)


@maker
def QLinearReduceMean(r):
    kind, shape = r.one_of(np.uint8, np.int8), [r.some(1, 4) for _ in range(3)]
    return Case([("x", r.bytes_of(*shape, dtype=kind)), ("xs", F32(0.03)), ("xz", np.array(4, kind)), ("ys", F32(0.02)), ("yz", np.array(9, kind))],
                numpy=contrib_reference.QLinearReduceMean, axes=r.one_of([1], [0, 2], [-1]), keepdims=r.some(0, 1))


@maker
def QLinearAveragePool(r):
    kind, last = r.one_of(np.uint8, np.int8), r.some(0, 1)
    shape = [r.some(1, 2), r.some(1, 3), r.some(4, 7), r.some(4, 7)]
    if last:
        shape = [shape[0], *shape[2:], shape[1]]
    return Case([("x", r.bytes_of(*shape, dtype=kind)), ("xs", F32(0.03)), ("xz", np.array(4, kind)), ("ys", F32(0.02)), ("yz", np.array(9, kind))],
                constants=["xs", "xz", "ys", "yz"], channels_last=last, kernel_shape=[2, 3], strides=[r.some(1, 2)] * 2, pads=[r.some(0, 1)] * 4, count_include_pad=r.some(0, 1))


@maker
def QAttention(r):
    b, s, n, h, d = r.some(1, 2), r.some(1, 5), r.some(1, 3), r.one_of(4, 8), r.some(3, 9)
    w = r.bytes_of(d, 3 * n * h, dtype=r.one_of(np.int8, np.uint8))
    past = r.maybe(0.4)
    p = r.some(1, 4) if past else 0
    mask = r.one_of(None, ("m", r.integers(1, s + p + 1, b).astype(np.int32)))
    return Case([("x", r.bytes_of(b, s, d)), ("w", w), ("c", r.normal_of(3 * n * h)), ("xs", F32(0.01)), ("ws", F32(0.01)), mask, ("xz", np.array(120, np.uint8)),
                 ("wz", np.array(3, w.dtype)), ("p", r.normal_of(2, b, n, p, h)) if past else None], ["y", "present"] if past else ["y"], 1e-3, constants=["w", "ws", "wz"],
                num_heads=n, unidirectional=r.some(0, 1))


@maker
def Attention(r):
    b, s, n, h, d = r.some(1, 2), r.some(1, 5), r.some(1, 3), r.one_of(4, 8), r.some(3, 9)
    p = r.some(1, 4) if r.maybe(0.4) else 0
    t = s + p
    mask = r.one_of(None, ("m", r.integers(1, t + 1, b).astype(np.int32)), ("m", r.mask(b, t)), ("m", r.mask(b, s, t)))
    return Case([("x", r.normal_of(b, s, d)), ("w", r.normal_of(d, 3 * n * h) / 3), ("c", r.normal_of(3 * n * h)) if r.maybe() else None, mask,
                 ("p", r.normal_of(2, b, n, p, h)) if p else None, ("a", r.normal_of(r.one_of(1, b), r.one_of(1, n), s, t)) if r.maybe(0.3) else None],
                ["y", "present"] if p else ["y"], num_heads=n, unidirectional=r.some(0, 1), **({"scale": 0.3} if r.maybe(0.3) else {}))


@maker
def MultiHeadAttention(r):
    b, s, n, h = r.some(1, 2), r.some(1, 5), r.some(1, 3), r.one_of(4, 8)
    way = r.one_of("plain", "cross", "past", "buffer")
    t = r.some(1, 6) if way == "cross" else s
    q, k, v = (("q", r.normal_of(b, s, n * h)), ("k", r.normal_of(b, t, n * h)), ("v", r.normal_of(b, t, n * h)))
    if way == "buffer":
        m, at = r.some(s + 2, s + 9), 0
        at = r.some(0, m - s)
        return Case([q, k, v, None, None, None, ("pk", r.normal_of(b, n, m, h)), ("pv", r.normal_of(b, n, m, h)), ("pl", np.array([at], np.int32))], ["y", "ok", "ov"], num_heads=n)
    p = r.some(1, 4) if way == "past" else 0
    mask = r.one_of(None, ("m", r.integers(1, t + p + 1, b).astype(np.int32)), ("m", r.mask(b, t + p)))
    return Case([q, k, v, ("c", r.normal_of(3 * n * h)) if r.maybe() else None, mask, ("a", r.normal_of(r.one_of(1, b), r.one_of(1, n), s, t + p)) if r.maybe(0.3) else None,
                 ("pk", r.normal_of(b, n, p, h)) if p else None, ("pv", r.normal_of(b, n, p, h)) if p else None], ["y", "ok", "ov"] if p else ["y"], num_heads=n,
                unidirectional=r.some(0, 1) if way != "cross" else 0)


@maker
def DecoderMaskedMultiHeadAttention(r):
    b, n, h = r.some(1, 2), r.some(1, 3), r.one_of(4, 8)
    q = ("q", r.normal_of(b, 1, n * h))
    if r.maybe(0.3):
        t = r.some(1, 6)
        return Case([q, ("k", r.normal_of(b, n, t, h)), ("v", r.normal_of(b, n, t, h))], num_heads=n)
    m = r.some(2, 9)
    at = r.some(0, m - 1)
    return Case([q, ("k", r.normal_of(b, 1, n * h)), ("v", r.normal_of(b, 1, n * h)), None, None, ("pk", r.normal_of(b, n, m, h)), ("pv", r.normal_of(b, n, m, h)),
                 ("pl", np.array([at], np.int32)), None, None, ("c", r.normal_of(3 * n * h)) if r.maybe() else None], ["y", "ok", "ov"], num_heads=n, past_present_share_buffer=1)


@maker
def GroupQueryAttention(r):
    b, s, g, h = r.some(1, 2), r.some(1, 5), r.some(1, 2), r.one_of(8, 16)
    n = g * r.some(1, 3)
    p = r.some(1, 5) if r.maybe() else 0
    if p and b > 1:
        s = 1
    lengths = np.full(b, s + p - 1, np.int32)
    rotary = h == 16 and r.maybe()  # onnxruntime rotates heads of a multiple of 16
    past = [("pk", r.normal_of(b, g, p, h)), ("pv", r.normal_of(b, g, p, h))] if p else [None, None]
    inputs = [("q", r.normal_of(b, s, n * h)), ("k", r.normal_of(b, s, g * h)), ("v", r.normal_of(b, s, g * h)), *past, ("l", lengths), ("t", np.array(s + p, np.int32))]
    if rotary:
        inputs += [("cos", r.normal_of(16, h // 2)), ("sin", r.normal_of(16, h // 2))]
    return Case(inputs, ["y", "ok", "ov"], num_heads=n, kv_num_heads=g, do_rotary=int(rotary), rotary_interleaved=r.some(0, 1), softcap=r.one_of(0.0, 5.0),
                local_window_size=r.one_of(-1, 2, 4), smooth_softmax=r.some(0, 1))


@maker
def QEmbedLayerNormalization(r):
    b, s, d = r.some(1, 2), r.some(1, 6), r.one_of(4, 8)
    table = lambda name, *shape: (name, r.bytes_of(*shape))
    segments = r.maybe()
    ids = lambda name, most: (name, r.integers(0, most, (b, s)).astype(np.int32))
    scale = lambda name: (name, F32(r.uniform(0.005, 0.03)))
    zero = lambda name: (name, np.array(r.some(100, 150), np.uint8))
    lengths = r.integers(1, s + 1, b)
    mask = ("m", (np.arange(s)[None] < lengths[:, None]).astype(np.int32))
    inputs = [ids("i", 9), ids("g", 2) if segments else None, table("w", 9, d), table("p", 8, d), table("t", 2, d) if segments else None, table("ga", d), table("be", d),
              mask if r.maybe() else None, scale("ws"), scale("ps"), scale("ts") if segments else None, scale("gs"), scale("bs"), zero("wz"), zero("pz"),
              zero("tz") if segments else None, zero("gz"), zero("bz")]
    return Case(inputs, ["y", "count"], 1e-3, epsilon=1e-12, constants=[i[0] for i in inputs if i and i[0] not in "igm"])


def experts(r, op):
    t, e, h, i = r.some(1, 5), r.some(2, 5), r.one_of(32, 64), r.one_of(32, 64)
    k = r.some(1, e)
    act = r.one_of("relu", "gelu", "silu", "identity", "swiglu")
    rows = 2 * i if act == "swiglu" else i
    x = r.normal_of(*((t, h) if r.maybe() else (1, t, h)))
    more = {"swiglu_fusion": 1} if act == "swiglu" else {}
    if act == "swiglu" and r.maybe():
        more.update(activation_alpha=1.702, activation_beta=1.0, swiglu_limit=2.0)
    bias = r.maybe()
    return t, e, h, i, k, act, rows, x, more, bias


@maker
def MoE(r):
    t, e, h, i, k, act, rows, x, more, bias = experts(r, "MoE")
    return Case([("x", x), ("p", r.normal_of(t, e)), ("w1", r.normal_of(e, rows, h) / 8), ("b1", r.normal_of(e, rows)) if bias else None, ("w2", r.normal_of(e, h, i) / 8),
                 ("b2", r.normal_of(e, h)) if bias else None], tolerance=1e-3, k=k, activation_type=act, normalize_routing_weights=r.some(0, 1), **more)


@maker
def QMoE(r):
    t, e, h, i, k, act, rows, x, more, bias = experts(r, "QMoE")
    act, rows = "swiglu", 2 * i
    more.setdefault("swiglu_fusion", 1)
    bits, block = 4, r.one_of(0, 32)
    scale = lambda name, n, d: (name, np.abs(r.normal_of(*((e, n, d // block) if block else (e, n)))) / 20)
    return Case([("x", x), ("p", r.normal_of(t, e)), ("w1", r.bytes_of(e, rows, h * bits // 8)), scale("s1", rows, h), ("b1", r.normal_of(e, rows)) if bias else None,
                 ("w2", r.bytes_of(e, h, i * bits // 8)), scale("s2", h, i), ("b2", r.normal_of(e, h)) if bias else None], tolerance=5e-3,
                constants=["w1", "s1", "w2", "s2"], k=k, activation_type=act, normalize_routing_weights=1, expert_weight_bits=bits, **({"block_size": block} if block else {}), **more)


@maker
def Range(r):
    start, step = r.some(-3, 3), r.one_of(1, 2, -1)
    return Case([("a", F32(start)), ("b", F32(start + step * r.some(1, 9))), ("d", F32(step))], constants=["a", "b", "d"])


@maker
def MatMulInteger16(r):
    return Case([("a", r.integers(-300, 300, (2, 3, 4)).astype(np.int16)), ("b", r.integers(-300, 300, (4, 5)).astype(np.int16))])


@maker
def ComplexMul(r):
    return Case([("a", r.normal_of(2, 3, 2)), ("b", r.normal_of(2, 3, 2))], numpy=contrib_reference.ComplexMul)


@maker
def ComplexMulConj(r):
    return Case([("a", r.normal_of(2, 3, 2)), ("b", r.normal_of(2, 3, 2))], numpy=contrib_reference.ComplexMulConj)
