#!/usr/bin/env python3
"""A small int8 network in QDQ form: residual blocks of 3x3 convolutions whose inputs, weights and sums are quantized.
Bound by launches, for replay.py.

    bench/gpu/qdq_model.py OUT.onnx [--blocks 20] [--channels 16] [--size 32]
"""
import argparse
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("--blocks", type=int, default=20)
    ap.add_argument("--channels", type=int, default=16)
    ap.add_argument("--size", type=int, default=32)
    o = ap.parse_args()
    random, nodes, constants, count = np.random.default_rng(5), [], [], 0

    def constant(value):
        constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(constants)}"))
        return constants[-1].name

    def node(kind, *inputs, **attributes):
        nonlocal count
        count += 1
        nodes.append(helper.make_node(kind, list(inputs), [f"t{count}"], **attributes))
        return f"t{count}"

    zero, scale = constant(np.int8(0)), constant(np.float32(0.05))

    def quantized(x):
        return node("DequantizeLinear", node("QuantizeLinear", x, scale, zero), scale, zero)

    def convolution(x, channels_in):
        weights = random.integers(-60, 60, (o.channels, channels_in, 3, 3)).astype(np.int8)
        w = node("DequantizeLinear", constant(weights), constant(np.float32(0.03 / np.sqrt(channels_in * 9))), zero)
        return node("Conv", x, w, constant(random.normal(0, 0.1, o.channels).astype(np.float32)), kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    x = quantized(node("Relu", convolution(quantized("x"), 3)))
    for _ in range(o.blocks):
        y = quantized(node("Relu", convolution(x, o.channels)))
        x = quantized(node("Relu", node("Add", convolution(y, o.channels), x)))
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["y"]))
    graph = helper.make_graph(nodes, "qdq", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, o.size, o.size])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, o.channels, 1, 1])], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), o.out)


if __name__ == "__main__":
    main()
