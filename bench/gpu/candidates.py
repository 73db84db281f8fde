#!/usr/bin/env python3
"""Measures the candidates of kernels (docs/candidates.md) on an NVIDIA GPU: is the best among the first eight?

    candidates.py models FOLDER                      anywhere: ONNX models of one interesting kernel each (Python with onnx)
    candidates.py finalize KILN FOLDER [--effort E]  anywhere: lists and finalizes every candidate, with ptxas where it is installed; on all processors
    candidates.py run FOLDER [--seconds S]           on the GPU (Python with torch): times all, checks each against the default, prints a table

`run` leaves measured.json: for each kernel the configurations in their order and their microseconds (null: failed or
wrong)."""
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import time

HALF, FLOAT = 10, 1  # onnx.TensorProto


def products():
    """name: (nodes, inputs, output) with a function each that adds to a graph; sizes as in real networks."""
    cases = {}
    for m, n, k in [(128, 768, 768), (128, 3072, 768), (1024, 1024, 1024), (4096, 4096, 1024), (16, 4096, 4096), (1, 4096, 4096), (64, 64, 8192), (197, 768, 3072)]:
        cases[f"dot_{m}x{n}x{k}"] = ("dot", HALF, [[m, k], [k, n]], [m, n], [("MatMul", ["x0", "x1"], {})])
    cases["dot_f32_512x512x512"] = ("dot", FLOAT, [[512, 512], [512, 512]], [512, 512], [("MatMul", ["x0", "x1"], {})])
    for size, c, f, w, s in [(56, 64, 64, 3, 1), (14, 256, 256, 3, 1), (7, 512, 512, 3, 1), (28, 512, 128, 1, 1), (14, 1024, 256, 1, 1)]:
        cases[f"convolution_{size}_{c}_{f}_{w}"] = ("convolution", HALF, [[1, c, size, size], [f, c, w, w]], [1, f, size // s, size // s],
                                                    [("Conv", ["x0", "x1"], dict(pads=[w // 2] * 4, strides=[s, s]))])
    cases["depthwise_56_144"] = ("convolution", HALF, [[8, 144, 56, 56], [144, 1, 3, 3]], [8, 144, 56, 56], [("Conv", ["x0", "x1"], dict(pads=[1] * 4, group=144))])
    cases["pooling_112_64"] = ("pooling", HALF, [[8, 64, 112, 112]], [8, 64, 56, 56], [("MaxPool", ["x0"], dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))])
    for rows, columns in [(8192, 4096), (8192, 1000), (128, 768), (64, 100000)]:
        cases[f"softmax_{rows}x{columns}"] = ("softmax", HALF, [[rows, columns]], [rows, columns], [("Softmax", ["x0"], dict(axis=-1))])
    cases["reduce_8192x4096"] = ("reduce", FLOAT, [[8192, 4096]], [8192], [("ReduceMean", ["x0"], dict(axes=[1], keepdims=0))])
    cases["reduce_columns_8192x1024"] = ("reduce", FLOAT, [[8192, 1024]], [1024], [("ReduceMean", ["x0"], dict(axes=[0], keepdims=0))])
    cases["map_add"] = ("", HALF, [[8192, 4096]] * 2, [8192, 4096], [("Add", ["x0", "x1"], {})])
    cases["map_small"] = ("", HALF, [[128, 768]] * 2, [128, 768], [("Add", ["x0", "x1"], {})])
    cases["transpose"] = ("", HALF, [[8192, 4096]], [4096, 8192], [("Transpose", ["x0"], dict(perm=[1, 0]))])
    return cases


def models(folder):
    import onnx
    from onnx import helper

    os.makedirs(folder, exist_ok=True)
    for name, (_, kind, inputs, output, nodes) in products().items():
        made = [helper.make_node(op, given, ["y"], **attributes) for op, given, attributes in nodes]
        graph = helper.make_graph(made, name, [helper.make_tensor_value_info(f"x{i}", kind, dims) for i, dims in enumerate(inputs)], [helper.make_tensor_value_info("y", kind, output)])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{folder}/{name}.onnx")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from attention import CASES, build

    for name in ("long_causal", "long", "bert", "vit"):
        build(f"{folder}/attention_{name}.onnx", CASES[name])


def kind_of(name):
    return "attention" if name.startswith("attention") else products()[name][0]


def settings(configuration):
    return ",".join(f"{k}={v}" for k, v in configuration.items())


def finalize_one(kiln, folder, name, number, configuration):
    here = f"{folder}/{name}/{number}"
    command = [kiln, "finalize", f"{folder}/{name}/m.kiln", "--target", "sm_90", "-o", here, "--no-cache"] + (["--configuration", settings(configuration)] if configuration else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        return f"{name} {settings(configuration)}: {done.stderr.strip()[-200:]}"
    ptxas = shutil.which("ptxas") or (os.path.exists("/usr/local/cuda/bin/ptxas") and "/usr/local/cuda/bin/ptxas")
    for ptx in glob.glob(f"{here}/*.ptx") if ptxas else []:
        subprocess.run([ptxas, "-arch=sm_90a", ptx, "-o", ptx[:-3] + "cubin"], capture_output=True, timeout=120)


def finalize(kiln, folder, effort):
    wanted = []
    for path in sorted(glob.glob(f"{folder}/*.onnx")):
        name = os.path.basename(path)[:-5]
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        subprocess.run([kiln, "compile", path, "-o", f"{folder}/{name}/m.kiln"], check=True, stdout=subprocess.DEVNULL)
        kernels = json.loads(subprocess.run([kiln, "inspect", f"{folder}/{name}/m.kiln", "--json"], check=True, capture_output=True, text=True).stdout)["kernels"]
        mine = [k for k in kernels if kind_of(name) in k["symbol"]]
        if not mine:
            raise SystemExit(f"{name}: no kernel of {kind_of(name)} among {[k['symbol'] for k in kernels]}")
        listed = subprocess.run([kiln, "inspect", f"{folder}/{name}/m.kiln", "--kernel", mine[0]["hash"], "--candidates", f"sm_90:{effort}", "--json"], check=True, capture_output=True, text=True)
        candidates = json.loads(listed.stdout)["candidates"]
        with open(f"{folder}/{name}/candidates.json", "w") as f:
            json.dump({"symbol": mine[0]["symbol"], "candidates": candidates}, f)
        wanted += [(kiln, folder, name, i, c) for i, c in enumerate(candidates)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [f for f in pool.map(lambda job: finalize_one(*job), wanted) if f]
    print(f"{len(wanted)} candidates finalized, {len(failures)} failed", *failures, sep="\n", flush=True)


def run(folder, seconds):
    import torch

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import driver

    end, measured = time.time() + seconds, {}
    for path in sorted(glob.glob(f"{folder}/*/candidates.json")):
        here = os.path.dirname(path)
        with open(path) as f:
            listed = json.load(f)
        times, want, memory = [], None, {}
        for number, configuration in enumerate(listed["candidates"]):
            times.append(None)
            if time.time() > end or not os.path.exists(f"{here}/{number}/kernels.json"):
                continue
            with open(f"{here}/{number}/kernels.json") as f:
                kernel = next(k for k in json.load(f)["kernels"] if k["symbol"] == listed["symbol"])
            try:
                ptx = f"{here}/{number}/{kernel['object']}"
                module = driver.Module(ptx[:-3] + "cubin" if os.path.exists(ptx[:-3] + "cubin") else ptx)
                scratch = [torch.full((max(16, s["bytes"]),), 0 if s["zeroed"] else 255, dtype=torch.uint8, device="cuda") for s in kernel["scratch"]]
                launches = []
                for l in kernel["launches"]:
                    pointers = []
                    for a in l["arguments"]:
                        key = (a["kind"], a["index"])
                        if a["kind"] != "scratch" and key not in memory:
                            wide = "f32" in (kernel["inputs"] if a["kind"] == "input" else kernel["outputs"])[a["index"]]
                            torch.manual_seed(a["index"])
                            memory[key] = (torch.randn(a["size"] // (4 if wide else 2), device="cuda") * 0.1).to(torch.float32 if wide else torch.float16)
                        pointers.append((scratch[a["index"]] if a["kind"] == "scratch" else memory[key]).data_ptr())
                    launches.append((l["prepare"], driver.Launch(module.function(l["symbol"], l["lds_bytes"]), l, pointers)))
                results = [memory[key] for key in memory if key[0] == "output"]
                for r in results:
                    r.fill_(float("nan"))
                for _, launch in launches:
                    launch()
                torch.cuda.synchronize()
                got = torch.cat([r.double().flatten() for r in results])
                want = got if want is None else want
                error = ((got - want).norm() / want.norm()).item()
                if not error < 2e-3:
                    print(f"{os.path.basename(here)} {settings(configuration)}: WRONG, {error:.1e} from the default", flush=True)
                    continue
                once = [launch for prepare, launch in launches if not prepare]
                times[-1] = driver.time_ms([lambda: [launch() for launch in once]], repeats=10, replays=5) * 1e3
                module.unload()
            except RuntimeError as e:
                print(f"{os.path.basename(here)} {settings(configuration)}: FAILED {str(e).splitlines()[0]}", flush=True)
        known = [t for t in times if t is not None]
        if not known or times[0] is None:
            continue
        best, few = min(known), min(t for t in times[:8] if t is not None)
        measured[os.path.basename(here)] = {"candidates": listed["candidates"], "us": times}
        print(f"{os.path.basename(here):28} default {times[0]:8.2f} us, best of 8 {few / times[0]:.3f}, of {len(known)} {best / times[0]:.3f} in place {times.index(best)}: {settings(listed['candidates'][times.index(best)])}", flush=True)
    with open(f"{folder}/measured.json", "w") as f:
        json.dump(measured, f)
    behind = [n for n, m in measured.items() if min(t for t in m["us"][:8] if t) > 1.03 * min(t for t in m["us"] if t)]
    print(f"{len(measured)} kernels; the best of 8 is more than 3 % behind the best of all in {len(behind)}: {' '.join(behind)}")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "models":
        models(sys.argv[2])
    elif len(sys.argv) in (4, 6) and sys.argv[1] == "finalize":
        finalize(os.path.abspath(sys.argv[2]), sys.argv[3], sys.argv[5] if len(sys.argv) == 6 else "full")
    elif len(sys.argv) in (3, 5) and sys.argv[1] == "run":
        run(sys.argv[2], float(sys.argv[4]) if len(sys.argv) == 5 else 1e9)
    else:
        sys.exit(__doc__)
