"""Products with weights of 4 bits beside the same with f32 weights: python bench/int4.py KILN [-n RUNS] [--device D]
Decoding sizes, through `kiln compile [--int4-weights]` and `kiln perf`, in turns; median milliseconds. Needs the Python
package onnx."""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DEPTH = COLUMNS = 4096


def make_model(m, path):
    weights = numpy_helper.from_array(np.random.default_rng(1).standard_normal((DEPTH, COLUMNS)).astype(np.float32), "w")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in (("x", [m, DEPTH]), ("y", [m, COLUMNS]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", tensors[:1], tensors[1:], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("-n", type=int, default=30)
    parser.add_argument("--device", default="host")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        for m in (1, 2, 4, 8, 16):
            model = os.path.join(work, "m.onnx")
            make_model(m, model)
            files = {}
            for name, flags in (("f32", []), ("int4", ["--int4-weights"])):
                files[name] = os.path.join(work, name + ".kiln")
                subprocess.run([options.kiln, "compile", model, "-o", files[name], "--quiet", *flags], check=True)
            times = {name: [] for name in files}
            for _ in range(3):
                for name, file in files.items():
                    done = subprocess.run([options.kiln, "perf", file, "-n", str(options.n), "--device", options.device, "--cache", os.path.join(work, "cache"), "--json"], check=True, capture_output=True, text=True)
                    times[name].append(json.loads(done.stdout)["p50_ms"])
            f32, int4 = (sorted(times[name])[1] for name in ("f32", "int4"))
            print(f"{m:3} x {DEPTH} x {COLUMNS}: f32 {f32:.3f} ms, int4 {int4:.3f} ms, {f32 / int4:.2f} x", flush=True)


if __name__ == "__main__":
    main()
