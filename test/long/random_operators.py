"""Nodes for random_graphs.py: each maker looks at what a graph has so far and proposes one node over it, or None.

A maker's `g` gives values (`g.pick`), constants (`g.constant`) and random numbers (`g.rng`). It returns (operator, inputs, attributes, number of outputs).
Float values are exact or not: exact ones are small multiples of a power of two that no order of summation changes, so operators with steps (Floor, Less,
TopK) may look at them.
"""
import numpy as np
from onnx import TensorProto, helper

MAKERS = []  # (weight, maker)
F16, F32, F64, I8, U8, I32, I64, BOOL = (np.dtype(t) for t in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"))
FLOATS, INTEGERS = (F32, F16, F64), (I8, U8, I32, I64)
# Whose results of exact floats are exact while they are small.
KEEPS_EXACT = set("""Add Sub Mul Neg Abs Relu Min Max Where Sum Clip Floor Ceil Round Sign Identity Reshape Transpose Squeeze Unsqueeze Flatten Concat Split Slice Gather GatherElements
GatherND ScatterElements ScatterND Expand Tile Pad DepthToSpace SpaceToDepth Trilu ReverseSequence MatMul Gemm ReduceSum ReduceMax ReduceMin MaxPool GlobalMaxPool CumSum TopK Compress Unique
Cast Hardmax OneHot EyeLike Mod Dropout""".split())


def maker(weight):
    def add(f):
        MAKERS.append((weight, f))
        return f
    return add


def is_float(v):
    return v.array.dtype.kind == "f"


def ranked(low, high=9):
    return lambda v: low <= v.array.ndim <= high


def axis_of(g, v, negative=True):
    axis = int(g.rng.integers(v.array.ndim))
    return axis - v.array.ndim if negative and g.rng.random() < 0.4 else axis


def some_axes(g, v):
    axes = sorted(g.rng.choice(v.array.ndim, size=int(g.rng.integers(1, v.array.ndim + 1)), replace=False).tolist())
    return [a - v.array.ndim if g.rng.random() < 0.3 else a for a in axes]


def i64(g, numbers):
    return g.constant(np.array(numbers, np.int64))


@maker(14)
def unary(g):
    v = g.pick(is_float)
    if v is None:
        return None
    a, most = v.array, np.abs(v.array).max(initial=0)
    names = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Erf", "Softplus", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "HardSwish", "Atan", "Softsign", "Mish", "Celu", "Asinh", "Identity", "Gelu", "Dropout"]
    if most <= 4:
        names += ["Exp", "Sinh", "Cosh", "Sin", "Cos"]
    if most <= 0.9:
        names += ["Asin", "Acos", "Atanh", "Tan"]
    if a.min(initial=1) >= 0.25:
        names += ["Log", "Sqrt", "Reciprocal"]
    if v.exact:
        names += ["Floor", "Ceil", "Round", "Sign", "IsNaN", "IsInf", "ThresholdedRelu", "Shrink"]
    name = str(g.rng.choice(names))
    attributes = {"alpha": 0.3} if name in ("LeakyRelu", "Elu", "HardSigmoid") else {"approximate": str(g.rng.choice(["none", "tanh"]))} if name == "Gelu" else {}
    return name, [v], attributes, 1


@maker(18)
def binary(g):
    v = g.pick(lambda v: v.array.dtype != BOOL)
    w = v and g.partner(v)
    if w is None:
        return None
    names = ["Add", "Sub", "Mul", "Min", "Max"]
    exact = v.exact and w.exact
    if is_float(v):
        if np.abs(w.array).min(initial=1) >= 0.25:
            names += ["Div"]
        if v.array.min(initial=1) >= 0.25 and np.abs(w.array).max(initial=0) <= 3:
            names += ["Pow"]
        names += ["PRelu"] if np.broadcast_shapes(v.array.shape, w.array.shape) == v.array.shape else []
        names += ["Sum", "Mean"]
    elif (w.array != 0).all() and (v.array != np.iinfo(v.array.dtype).min).all() or v.array.dtype == U8 and (w.array != 0).all():
        names += ["Div", "Mod"]
    if exact:
        names += ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"]
    if not is_float(v):
        names += ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]
    name = str(g.rng.choice(names))
    inputs = [v, w]
    if name in ("Min", "Max", "Sum", "Mean") and g.rng.random() < 0.3:
        inputs.append(v)
    return name, inputs, {}, 1


