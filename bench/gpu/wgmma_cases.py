"""Makes the kernels that wgmma_check.py runs: python3 bench/gpu/wgmma_cases.py KILN FOLDER [--list FILE]
For each case (a matrix product and a configuration) an ONNX model goes through `kiln compile` and `kiln finalize
--target sm_90 --configuration ...`; FOLDER gets the PTX files and cases.json. FILE holds one case a line: name batch m
n k type transpose_a transpose_b epilogue out_type NAME=INTEGER,... (epilogues: 0 none, 1 bias and relu, 2 bias,
residual and relu, 3 x * sigmoid(x)). Needs the Python package onnx."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper

TYPES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT, "i8": TensorProto.INT8, "i32": TensorProto.INT32}
KEYS = ("name", "batch", "m", "n", "k", "type", "ta", "tb", "epilogue", "otype", "config")


def default_cases():
    """Every layout, type and tile with odd sizes and bounded waits (c*), then what is worth timing (s*)."""
    lines, counts = [], {"c": 0, "s": 0}

    def add(kind, batch, m, n, k, type_, ta, tb, epilogue, tile, cluster=(1, 1), more=""):
        counts[kind] += 1
        out = "i32" if type_ == "i8" else type_
        config = f"wgmma=1,tile_m={tile[0]},tile_n={tile[1]},consumers={tile[2]},cluster_m={cluster[0]},cluster_n={cluster[1]}{more}"
        lines.append(f"{kind}{counts[kind]} {batch} {m} {n} {k} {type_} {ta} {tb} {epilogue} {out} {config}{',bounded=1' if kind == 'c' else ''}")

    big, square, narrow, small = (128, 256, 2), (128, 128, 2), (128, 64, 2), (64, 64, 1)
    tiles = [big, (256, 128, 2), square, narrow, (64, 256, 1), (64, 128, 1), small]
    for tile in tiles:
        add("c", 1, 512, 512, 512, "f16", 0, 0, 0, tile)
        add("c", 1, 333, 520, 200, "bf16", 0, 0, 1, tile)
    for ta in (0, 1):
        for tb in (0, 1):
            add("c", 3, 200, 264, 136, "f16", ta, tb, 0, square)
            add("c", 1, 1000, 1000, 1000, "f16", ta, tb, 2, big)
    for cluster in ((2, 1), (1, 2), (2, 2), (4, 1)):
        add("c", 1, 1000, 1032, 520, "f16", 0, 1, 3, square, cluster)
        add("c", 1, 640, 640, 320, "i8", 0, 0, 0, square, cluster)
    for tb in (1, 0):
        for tile, cluster in ((big, (1, 1)), (big, (2, 1)), ((256, 128, 2), (1, 2)), (square, (2, 1))):
            add("s", 1, 4096, 4096, 4096, "f16", 0, tb, 0, tile, cluster)
        for tile, cluster in ((square, (2, 1)), (narrow, (2, 1)), (narrow, (2, 2)), ((64, 128, 1), (2, 2))):
            add("s", 1, 1024, 1024, 1024, "f16", 0, tb, 0, tile, cluster)
    for tile, cluster in ((big, (1, 1)), (big, (2, 1))):
        add("s", 1, 4096, 4096, 4096, "i8", 0, 0, 0, tile, cluster)
    return lines


def shape_of(batch, rows, columns):
    return ([batch] if batch > 1 else []) + [rows, columns]


def make_model(case, path):
    """A is an input, so is B, but for int8, whose weights are a constant: the kernel rearranges it before the first
    run."""
    batch, m, n, k = (case[x] for x in ("batch", "m", "n", "k"))
    a_shape = shape_of(batch, k, m) if case["ta"] else shape_of(batch, m, k)
    b_shape = shape_of(batch, n, k) if case["tb"] else shape_of(batch, k, n)
    out_shape = shape_of(batch, m, n)
    last_two = list(range(len(out_shape)))
    last_two[-1], last_two[-2] = last_two[-2], last_two[-1]
    inputs = [helper.make_tensor_value_info("a", TYPES[case["type"]], a_shape), helper.make_tensor_value_info("b", TYPES[case["type"]], b_shape)]
    nodes, names = [], ["a", "b"]
    for i, key in enumerate(("ta", "tb")):
        if case[key]:
            nodes.append(helper.make_node("Transpose", [names[i]], [names[i] + "_t"], perm=last_two))
            names[i] += "_t"
    nodes.append(helper.make_node("MatMulInteger" if case["type"] == "i8" else "MatMul", names, ["d"]))
    result = "d"
    if case["epilogue"] in (1, 2):
        inputs.append(helper.make_tensor_value_info("bias", TYPES[case["otype"]], [n]))
        nodes.append(helper.make_node("Add", [result, "bias"], ["biased"]))
        result = "biased"
        if case["epilogue"] == 2:
            inputs.append(helper.make_tensor_value_info("residual", TYPES[case["otype"]], out_shape))
            nodes.append(helper.make_node("Add", [result, "residual"], ["summed"]))
            result = "summed"
        nodes.append(helper.make_node("Relu", [result], ["y"]))
    elif case["epilogue"] == 3:
        nodes += [helper.make_node("Sigmoid", [result], ["s"]), helper.make_node("Mul", [result, "s"], ["y"])]
    else:
        nodes.append(helper.make_node("Identity", [result], ["y"]))
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TYPES[case["otype"]], out_shape)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def make_case(kiln, line, folder, work):
    case = dict(zip(KEYS, line.split()))
    for key in ("batch", "m", "n", "k", "ta", "tb", "epilogue"):
        case[key] = int(case[key])
    model, program, out = (os.path.join(work, x) for x in ("m.onnx", "m.kiln", "out"))
    make_model(case, model)
    shutil.rmtree(out, ignore_errors=True)
    for command in ([kiln, "compile", model, "-o", program], [kiln, "finalize", program, "--target", "sm_90", "-o", out, "--no-cache", "--configuration", case["config"]]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr or done.stdout)
    with open(os.path.join(out, "kernels.json")) as f:
        kernels = json.load(f)["kernels"]
    if len(kernels) != 1:
        raise RuntimeError(f"{len(kernels)} kernels where one was expected")
    case["object"] = case["name"] + ".ptx"
    shutil.copy(os.path.join(out, kernels[0]["object"]), os.path.join(folder, case["object"]))
    case["scratch"], case["launches"] = kernels[0]["scratch"], kernels[0]["launches"]
    return case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("folder")
    parser.add_argument("--list")
    options = parser.parse_args()
    lines = default_cases()
    if options.list:
        with open(options.list) as f:
            lines = [line.strip() for line in f if line.strip()]
    os.makedirs(options.folder, exist_ok=True)
    cases, failed = [], 0
    with tempfile.TemporaryDirectory() as work:
        for line in lines:
            try:
                cases.append(make_case(options.kiln, line, options.folder, work))
                wgmma = any("wgmma" in l["symbol"] for l in cases[-1]["launches"])
                print(line, "" if wgmma else "(other instructions)", flush=True)
            except RuntimeError as e:
                failed += 1
                print(line, "FAILED:", str(e).strip(), flush=True)
    with open(os.path.join(options.folder, "cases.json"), "w") as f:
        json.dump(cases, f, indent=1)
    print(f"{len(cases)} cases in {options.folder}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
