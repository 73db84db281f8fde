"""Nodes for random_graphs.py: each maker looks at what a graph has so far and proposes one node over it, or None.

A maker's `g` gives values (`g.pick`), constants (`g.constant`) and random numbers (`g.rng`). It returns (operator,
inputs, attributes, number of outputs). Float values are exact or not: exact ones are small multiples of a power of two
that no order of summation changes, so operators with steps (Floor, Less, TopK) may look at them.
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


def node_of(operator, inputs, outputs, attributes):
    return helper.make_node(operator, inputs, outputs, name="n_" + outputs[0], **attributes)