@maker(3)
def logic(g):
    v = g.pick(lambda v: v.array.dtype == BOOL)
    if v is None:
        return None
    if g.rng.random() < 0.3:
        return "Not", [v], {}, 1
    w = g.partner(v)
    return w and (str(g.rng.choice(["And", "Or", "Xor"])), [v, w], {}, 1)


@maker(4)
def where(g):
    c, v = g.pick(lambda v: v.array.dtype == BOOL), g.pick()
    w = c and v and g.partner(v)
    return w and ("Where", [c, v, w], {}, 1)


@maker(4)
def clip(g):
    v = g.pick(lambda v: v.array.dtype in (F32, F64, I32, I64, F16))
    if v is None:
        return None
    limits = [g.constant(np.array(x, v.array.dtype)) if g.rng.random() < 0.7 else None for x in (-1, 2)]
    return "Clip", [v, *limits], {}, 1


@maker(5)
def cast(g):
    v = g.pick(lambda v: v.exact or not is_float(v))
    if v is None:
        return None
    kind = g.rng.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8, TensorProto.DOUBLE])
    whole = {TensorProto.INT8: (-128, 127), TensorProto.UINT8: (0, 255), TensorProto.FLOAT16: (-512, 512)}.get(kind)
    if whole and v.array.size and (v.array.min() < whole[0] or v.array.max() > whole[1]):
        return None
    return "Cast", [v], {"to": int(kind)}, 1


@maker(6)
def float_of(g):
    v = g.pick(lambda v: not is_float(v) and np.abs(v.array.astype(np.float64)).max(initial=0) < 100)
    return v and ("Cast", [v], {"to": TensorProto.FLOAT}, 1)


@maker(8)
def matmul(g):
    v = g.pick(lambda v: v.array.dtype in (F32, F64, F16, I32) and v.array.ndim >= 1 and v.array.size)
    if v is None:
        return None
    k = v.array.shape[-1]
    w = g.pick(lambda w: w.array.dtype == v.array.dtype and w.array.ndim >= 2 and w.array.shape[-2] == k)
    if w is None or g.rng.random() < 0.6:
        n = int(g.rng.integers(1, 20))
        lead = [d if g.rng.random() < 0.5 else 1 for d in v.array.shape[:-2]] if g.rng.random() < 0.3 else []
        w = g.constant(g.numbers([*lead, k, n] if g.rng.random() < 0.9 else [k], v.array.dtype))
    if g.rng.random() < 0.1:  # v^T v
        return "MatMul", [v, v], {}, 1
    return "MatMul", [v, w], {}, 1


@maker(5)
def gemm(g):
    v = g.pick(lambda v: v.array.dtype in (F32, F64) and v.array.ndim == 2 and v.array.size)
    if v is None:
        return None
    ta, tb, n = int(g.rng.integers(2)), int(g.rng.integers(2)), int(g.rng.integers(1, 17))
    k, m = v.array.shape[1 - ta], v.array.shape[ta]
    w = g.constant(g.numbers([n, k] if tb else [k, n], v.array.dtype))
    bias = [g.constant(g.numbers(s, v.array.dtype)) for s in ([n], [1, n], [m, 1], [m, n], [1], []) if g.rng.random() < 0.25][:1]
    return "Gemm", [v, w, *bias], {"transA": ta, "transB": tb, "alpha": float(g.rng.choice([1, 0.5])), "beta": float(g.rng.choice([1, 2]))}, 1


