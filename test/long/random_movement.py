"""Makers of nodes that move values, or take or put some of them; see random_operators.py. What they make is as exact as
what they are given."""
import numpy as np

from random_operators import F32, F64, I32, I64, axis_of, i64, maker, ranked, some_axes


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
