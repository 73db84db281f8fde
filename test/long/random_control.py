"""Makers of If, Loop and Scan over random bodies; see random_operators.py.

Bodies are made by the same makers over what a first trip sees, and are run as a whole by onnxruntime; what fails there (a
size that changes where a later trip needs it) is not taken.
"""
import numpy as np
from onnx import helper

from random_operators import BOOL, F32, I64, i64, maker, ranked

MAKERS = []
DEEPEST = 2


def control(make):
    def within_depth(g):
        return make(g) if g.depth < DEEPEST else None
    MAKERS.append(within_depth)
    return maker(0)(within_depth)


def body_of(g):
    from random_graphs import Body  # which imports this module
    return Body(g)


def fill(body, most=5):
    """Random nodes; other bodies are seldom among them."""
    weights = body.weights.copy()
    weights[weights == 40] = 4
    body.fill(int(body.rng.integers(1, most + 1)), weights)


def condition_of(g):
    """A flag: one that is there, one of a number that is there, a new input, or a constant."""
    way = g.rng.random()
    v = g.pick(lambda v: v.array.dtype == BOOL and v.array.size == 1 and v.array.ndim < 2)
    if v and way < 0.5:
        return v
    if way < 0.85:
        return g.input(np.array(g.rng.random() < 0.5))
    return g.constant(np.array(g.rng.random() < 0.5))


@control
def branches(g):
    flag = condition_of(g)
    one, other = body_of(g), body_of(g)
    fill(one)
    fill(other)
    pairs = []
    for v in one.own():
        fitting = [w for w in other.own() if w not in [taken for _, taken in pairs] and w.array.dtype == v.array.dtype and w.array.ndim == v.array.ndim and (w.array.shape == v.array.shape or g.rng.random() < 0.3)]
        if fitting:
            pairs.append((v, fitting[int(g.rng.integers(len(fitting)))]))
        if len(pairs) == 3:
            break
    if not pairs:
        return None
    (then, taken), (otherwise, more) = one.graph([v for v, _ in pairs]), other.graph([w for _, w in pairs])
    return "If", [flag], {"then_branch": then, "else_branch": otherwise}, len(pairs), unique([*taken, *more])


def unique(values):
    return list({v.name: v for v in values}.values())


def carried_results(body, state):
    """What each state becomes: a value of its type and shape, now and then a longer one. None where there is no such value."""
    results = []
    for s in state:
        if s.array.ndim and body.rng.random() < 0.2:
            axis = int(body.rng.integers(s.array.ndim))
            parts = [v for v in body.values if v.array.dtype == s.array.dtype and v.array.ndim == s.array.ndim and all(a == b for k, (a, b) in enumerate(zip(v.array.shape, s.array.shape)) if k != axis)]
            if body.add("Concat", [s, parts[int(body.rng.integers(len(parts)))]], {"axis": axis}, 1):
                results.append(body.own()[-1])
                continue
        fitting = [v for v in body.own() if v.array.dtype == s.array.dtype and v.array.shape == s.array.shape and v not in results]
        if fitting and body.rng.random() < 0.8:
            results.append(fitting[-1 - min(len(fitting) - 1, int(body.rng.exponential(1)))])
        elif body.add("Identity", [s], {}, 1):
            results.append(body.own()[-1])
        else:
            return None
    return results


@control
def loop(g):
    body = body_of(g)
    trips = int(g.rng.integers(0, 6))
    way = g.rng.random()
    count = g.constant(np.array(trips, np.int64)) if way < 0.4 else g.input(np.array(trips, np.int64)) if way < 0.9 else None
    first = g.constant(np.array(True)) if g.rng.random() < 0.6 else None if g.rng.random() < 0.7 and count else condition_of(g)
    starts = [v for v in (g.pick(lambda v: v.array.size < 2000) for _ in range(int(g.rng.integers(0, 3)))) if v]
    trip, flag = body.argument(np.array(0, np.int64)), body.argument(np.array(True))
    state = [body.argument(v.array) for v in starts]
    look_at_trip(body, trip, trips)
    fill(body)
    results = carried_results(body, state)
    if results is None:
        return None
    if count is None or g.rng.random() < 0.3:
        last = np.array(max(trips - 1, 0), np.int64)
        limit = g.constant(last) if g.rng.random() < 0.5 else g.input(last)
        added = body.add("Less", [trip, limit], {}, 1)
    else:
        added = body.add("Identity", [flag], {}, 1)
    if not added:
        return None
    goes_on = body.own()[-1]
    collected = [v for v in body.own() if v is not goes_on and v not in results and g.rng.random() < 0.4][:2]
    if not state and not collected:
        return None
    graph, taken = body.graph([goes_on, *results, *collected])
    return "Loop", [count, first, *starts], {"body": graph}, len(results) + len(collected), taken


def look_at_trip(body, trip, trips):
    """The element, or the rows up to it, that the trip's number says."""
    v = body.pick(lambda v: v.array.ndim and v.array.shape[0] >= max(trips, 1))
    if v is None or body.rng.random() < 0.4:
        return
    way = body.rng.random()
    if way < 0.5:
        body.add("Gather", [v, trip], {"axis": 0}, 1)
    elif way < 0.75 and body.add("Unsqueeze", [trip, i64(body, [0])], {}, 1):
        end = body.own()[-1]
        if body.add("Add", [end, i64(body, [1])], {}, 1):
            body.add("Slice", [v, end, body.own()[-1], i64(body, [0])], {}, 1)
    elif v.array.dtype == F32 and body.add("Cast", [trip], {"to": 1}, 1):
        body.add("Mul", [v, body.own()[-1]], {}, 1)


@control
def scan(g):
    v = g.pick(lambda v: v.array.ndim and all(v.array.shape) and v.array.size < 4000)
    if v is None:
        return None
    axis = int(g.rng.integers(v.array.ndim))
    trips, scanned, axes = v.array.shape[axis], [v], [axis]
    if g.rng.random() < 0.4:
        w = g.pick(lambda w: w.array.ndim and w.array.shape[0] == trips and w.array.size < 4000)
        if w:
            scanned.append(w)
            axes.append(0)
    starts = [s for s in (g.pick(lambda s: s.array.size < 2000) for _ in range(int(g.rng.integers(0, 3)))) if s]
    body = body_of(g)
    state = [body.argument(s.array) for s in starts]
    for s, a in zip(scanned, axes):
        body.argument(np.take(s.array, 0, axis=a))
    fill(body)
    results = carried_results(body, state)
    if results is None or any(r.array.shape != s.array.shape for r, s in zip(results, state)):
        return None
    collected = [v for v in body.own() if v not in results and g.rng.random() < 0.5][:2]
    if not collected and not state:
        return None
    graph, taken = body.graph([*results, *collected])
    attributes = {"body": graph, "num_scan_inputs": len(scanned), "scan_input_axes": axes,
                  "scan_input_directions": [int(g.rng.integers(2)) for _ in scanned]}
    if collected:
        attributes["scan_output_directions"] = [int(g.rng.integers(2)) for _ in collected]
        attributes["scan_output_axes"] = [int(g.rng.integers(v.array.ndim + 1)) if g.rng.random() < 0.4 else 0 for v in collected]
    return "Scan", [*starts, *scanned], attributes, len(results) + len(collected), taken