def window(g, v, attributes):
    """kernel, strides, pads or auto_pad for the spatial axes of v."""
    spatial = v.array.shape[2:]
    kernel = [int(g.rng.integers(1, min(d, 4) + 1)) for d in spatial]
    attributes.update(kernel_shape=kernel, strides=[int(g.rng.integers(1, 4)) for _ in spatial])
    way = g.rng.random()
    if way < 0.15:
        attributes["auto_pad"] = str(g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    elif way < 0.8:
        attributes["pads"] = [int(g.rng.integers(0, k)) for k in kernel * 2]
    return attributes


@maker(7)
def convolution(g):
    v = g.pick(lambda v: v.array.dtype in (F32, F16) and 3 <= v.array.ndim <= 5 and v.array.size)
    if v is None:
        return None
    channels = v.array.shape[1]
    groups = int(g.rng.choice([d for d in range(1, channels + 1) if channels % d == 0]))
    attributes = window(g, v, {"group": groups})
    turned = g.rng.random() < 0.25 and v.array.dtype == F32
    out = int(g.rng.integers(1, 5)) * groups if channels < 40 else groups
    if not turned and "auto_pad" not in attributes and g.rng.random() < 0.2:
        attributes["dilations"] = [2 if (k - 1) * 2 < d else 1 for k, d in zip(attributes["kernel_shape"], v.array.shape[2:])]
    if turned and attributes.get("auto_pad"):
        return None
    weights = [channels, out // groups, *attributes["kernel_shape"]] if turned else [out, channels // groups, *attributes["kernel_shape"]]
    bias = [g.constant(g.numbers([out], v.array.dtype))] if g.rng.random() < 0.5 else []
    return "ConvTranspose" if turned else "Conv", [v, g.constant(g.numbers(weights, v.array.dtype)), *bias], attributes, 1


@maker(4)
def pool(g):
    v = g.pick(lambda v: v.array.dtype == F32 and 3 <= v.array.ndim <= 5 and v.array.size)
    if v is None:
        return None
    name = str(g.rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"]))
    if name.startswith("Global"):
        return name, [v], {}, 1
    attributes = window(g, v, {})
    if name == "AveragePool":
        attributes["count_include_pad"] = int(g.rng.integers(2))
    if name != "LpPool" and g.rng.random() < 0.3 and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    return name, [v], attributes, 1


@maker(5)
def normalization(g):
    v = g.pick(lambda v: v.array.dtype == F32 and v.array.ndim >= 2 and v.array.size)
    if v is None:
        return None
    shape, kind = v.array.shape, v.array.dtype
    name = str(g.rng.choice(["BatchNormalization", "LayerNormalization", "InstanceNormalization", "LRN", "LpNormalization", "MeanVarianceNormalization", "GroupNormalization"]))
    positive = lambda d: g.constant(np.abs(g.numbers([d], kind)) + np.asarray(0.5, kind))
    channel = lambda: g.constant(g.numbers([shape[1]], kind))
    if name == "BatchNormalization":
        return name, [v, channel(), channel(), channel(), positive(shape[1])], {}, 1
    if name == "LayerNormalization":
        axis = axis_of(g, v)
        rest = list(shape[axis:]) if axis < 0 else list(shape[axis:])
        return name, [v, g.constant(g.numbers(rest, kind)), *([g.constant(g.numbers(rest, kind))] if g.rng.random() < 0.6 else [])], {"axis": axis, "epsilon": 0.01}, 1
    if name == "LpNormalization":
        return name, [v], {"axis": axis_of(g, v), "p": int(g.rng.integers(1, 3))}, 1
    if v.array.ndim < 3:
        return None
    if name == "InstanceNormalization":
        return name, [v, channel(), channel()], {"epsilon": 0.01}, 1
    if name == "LRN":
        return name, [v], {"size": int(g.rng.choice([1, 3, 5]))}, 1
    if name == "MeanVarianceNormalization":
        return (name, [v], {}, 1) if v.array.ndim == 4 else None
    groups = int(g.rng.choice([d for d in range(1, shape[1] + 1) if shape[1] % d == 0]))
    return name, [v, channel(), channel()], {"num_groups": groups, "epsilon": 0.01}, 1


@maker(5)
def softmax(g):
    v = g.pick(lambda v: v.array.dtype in (F32, F64, F16) and v.array.ndim)
    if v is None:
        return None
    names = ["Softmax", "LogSoftmax"] + (["Hardmax"] if v.exact else [])
    return str(g.rng.choice(names)), [v], {"axis": axis_of(g, v)}, 1


@maker(9)
def reduction(g):
    v = g.pick(lambda v: v.array.dtype in (F32, I32, I64, F64) and v.array.size)
    if v is None:
        return None
    names = ["ReduceSum", "ReduceMax", "ReduceMin"] + (["ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"] if is_float(v) else [])
    if is_float(v) and np.abs(v.array).max(initial=0) < 2:
        names += ["ReduceProd", "ReduceLogSumExp"]
    attributes = {"keepdims": int(g.rng.integers(2))}
    inputs = [v]
    if v.array.ndim and g.rng.random() < 0.85:
        inputs.append(i64(g, some_axes(g, v)))
    elif g.rng.random() < 0.2:
        attributes["noop_with_empty_axes"] = 1
    return str(g.rng.choice(names)), inputs, attributes, 1


@maker(3)
def argument(g):
    v = g.pick(lambda v: v.exact and v.array.ndim and v.array.size and v.array.dtype in (F32, I32, I64))
    return v and (str(g.rng.choice(["ArgMax", "ArgMin"])), [v], {"axis": axis_of(g, v), "keepdims": int(g.rng.integers(2)), "select_last_index": int(g.rng.integers(2))}, 1)


@maker(3)
def cumulative(g):
    v = g.pick(lambda v: v.array.dtype in (F32, I32, I64) and v.array.ndim)
    return v and ("CumSum", [v, g.constant(np.array(axis_of(g, v), np.int64))], {"exclusive": int(g.rng.integers(2)), "reverse": int(g.rng.integers(2))}, 1)


@maker(3)
def top(g):
    v = g.pick(lambda v: v.exact and v.array.dtype in (F32, I32, I64) and v.array.ndim and v.array.size)
    if v is None:
        return None
    axis = axis_of(g, v)
    return "TopK", [v, i64(g, [int(g.rng.integers(1, v.array.shape[axis] + 1))])], {"axis": axis, "largest": int(g.rng.integers(2)), "sorted": 1}, 2


@maker(8)
def reshape(g):
    v = g.pick()
    if v is None:
        return None
    factors, rest = [], v.array.size
    for p in (2, 3, 5, 7):
        while rest and rest % p == 0:
            factors.append(p)
            rest //= p
    dims = [1] * int(g.rng.integers(1, 5))
    for f in [*factors, *([rest] if rest != 1 else [])]:
        dims[int(g.rng.integers(len(dims)))] *= f
    if rest and g.rng.random() < 0.5:
        dims[int(g.rng.integers(len(dims)))] = -1
    if rest and v.array.ndim and dims[0] == v.array.shape[0] and g.rng.random() < 0.5:
        dims[0] = 0
    return "Reshape", [v, i64(g, dims)], {}, 1


@maker(8)
def transpose(g):
    v = g.pick(ranked(2))
    return v and ("Transpose", [v], {"perm": g.rng.permutation(v.array.ndim).tolist()} if g.rng.random() < 0.85 else {}, 1)


@maker(5)
def ranks(g):
    v = g.pick()
    if v is None:
        return None
    ones = [a for a, d in enumerate(v.array.shape) if d == 1]
    if ones and g.rng.random() < 0.5:
        return "Squeeze", [v, i64(g, [int(g.rng.choice(ones))])] if g.rng.random() < 0.7 else [v], {}, 1
    if v.array.ndim and g.rng.random() < 0.3:
        return "Flatten", [v], {"axis": axis_of(g, v)}, 1
    if v.array.ndim > 4:
        return None
    return "Unsqueeze", [v, i64(g, [int(g.rng.integers(-v.array.ndim - 1, v.array.ndim + 1))])], {}, 1


@maker(6)
def concat(g):
    v = g.pick(ranked(1))
    if v is None:
        return None
    axis = axis_of(g, v)
    at = axis % v.array.ndim
    same = lambda w: w.array.dtype == v.array.dtype and w.array.ndim == v.array.ndim and all(a == b for k, (a, b) in enumerate(zip(w.array.shape, v.array.shape)) if k != at)
    parts = [g.pick(same) for _ in range(int(g.rng.integers(1, 4)))]
    if g.rng.random() < 0.4:
        parts.append(g.constant(g.numbers([int(g.rng.integers(0, 4)) if k == at else d for k, d in enumerate(v.array.shape)], v.array.dtype)))
    return "Concat", parts, {"axis": axis}, 1


@maker(5)
def split(g):
    v = g.pick(lambda v: v.array.ndim and max(v.array.shape) > 1)
    if v is None:
        return None
    axis = int(g.rng.choice([a for a, d in enumerate(v.array.shape) if d > 1]))
    first = int(g.rng.integers(1, v.array.shape[axis]))
    if g.rng.random() < 0.4:
        return "Split", [v], {"axis": axis, "num_outputs": 2}, 2
    return "Split", [v, i64(g, [first, v.array.shape[axis] - first])], {"axis": axis - v.array.ndim if g.rng.random() < 0.3 else axis}, 2


@maker(9)
def slicing(g):
    v = g.pick(ranked(1))
    if v is None:
        return None
    axes = some_axes(g, v)
    starts, ends, steps = [], [], []
    for a in axes:
        d = v.array.shape[a]
        start, end, step = int(g.rng.integers(-d - 1, d + 2)), int(g.rng.integers(-d - 1, d + 3)), int(g.rng.choice([1, 1, 1, 2, 3, -1, -2]))
        way = g.rng.random()
        if way < 0.2:
            end = -(2**63) + 1 if step < 0 else 2**63 - 1
        starts.append(start), ends.append(end), steps.append(step)
    return "Slice", [v, i64(g, starts), i64(g, ends), i64(g, axes), i64(g, steps)], {}, 1


def indices(g, most, dims):
    low = -most if g.rng.random() < 0.4 else 0
    return np.asarray(g.rng.integers(low, most, dims), np.int64 if g.rng.random() < 0.7 else np.int32)


@maker(6)
def gather(g):
    v = g.pick(lambda v: v.array.ndim and v.array.size)
    if v is None:
        return None
    axis = axis_of(g, v)
    d = v.array.shape[axis]
    given = g.pick(lambda w: w.array.dtype in (I32, I64) and w.array.ndim < 3 and w.array.size < 200 and (w.array.size == 0 or (w.array.min() >= -d and w.array.max() < d)))
    if g.rng.random() < 0.3:
        dims = [int(g.rng.integers(1, x + 1)) for x in v.array.shape]
        return "GatherElements", [v, g.constant(indices(g, d, dims))], {"axis": axis}, 1
    if given is None or g.rng.random() < 0.5:
        given = g.constant(indices(g, d, g.rng.integers(0, 5, int(g.rng.integers(0, 3))).tolist()))
    return "Gather", [v, given], {"axis": axis}, 1


@maker(2)
def gather_nd(g):
    v = g.pick(lambda v: v.array.ndim and v.array.size)
    if v is None:
        return None
    depth, rows = int(g.rng.integers(1, v.array.ndim + 1)), int(g.rng.integers(1, 6))
    return "GatherND", [v, g.constant(np.stack([g.rng.integers(-d, d, rows) for d in v.array.shape[:depth]], -1).astype(np.int64))], {}, 1


@maker(3)
def scatter(g):
    v = g.pick(lambda v: v.array.dtype in (F32, I32, I64) and v.array.ndim and v.array.size)
    if v is None:
        return None
    kind = str(g.rng.choice(["none", "add", "mul", "max", "min"]))
    if g.rng.random() < 0.5:
        axis = axis_of(g, v)
        dims = [int(g.rng.integers(1, d + 1)) for d in v.array.shape]
        if kind == "none":  # every place once
            order = np.argsort(g.rng.random(v.array.shape), axis)
            places = order[tuple(slice(0, d) for d in dims)]
        else:
            places = g.rng.integers(-v.array.shape[axis], v.array.shape[axis], dims)
        return "ScatterElements", [v, g.constant(np.asarray(places, np.int64)), g.constant(g.numbers(dims, v.array.dtype))], {"axis": axis, "reduction": kind}, 1
    first = v.array.shape[0]
    rows = g.rng.permutation(first)[: int(g.rng.integers(1, first + 1))] if kind == "none" else g.rng.integers(-first, first, int(g.rng.integers(1, 6)))
    return "ScatterND", [v, g.constant(np.asarray(rows, np.int64)[:, None]), g.constant(g.numbers([len(rows), *v.array.shape[1:]], v.array.dtype))], {"reduction": kind}, 1


@maker(4)
def expand(g):
    v = g.pick(ranked(0, 4))
    if v is None:
        return None
    if g.rng.random() < 0.4:
        return v.array.ndim and ("Tile", [v, i64(g, g.rng.integers(1, 4, v.array.ndim).tolist())], {}, 1)
    dims = [int(g.rng.integers(1, 4)) if d == 1 else int(g.rng.choice([1, d])) for d in v.array.shape]
    return "Expand", [v, i64(g, ([int(g.rng.integers(1, 4))] if g.rng.random() < 0.3 else []) + dims)], {}, 1


@maker(4)
def pad(g):
    v = g.pick(lambda v: v.array.ndim and v.array.size and v.array.dtype in (F32, I32, I64, F64))
    if v is None:
        return None
    mode = str(g.rng.choice(["constant", "reflect", "edge", "wrap"]))
    low = -1 if mode == "constant" else 0
    pads = [int(g.rng.integers(low, max(low + 1, min(3, d if mode != "constant" else 3)))) if d > 1 else 0 for d in v.array.shape * 2]
    more = [g.constant(np.array(2, v.array.dtype))] if mode == "constant" and g.rng.random() < 0.5 else []
    return "Pad", [v, i64(g, pads), *more], {"mode": mode}, 1


@maker(2)
def depth(g):
    v = g.pick(lambda v: v.array.ndim == 4 and v.array.dtype == F32 and v.array.size)
    if v is None:
        return None
    if g.rng.random() < 0.5:
        return v.array.shape[1] % 4 == 0 and ("DepthToSpace", [v], {"blocksize": 2, "mode": str(g.rng.choice(["DCR", "CRD"]))}, 1)
    return v.array.shape[2] % 2 == 0 and v.array.shape[3] % 2 == 0 and ("SpaceToDepth", [v], {"blocksize": 2}, 1)


@maker(3)
def shapes(g):
    v = g.pick()
    if v is None:
        return None
    way = g.rng.random()
    if way < 0.5:
        return "Shape", [v], {"start": int(g.rng.integers(-1, 2))} if g.rng.random() < 0.3 else {}, 1
    if way < 0.7:
        return "Size", [v], {}, 1
    if v.array.ndim == 2 and v.array.dtype in (F32, I32, I64):
        return str(g.rng.choice(["Trilu", "EyeLike"])), [v], {}, 1
    return None


@maker(2)
def one_hot(g):
    v = g.pick(lambda v: v.array.dtype in (I32, I64) and v.array.ndim < 4 and v.array.size < 100)
    return v and ("OneHot", [v, i64(g, [int(g.rng.integers(1, 6))]), g.constant(np.array([0.5, 2], np.float32))], {"axis": int(g.rng.integers(-1, v.array.ndim + 1))}, 1)


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


def node_of(operator, inputs, outputs, attributes):
    return helper.make_node(operator, inputs, outputs, name="n_" + outputs[0], **attributes)
