"""Makes kernels for gemm.py: products with weights of 4 bits, as decoding does them: python3 bench/gpu/int4_cases.py
KILN FOLDER [--target sm_90] [--all]
Each case is a MatMul with DequantizeLinear of a constant in groups of 128, through `kiln compile` and `kiln finalize
--configuration ...`. `--all`: configurations beside the default one, for decoding. f16_decode is the same product with
f16 weights. Needs the Python package onnx; gemm.py needs PyTorch alone."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GROUP = 128
SIZES = [("int4_decode", 16, 4096, 4096), ("int4_decode_1", 1, 4096, 4096), ("int4_decode_4", 4, 4096, 4096), ("int4_up", 16, 11008, 4096), ("int4_down", 16, 4096, 11008), ("int4_prefill", 512, 4096, 4096),
         ("int4_small", 3, 72, 1152), ("f16_decode", 16, 4096, 4096)]
CONFIGURATIONS = [f"narrow_columns={c},narrow_waves={w}" for c in (1, 2, 4) for w in (8, 16)]


def make_model(n, k, path, m):
    rng = np.random.default_rng(1)
    weights = helper.make_tensor("w", TensorProto.INT4, [k, n], rng.integers(0, 256, k * n // 2, dtype=np.uint8).tobytes(), raw=True)
    scales = numpy_helper.from_array(rng.random((k // GROUP, n)).astype(np.float16), "s")
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=GROUP), helper.make_node("MatMul", ["a", "d"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("a", TensorProto.FLOAT16, [m, k])], [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [m, n])], [weights, scales])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def make_plain_model(n, k, path, m):
    nodes = [helper.make_node("Transpose", ["b"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["a", "t"], ["y"])]
    tensors = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT16, dims) for name, dims in (("a", [m, k]), ("b", [n, k]), ("y", [m, n]))}
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [tensors["a"], tensors["b"]], [tensors["y"]]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("folder")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for name, m, n, k in SIZES:
            model, program = os.path.join(work, "m.onnx"), os.path.join(work, "m.kiln")
            packed = name.startswith("int4")
            (make_model if packed else make_plain_model)(n, k, model, m)
            subprocess.run([options.kiln, "compile", model, "-o", program, "--quiet"], check=True)
            for number, configuration in enumerate([""] + (CONFIGURATIONS if options.all and name in ("int4_decode", "int4_decode_1") else [])):
                out = os.path.join(work, "out")
                shutil.rmtree(out, ignore_errors=True)
                more = ["--configuration", configuration] if configuration else []
                subprocess.run([options.kiln, "finalize", program, "--target", options.target, "-o", out, "--no-cache", "--quiet", *more], check=True)
                with open(os.path.join(out, "kernels.json")) as f:
                    kernels = json.load(f)["kernels"]
                if len(kernels) != 1:
                    sys.exit(f"{name}: {len(kernels)} kernels where one was expected")
                stem = os.path.join(options.folder, f"{name}@{number}" if number else name)
                shutil.copy(os.path.join(out, kernels[0]["object"]), stem + ".ptx")
                kinds = {"input": 0, "output": 1, "scratch": 2}
                launches = [{"symbol": l["symbol"], "grid": l["grid"], "block": l["block"][0] if isinstance(l["block"], list) else l["block"], "lds": l["lds_bytes"], "prepare": l.get("prepare", False),
                             "args": [[kinds[a["kind"]], a["index"]] for a in l["arguments"]]} for l in kernels[0]["launches"]]
                scratch = kernels[0]["scratch"]
                weights = [["i4", [n, k // GROUP, GROUP]], ["f16", [n, k // GROUP, 1]]] if packed else [["f16", [n, k]]]
                document = {"spec": f"{name} {'op=int4' if packed else 'op=dot tb=1'} m={m} n={n} k={k} {configuration.replace(',', ' ')}".strip(), "inputs": [["f16", [m, k]], *weights], "outputs": [["f16", [m, n]]],
                            "scratch": [s["bytes"] for s in scratch], "zeroed": [bool(s.get("zeroed")) for s in scratch], "launches": launches}
                with open(stem + ".json", "w") as f:
                    json.dump(document, f)
                print(os.path.basename(stem), configuration, flush=True)


if __name__ == "__main__":
    main()
