#!/usr/bin/env python3
"""Random ONNX graphs against onnxruntime, through the command line: compile, run, compare.

    random_graphs.py KILN [--count N] [--seed S] [--nodes MIN:MAX] [--counted SHARE] [--control SHARE] [--open SHARE] [--keep DIR] [--seconds S]

Graph S is made of the seed S alone. Its nodes come from random_operators.py, random_movement.py, random_special.py and
random_control.py; onnxruntime computes each as it is added, so every value is known. What kiln refuses at compile time is counted by
reason and is no failure; any other error, a signal or a wrong number is: the graph is then shrunk, by cutting nodes and
making their results inputs, and kept as DIR/SEED.onnx with its inputs. Exits 1 after failures.
"""
import argparse
import collections
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import random_operators as operators
import random_control  # adds its makers
import random_movement
import random_special

OPSET = 20
# A row that every machine of this kind runs (ctest names the processor).
HOST = {"aarch64": "armv8-a"}.get(os.environ.get("KILN_PROCESSOR", ""), "x86-64-v3")
onnxruntime.set_default_logger_severity(4)


class Value:
    def __init__(self, name, array, exact, source):
        self.name, self.array, self.exact, self.source = name, array, exact, source  # source: "input", "constant" or a node


def is_small(array):
    """Multiples of a power of two of which a few thousand can be summed without rounding."""
    steps, most = (4, 64) if array.dtype == np.float16 else (256, 16384)
    scaled = array.astype(np.float64) * steps
    return bool((scaled == np.round(scaled)).all() and np.abs(array).max(initial=0) < most)


class Scope:
    """Values that nodes may take, and nodes: what makers see of a graph or of a body in it."""

    def __init__(self, rng, prefix, depth):
        self.rng, self.prefix, self.depth = rng, prefix, depth
        self.values, self.nodes = [], []

    def fill(self, wanted, weights):
        for _ in range(20 * wanted):
            if len(self.nodes) == wanted:
                break
            proposal = operators.MAKERS[self.rng.choice(len(weights), p=weights / weights.sum())][1](self)
            if proposal:
                self.add(*proposal)

    def numbers(self, dims, kind):
        if kind == np.bool_:
            return self.rng.random(dims) > 0.5
        low = 0 if kind == np.uint8 else -8
        whole = self.rng.integers(low, 9, dims)
        return np.asarray(whole if np.dtype(kind).kind in "iu" else whole / 4, kind)

    def constant(self, array):
        return Value(f"c{int(self.rng.integers(1 << 62))}", np.ascontiguousarray(array), True, "constant")

    def pick(self, condition=lambda v: True):
        fitting = [v for v in self.values if v.array.size < 20000 and condition(v)]
        return fitting[min(len(fitting) - 1, int(self.rng.exponential(4)))] if fitting and not self.rng.integers(2) else fitting[-1 - min(len(fitting) - 1, int(self.rng.exponential(3)))] if fitting else None

    def partner(self, v):
        """Another operand of v's type that broadcasts with it."""
        def broadcasts(w):
            return w.array.dtype == v.array.dtype and all(a == b or 1 in (a, b) for a, b in zip(w.array.shape[::-1], v.array.shape[::-1]))
        if self.rng.random() < 0.6:
            return self.pick(broadcasts)
        dims = [d if self.rng.random() < 0.6 else 1 for d in v.array.shape]
        return self.constant(self.numbers(dims[int(self.rng.integers(len(dims) + 1)):], v.array.dtype))

    def add(self, operator, inputs, attributes, outputs, captured=()):
        """Adds a node if onnxruntime computes it and its results are small. `captured`: values that its bodies take from outside.
        Returns whether it was added."""
        names = [f"{self.prefix}{len(self.values) + k}" for k in range(outputs)]
        node = operators.node_of(operator, [v.name if v else "" for v in inputs], names, attributes)
        inputs = [*inputs, *captured]
        given = {v.name: v for v in inputs if v}
        try:
            run = run_apart if operator in ("If", "Loop", "Scan") else run_onnxruntime
            results = run(model_of([node], given, names), {v.name: v.array for v in given.values() if v.source != "constant"})
        except Exception:  # not a valid node, or one that onnxruntime lacks
            return False
        for r in results:
            if r.size > 40000 or r.dtype.kind == "f" and not (np.isfinite(r).all() and np.abs(r).max(initial=0) < 1000):
                return False
        exact = operator in operators.KEEPS_EXACT and all(v.exact for v in given.values())
        node.name = f"n{self.prefix}{len(self.nodes)}"
        self.nodes.append((node, inputs))
        for name, r in zip(names, results):
            self.values.append(Value(name, r, r.dtype.kind != "f" or exact and is_small(r), node))
        return True


