#!/usr/bin/env python3
"""Time and memory of `kiln compile` on a large model, beside a copy of its weights.

    aot_memory.py KILN FOLDER [--layers N] [--rounds N]

Makes a decoder's products in FOLDER (2048 wide, 8192 in the middle, a vocabulary of 128,256; f16 weights in an external
file; 16 layers are 3.0 GB), then compiles the model and copies the file of weights in turn. Prints the seconds and the
peak memory of each. FOLDER needs twice the size of the weights; what was made is removed at the end.
"""
import argparse
import os
import resource
import shutil
import subprocess
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTH, MIDDLE, HEADS, VOCABULARY = 2048, 8192, 512, 128256


class Weights:
    """Writes tensors to an external file, one after another."""

    def __init__(self, path):
        self.file, self.name, self.tensors = open(path, "wb"), os.path.basename(path), []
        self.block = (np.random.default_rng(0).standard_normal(1 << 20) * 0.02).astype(np.float16)

    def add(self, name, *dims):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT16, dims=dims, data_location=TensorProto.EXTERNAL)
        count, offset = int(np.prod(dims)), self.file.tell()
        for key, text in (("location", self.name), ("offset", str(offset)), ("length", str(2 * count))):
            tensor.external_data.add(key=key, value=text)
        for begin in range(0, count, len(self.block)):  # no two blocks are equal
            self.file.write((self.block[: count - begin] + np.float16((offset + begin) % 7 * 1e-3)).tobytes())
        self.tensors.append(tensor)
        return name


def make(folder, layers):
    weights, nodes = Weights(f"{folder}/model.data"), []

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    x = node("Gather", [weights.add("embeddings", VOCABULARY, WIDTH), "ids"], "x")
    for i in range(layers):
        product = lambda a, name, *dims: node("MatMul", [a, weights.add(f"{name}{i}", *dims)], f"{name}_out{i}")
        q, k, v = product(x, "q", WIDTH, WIDTH), product(x, "k", WIDTH, HEADS), product(x, "v", WIDTH, HEADS)
        mixed = node("Add", [q, node("Concat", [k, v, k, v], f"kv{i}", axis=-1)], f"mixed{i}")
        x = node("Add", [x, product(mixed, "o", WIDTH, WIDTH)], f"first{i}")
        gate, up = product(x, "gate", WIDTH, MIDDLE), product(x, "up", WIDTH, MIDDLE)
        silu = node("Mul", [gate, node("Sigmoid", [gate], f"sigmoid{i}")], f"silu{i}")
        x = node("Add", [x, product(node("Mul", [silu, up], f"middle{i}"), "down", MIDDLE, WIDTH)], f"second{i}")
    node("MatMul", [x, weights.add("head", WIDTH, VOCABULARY)], "logits")
    weights.file.close()
    graph = helper.make_graph(nodes, "decoder", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 1])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT16, [1, 1, VOCABULARY])], weights.tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{folder}/model.onnx")


def timed(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("folder")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    folder = os.path.join(args.folder, "aot_memory")
    os.makedirs(folder)
    try:
        make(folder, args.layers)
        size = os.path.getsize(f"{folder}/model.data")
        for _ in range(args.rounds):
            compile_s = timed([args.kiln, "compile", f"{folder}/model.onnx", "-o", f"{folder}/model.kiln"])
            copy_s = timed(["cp", f"{folder}/model.data", f"{folder}/copy"])
            for made in ("model.kiln", "copy"):
                os.remove(f"{folder}/{made}")
            print(f"{size / 1e9:.2f} GB: kiln compile {compile_s:.1f} s, cp {copy_s:.1f} s", flush=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        print(f"peak memory of kiln compile, pages of the mapped weights included: {peak / 1e9:.2f} GB, {peak / size:.2f} of the weights")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
