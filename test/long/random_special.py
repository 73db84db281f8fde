"""Makers of nodes with rules of their own: resize, quantized numbers, einsum, recurrent networks, results whose size
depends on data; see random_operators.py."""
import numpy as np

from random_operators import BOOL, F32, I32, I64, I8, U8, axis_of, i64, maker


@maker(3)
def resize(g):
    v = g.pick(lambda v: v.array.ndim in (3, 4) and v.array.dtype == F32 and v.array.size)
    if v is None:
        return None
    mode = str(g.rng.choice(["nearest", "linear", "cubic"])) if v.array.ndim == 4 else "nearest"
    way = str(g.rng.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]))
    sizes = [*v.array.shape[:2], *(int(g.rng.integers(1, 2 * d + 2)) for d in v.array.shape[2:])]
    attributes = {"mode": mode, "coordinate_transformation_mode": way}
    if mode == "nearest":
        attributes["nearest_mode"] = str(g.rng.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]))
    return "Resize", [v, None, None, i64(g, sizes)], attributes, 1


@maker(3)
def quantize(g):
    v = g.pick(lambda v: v.array.dtype == F32 and v.exact)
    if v is None:
        return None
    kind = np.dtype(g.rng.choice(["int8", "uint8"]))
    per_axis = v.array.ndim > 1 and g.rng.random() < 0.4
    axis = axis_of(g, v) if per_axis else 1
    count = [v.array.shape[axis]] if per_axis else []
    scale = g.constant(np.asarray(g.rng.choice([0.25, 0.5, 0.125], count), np.float32))
    return "QuantizeLinear", [v, scale, g.constant(np.asarray(g.rng.integers(0, 9, count), kind))], {"axis": axis} if per_axis else {}, 1


@maker(4)
def dequantize(g):
    v = g.pick(lambda v: v.array.dtype in (I8, U8))
    if v is None:
        return None
    per_axis = v.array.ndim > 1 and g.rng.random() < 0.4
    axis = axis_of(g, v) if per_axis else 1
    count = [v.array.shape[axis]] if per_axis else []
    return "DequantizeLinear", [v, g.constant(np.asarray(g.rng.choice([0.25, 0.5], count), np.float32)), g.constant(np.asarray(g.rng.integers(0, 9, count), v.array.dtype))], {"axis": axis} if per_axis else {}, 1


@maker(2)
def integer_product(g):
    v = g.pick(lambda v: v.array.dtype in (I8, U8) and v.array.ndim >= 2 and v.array.size)
    return v and ("MatMulInteger", [v, g.constant(g.rng.integers(0, 9, [v.array.shape[-1], int(g.rng.integers(1, 9))]).astype(g.rng.choice(["int8", "uint8"]))), g.constant(np.array(3, v.array.dtype))], {}, 1)


@maker(2)
def einsum(g):
    v = g.pick(lambda v: v.array.dtype == F32 and v.array.ndim == 3 and v.array.size)
    if v is None:
        return None
    b, i, j = v.array.shape
    way = int(g.rng.integers(5))
    rule, dims = [("bij,bjk->bik", [b, j, 3]), ("bij,jk->bki", [j, 3]), ("bij,bij->b", [b, i, j]), ("bij,ikj->bk", [i, 4, j]), ("bij,i->bj", [i])][way]
    return "Einsum", [v, g.constant(g.numbers(dims, F32))], {"equation": rule}, 1


@maker(1)
def recurrent(g):
    v = g.pick(lambda v: v.array.dtype == F32 and v.array.ndim == 3 and v.array.size and v.array.shape[2] < 40)
    if v is None:
        return None
    name, hidden, both = str(g.rng.choice(["LSTM", "GRU", "RNN"])), int(g.rng.integers(1, 9)), g.rng.random() < 0.3
    gates, ways = {"LSTM": 4, "GRU": 3, "RNN": 1}[name], 2 if both else 1
    w, r, b = (g.constant(g.numbers(s, F32) / np.float32(4)) for s in ([ways, gates * hidden, v.array.shape[2]], [ways, gates * hidden, hidden], [ways, 2 * gates * hidden]))
    return name, [v, w, r, b], {"hidden_size": hidden, "direction": "bidirectional" if both else str(g.rng.choice(["forward", "reverse"]))}, 2


@maker(2)
def reverse_sequence(g):
    v = g.pick(lambda v: v.array.ndim >= 2 and v.array.size and v.array.dtype in (F32, I32, I64))
    if v is None:
        return None
    time = int(g.rng.integers(2))
    lengths = g.rng.integers(1, v.array.shape[time] + 1, v.array.shape[1 - time])
    return "ReverseSequence", [v, i64(g, lengths)], {"time_axis": time, "batch_axis": 1 - time}, 1


@maker(0)
def counted(g):
    """Results whose size depends on data; weighed by the caller."""
    v = g.pick(lambda v: v.exact and v.array.size and v.array.dtype in (F32, I32, I64, BOOL, I8))
    if v is None:
        return None
    way = g.rng.random()
    if way < 0.35 and v.array.ndim:
        return "NonZero", [v], {}, 1
    if way < 0.6 and v.array.dtype in (F32, I64, I8):
        return "Unique", [v], {"sorted": int(g.rng.integers(2))}, 4
    axis = axis_of(g, v) if v.array.ndim and g.rng.random() < 0.7 else None
    length = v.array.size if axis is None else v.array.shape[axis]
    keep = g.pick(lambda w: w.array.dtype == BOOL and w.array.shape == (length,)) or g.input(g.rng.random(length) > 0.4)
    return "Compress", [v, keep], {} if axis is None else {"axis": axis}, 1