class Graph(Scope):
    def __init__(self, seed, nodes, counted, control):
        super().__init__(np.random.default_rng(seed), "v", 0)
        self.open = {}
        for _ in range(int(self.rng.integers(1, 4))):
            self.input(self.numbers(self.dims(), np.dtype(self.rng.choice(["float32"] * 8 + ["float16", "float64", "int8", "int32", "int64", "bool"]))))
        makers = [m for _, m in operators.MAKERS]
        weights = np.array([w for w, _ in operators.MAKERS], float)
        if self.rng.random() < counted:
            weights[makers.index(random_special.counted)] = 12
        if self.rng.random() < control:
            for m in random_control.MAKERS:
                weights[makers.index(m)] = 40
        self.weights = weights
        self.fill(int(self.rng.integers(nodes[0], nodes[1] + 1)), weights)

    def dims(self):
        rank = int(self.rng.choice([0, 1, 2, 3, 4, 5], p=[0.03, 0.12, 0.25, 0.25, 0.3, 0.05]))
        return self.rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 33], rank, p=[0.005, 0.145, *[0.08] * 8, 0.1, 0.07, 0.04]).tolist()

    def input(self, array):
        self.values.append(Value(f"v{len(self.values)}", np.asarray(array), True, "input"))
        return self.values[-1]

    def outputs(self):
        used = {v.name for _, inputs in self.nodes for v in inputs if v}
        return [v for v in self.values if v.source not in ("input", "constant") and (v.name not in used or self.rng.random() < 0.15)]


class Body(Scope):
    """The body of an If, a Loop or a Scan of `outer`, which sees the values outside, too."""

    def __init__(self, outer):
        super().__init__(outer.rng, f"b{int(outer.rng.integers(1 << 30))}_", outer.depth + 1)
        self.outer, self.weights = outer, outer.weights
        self.values, self.arguments = list(outer.values), []

    def argument(self, array, exact=False):
        """A value that the node gives the body."""
        self.values.append(Value(f"{self.prefix}a{len(self.values)}", np.asarray(array), exact or array.dtype.kind != "f", "input"))
        self.arguments.append(self.values[-1])
        return self.values[-1]

    def input(self, array):
        v = self.outer.input(array)
        self.values.append(v)
        return v

    def own(self):
        """The values that its nodes make."""
        return [v for v in self.values if any(v.source is node for node, _ in self.nodes)]

    def graph(self, outputs):
        """The body as GraphProto, and what it takes from outside."""
        local = {v.name for v in [*self.own(), *self.arguments]}
        taken = {v.name: v for _, inputs in self.nodes for v in inputs if v and v.name not in local}
        constants = [numpy_helper.from_array(v.array, v.name) for v in taken.values() if v.source == "constant" and v.name not in {w.name for w in self.outer.values}]
        described = [helper.make_tensor_value_info(v.name, kind_of(v.array), None) for v in outputs]
        arguments = [helper.make_tensor_value_info(v.name, kind_of(v.array), None if v.array.ndim else []) for v in self.arguments]
        body = helper.make_graph([n for n, _ in self.nodes], self.prefix, arguments, described, constants)
        return body, [v for v in taken.values() if v.source != "constant"]


def run_onnxruntime(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, inputs)


