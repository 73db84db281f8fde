#!/usr/bin/env python3
"""Memory of one session that meets many sizes.

    random_shapes_memory.py [MODEL.onnx...] [--shapes 10000] [--most NAME=SIZE...] [--specialize lazy|eager|off]

Runs each model in one session at random sizes of its open dimensions, and fails if the process' resident memory grows by
more than 5 % after the first tenth of them (at least 100). Without models: three that the script makes. Sizes that a
model refuses are counted; any other error ends the script. PYTHONPATH must have the Python package."""
import argparse
import gc
import os
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import kiln

LIMIT = 1.05
rng = np.random.default_rng(7)


def tensor(name, dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def weights(name, *shape):
    return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 8, name)


def model_of(nodes, x, initializers):
    graph = helper.make_graph([helper.make_node(op, i, o, **a) for op, i, o, a in nodes], "g", [tensor("x", x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def made_models():
    """name → a model with open dimensions: products, attention by parts, convolutions."""
    perceptron = [("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["r"], {}), ("MatMul", ["r", "v"], ["l"], {}), ("Softmax", ["l"], ["y"], {"axis": -1})]
    attention = [("MatMul", ["x", "w"], ["q"], {}), ("Transpose", ["x"], ["t"], {"perm": [0, 2, 1]}), ("MatMul", ["q", "t"], ["s"], {}), ("Softmax", ["s"], ["p"], {"axis": -1}), ("MatMul", ["p", "x"], ["y"], {})]
    image = [("Conv", ["x", "k"], ["c"], {"pads": [1] * 4}), ("Relu", ["c"], ["r"], {}), ("MaxPool", ["r"], ["m"], {"kernel_shape": [2, 2], "strides": [2, 2]}), ("GlobalAveragePool", ["m"], ["y"], {})]
    return {
        "perceptron": model_of(perceptron, ["batch", "seq", 32], [weights("w", 32, 48), weights("v", 48, 8)]),
        "attention": model_of(attention, ["batch", "seq", 32], [weights("w", 32, 32)]),
        "image": model_of(image, ["batch", 3, "height", "width"], [weights("k", 6, 3, 3, 3)]),
    }


def resident_mib():
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def input_dimensions(model):
    """input → its dimensions: numbers, and names of those that are open."""
    fixed = {i.name for i in model.graph.initializer}
    given = {i.name: i for i in model.graph.input if i.name not in fixed}
    return {name: [d.dim_param or d.dim_value or f"{name}_dim{axis}" for axis, d in enumerate(i.type.tensor_type.shape.dim)] for name, i in given.items()}


def open_dimensions(model):
    return sorted({d for dims in input_dimensions(model).values() for d in dims if isinstance(d, str)})


def random_inputs(model, sizes):
    kinds = {i.name: helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in model.graph.input}
    inputs = {}
    for name, dims in input_dimensions(model).items():
        shape = [sizes.get(d, d) for d in dims]
        data = rng.standard_normal(shape) if np.issubdtype(kinds[name], np.floating) else rng.integers(0, 2, shape)
        inputs[name] = np.asarray(data).astype(kinds[name])
    return inputs


def measure(name, model, options):
    """Returns whether the memory stayed."""
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model.SerializeToString())
        file.flush()
        compiled = kiln.compile(file.name)
    names, most = open_dimensions(model), dict(pair.split("=") for pair in options.most)
    warm_up, refused, begin, samples = max(100, options.shapes // 10), 0, time.monotonic(), []
    with compiled.session(specialization=options.specialize, threads=2) as session:
        for count in range(options.shapes + warm_up):
            sizes = {n: int(rng.integers(1, int(most.get(n, 4 if "batch" in n else 48)) + 1)) for n in names}
            try:
                session.run(random_inputs(model, sizes))
            except kiln.errors.InvalidShapeError:
                refused += 1
            if count + 1 >= warm_up and (count + 1 - warm_up) % max(1, options.shapes // 10) == 0:
                samples.append(resident_mib())
    growth = samples[-1] / samples[0]
    print(f"{name}: {options.shapes} sizes, {refused} refused, {(time.monotonic() - begin) * 1e3 / (options.shapes + warm_up):.1f} ms each; "
          f"MiB {samples[0]:.1f} -> {samples[-1]:.1f} (most {max(samples):.1f}), growth {100 * (growth - 1):.2f} %", flush=True)
    if refused == options.shapes + warm_up:
        print(f"{name}: every size was refused", file=sys.stderr)
        return False
    return growth < LIMIT


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--shapes", type=int, default=10000)
    parser.add_argument("--most", action="append", default=[], metavar="NAME=SIZE")
    parser.add_argument("--specialize", default="off", choices=["lazy", "eager", "off"])
    options = parser.parse_args()
    models = {os.path.basename(m): onnx.load(m) for m in options.models} or made_models()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"], os.environ["KILN_CACHE_DIR"] = os.path.join(folder, "config"), os.path.join(folder, "cache")
        grown = [name for name, model in models.items() if not measure(name, model, options)]
    if grown:
        sys.exit(f"memory grew, or nothing ran: {', '.join(grown)}")


if __name__ == "__main__":
    main()