def run_apart(model, inputs):
    """run_onnxruntime in a process of its own: a later trip of a loop may divide by 0, which ends onnxruntime by a signal."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(writer, "wb") as out:
                pickle.dump(run_onnxruntime(model, inputs), out)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as results:
        data = results.read()
    os.waitpid(child, 0)
    return pickle.loads(data)


def kind_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def model_of(nodes, given, outputs, kinds={}, open_dims={}):
    """`given`: values by name that no node makes; constants become initializers. The types of the outputs may be left
    out for onnxruntime."""
    inputs = [helper.make_tensor_value_info(v.name, kind_of(v.array), [open_dims.get((v.name, k), d) for k, d in enumerate(v.array.shape)]) for v in given.values() if v.source != "constant"]
    constants = [numpy_helper.from_array(v.array, v.name) for v in given.values() if v.source == "constant"]
    described = [helper.make_tensor_value_info(n, kinds[n], None) if n in kinds else onnx.ValueInfoProto(name=n) for n in outputs]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, described, constants), opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


class Case:
    """A part of a graph: nodes, the values they need from outside, and the outputs that are looked at."""

    def __init__(self, nodes, outputs, cut=frozenset()):
        self.cut = cut  # names of values that are inputs though a node makes them
        needed, self.nodes = {v.name for v in outputs}, []
        for node, inputs in reversed(nodes):
            if any(o in needed and o not in cut for o in node.output):
                self.nodes.insert(0, (node, inputs))
                needed |= {v.name for v in inputs if v}
        made = {o for node, _ in self.nodes for o in node.output}
        self.outputs = [v for v in outputs if v.name in made and v.name not in cut]
        self.given = {v.name: v for _, inputs in self.nodes for v in inputs if v and (v.name not in made or v.name in cut)}

    def model(self, open_dims):
        def renamed(node):  # a cut value's own node writes elsewhere
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.output[:] = [o + "_unused" if o in self.cut else o for o in node.output]
            return copy
        return model_of([renamed(n) for n, _ in self.nodes], self.given, [v.name for v in self.outputs], {v.name: kind_of(v.array) for v in self.outputs}, open_dims)


def difference(v, got):
    want = v.array
    if got.dtype == want.dtype and not got.size and not want.size:
        return None  # onnxruntime takes sizes that no trip has told to be 0
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{v.name}: {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if want.dtype.kind != "f":
        return None if (got == want).all() else f"{v.name}: {int((got != want).sum())} of {want.size} integers differ"
    if not np.isfinite(got).all():
        return f"{v.name}: not finite"
    relative = {2: 2e-2, 4: 2e-3, 8: 2e-4}[want.dtype.itemsize]
    worst = np.abs(got.astype(np.float64) - want).max(initial=0)
    limit = relative * max(1.0, float(np.abs(want).max(initial=0)))
    return None if worst <= limit else f"{v.name}: differs by {worst:.3g}, allowed {limit:.3g}"


class Checker:
    def __init__(self, kiln):
        self.kiln = kiln

    def call(self, *arguments):
        done = subprocess.run([self.kiln, *arguments], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stderr.strip()

    def check(self, case, options, folder):
        """("ok" | "refused" | "failed", what)."""
        model, out = os.path.join(folder, "m.onnx"), os.path.join(folder, "m.kiln")
        onnx.save(case.model(options["open"]), model)
        open_names = sorted({name for (v, _), name in options["open"].items() if v in case.given})
        ones = {name for (v, axis), name in options["open"].items() if v in case.given and case.given[v].array.shape[axis] == 1}
        dims = [word for n in open_names for word in ("--dim", f"{n}=1:64", *(("--may-be-one", n) if n in ones else ()))]
        code, text = self.call("compile", model, "-o", out, "--quiet", *dims)
        if code == 3:
            return "refused", text
        if code:
            return "failed", f"compile: exit {code}: {text[-300:]}"
        inputs = {v.name: v.array for v in case.given.values() if v.source != "constant"}
        what = self.run(out, case, inputs, case.outputs, options, folder)
        if what:
            return ("refused" if what.startswith("refused") else "failed"), what
        for size in options["sizes"] if open_names else ():
            what = self.run_other(model, out, case, inputs, size, options, folder)
            if what:
                return "failed", f"size {size}: {what}"
        return "ok", ""

    def run(self, out, case, inputs, outputs, options, folder):
        """"" if the file's results are `outputs`."""
        given = []
        for name, array in inputs.items():
            np.save(os.path.join(folder, name + ".npy"), array)
            given += ["--input", f"{name}={folder}/{name}.npy"]
        code, text = self.call("run", out, "--quiet", "--no-cache", "--output-dir", folder + "/out", *given, *options["run"])
        if code == 5 and "do not broadcast" in text:  # a size that data decide is taken to be the one that it meets
            return "refused: " + text
        if code:
            return f"run: exit {code}: {text[-300:]}"
        return "; ".join(d for d in (difference(v, np.load(f"{folder}/out/{v.name}.npy")) for v in outputs) if d)

    def run_other(self, model, out, case, inputs, size, options, folder):
        """The same file where the open dimension has another size, if onnxruntime runs the model for it."""
        for (name, axis), _ in options["open"].items():
            if name in inputs:
                inputs[name] = np.take(inputs[name], np.arange(size) % inputs[name].shape[axis], axis=axis)
        try:
            results = run_apart(onnx.load(model), inputs)
        except Exception:
            return ""
        outputs = [Value(v.name, r, v.exact, v.source) for v, r in zip(case.outputs, results)]
        if any(v.array.dtype.kind == "f" and not np.isfinite(v.array).all() for v in outputs):
            return ""
        what = self.run(out, case, inputs, outputs, options, folder)
        if "exit 5" in what or what.startswith("refused"):
            print(f"refused for size {size} of {os.path.basename(folder)}: {what[:300]}", flush=True)
            return ""
        return what


def shrink(checker, graph, case, options, folder):
    """As few nodes as still fail."""
    def fails(c):
        return c.nodes and c.outputs and checker.check(c, options, folder)[0] == "failed"
    for v in case.outputs:
        single = Case(graph.nodes, [v])
        if fails(single):
            case = single
            break
    tried = set()
    while True:
        candidates = [o for node, _ in case.nodes for o in node.output if o not in tried and o not in case.cut and o not in {v.name for v in case.outputs}]
        if not candidates:
            return case
        tried.add(candidates[0])
        smaller = Case(graph.nodes, case.outputs, case.cut | {candidates[0]})
        if fails(smaller):
            case = smaller


def options_of(graph, case, share):
    """How to compile and run; in a share of the graphs the first dimension of all inputs that have the same is open."""
    rng = graph.rng
    options = {"open": {}, "run": ["--threads", str(int(rng.integers(1, 3)))], "sizes": rng.choice([1, 2, 3, 4, 5, 7, 8, 13, 16, 40], 2, replace=False).tolist()}
    if rng.random() < 0.3:
        options["run"] += ["--target", HOST]
    first = [v for v in case.given.values() if v.source == "input" and v.array.ndim]
    if first and rng.random() < share and 0 < first[0].array.shape[0] <= 64:
        options["open"] = {(v.name, 0): "N" for v in first if v.array.shape[0] == first[0].array.shape[0]}
    return options


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seconds", type=float, default=float("inf"))
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--nodes", default="5:30")
    p.add_argument("--counted", type=float, default=0.2)
    p.add_argument("--control", type=float, default=0.2, help="share of graphs with many If, Loop and Scan")
    p.add_argument("--open", type=float, default=0.2, help="share of graphs with an open dimension")
    p.add_argument("--keep", default="build/random_graphs")
    a = p.parse_args()
    checker, began = Checker(os.path.abspath(a.kiln)), time.monotonic()
    counts, reasons, seen = collections.Counter(), collections.Counter(), collections.Counter()
    for seed in range(a.seed, a.seed + a.count):
        if time.monotonic() - began > a.seconds:
            break
        graph = Graph(seed, tuple(map(int, a.nodes.split(":"))), a.counted, a.control)
        case = Case(graph.nodes, graph.outputs())
        if not case.nodes:
            continue
        options = options_of(graph, case, a.open)
        seen.update(node.op_type for node, _ in case.nodes)
        with tempfile.TemporaryDirectory(prefix=f"{seed}-") as folder:
            outcome, what = checker.check(case, options, folder)
            if outcome == "refused" and options["open"]:
                counts["refused while open"] += 1
                options["open"] = {}
                outcome, what = checker.check(case, options, folder)
            counts[outcome] += 1
            if outcome == "refused":
                reason = re.sub(r"\d+", "#", re.sub(r"node '[^']*'|'[^']*'|\S*/m\.onnx", "_", what))
                reasons[reason] += 1
                if reasons[reason] == 1:
                    print(f"refused {seed}: {what}", flush=True)
            if outcome == "failed":
                small = shrink(checker, graph, case, options, folder)
                what = checker.check(small, options, folder)[1]
                kept = os.path.join(a.keep, str(seed))
                os.makedirs(kept, exist_ok=True)
                onnx.save(small.model(options["open"]), kept + ".onnx")
                for v in small.given.values():
                    if v.source != "constant":
                        np.save(f"{kept}/{v.name}.npy", v.array)
                print(f"FAILED {seed} {options}: {what}\n{onnx.printer.to_text(small.model(options['open']))[:3000]}", flush=True)
        if seed % 100 == 99:
            print(f"{seed}: {dict(counts)}, {time.monotonic() - began:.0f} s", flush=True)
    for reason, count in reasons.most_common():
        print(f"{count:6} refused: {reason}")
    print(f"{len(seen)} operators, {sum(seen.values())} nodes: {dict(seen.most_common())}")
    print(f"{counts['ok']} agree, {counts['refused']} refused, {counts['failed']} failed")
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
