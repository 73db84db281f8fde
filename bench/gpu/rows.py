"""Checks and times kernels that live on memory bandwidth (elementwise work, transposes, row reductions) on an NVIDIA
GPU, beside PyTorch and a copy.

    rows.py make KILN FOLDER     anywhere: models of one kernel each, compiled and finalized (Python with onnx)
    rows.py run FOLDER [--only PREFIX]   on the GPU (Python with torch): error, time, GB/s of what must be read and written; exit code 1 where one is wrong

One folder for each case: kernels.json and PTX as `kiln finalize` writes them; the kernel's inputs are the model's, in
order."""
import glob
import json
import os
import subprocess
import sys

F16, F32 = "f16", "f32"


def node(op, inputs, output="y", **attributes):
    return (op, inputs, output, attributes)


# name: (input types and dims, output type and dims, nodes, PyTorch's way)
CASES = {
    "softmax_8192x4096": ([(F16, [8192, 4096])], (F16, [8192, 4096]), [node("Softmax", ["x0"], axis=-1)], lambda t, x: t.softmax(x, -1)),
    "softmax_8192x1000": ([(F16, [8192, 1000])], (F16, [8192, 1000]), [node("Softmax", ["x0"], axis=-1)], lambda t, x: t.softmax(x, -1)),
    "softmax_f32_4096x1024": ([(F32, [4096, 1024])], (F32, [4096, 1024]), [node("Softmax", ["x0"], axis=-1)], lambda t, x: t.softmax(x, -1)),
    "softmax_12x512x512": ([(F16, [12, 512, 512])], (F16, [12, 512, 512]), [node("Softmax", ["x0"], axis=-1)], lambda t, x: t.softmax(x, -1)),
    "softmax_64x100000": ([(F16, [64, 100000])], (F16, [64, 100000]), [node("Softmax", ["x0"], axis=-1)], lambda t, x: t.softmax(x, -1)),
    "softmax_outer": ([(F16, [64, 512, 512])], (F16, [64, 512, 512]), [node("Softmax", ["x0"], axis=1)], lambda t, x: t.softmax(x, 1)),
    "layer_norm_8192x4096": ([(F16, [8192, 4096]), (F16, [4096]), (F16, [4096])], (F16, [8192, 4096]), [node("LayerNormalization", ["x0", "x1", "x2"], axis=-1)],
                             lambda t, x, w, b: t.nn.functional.layer_norm(x, (4096,), w, b)),
    "layer_norm_8192x768": ([(F16, [8192, 768]), (F16, [768]), (F16, [768])], (F16, [8192, 768]), [node("LayerNormalization", ["x0", "x1", "x2"], axis=-1)],
                            lambda t, x, w, b: t.nn.functional.layer_norm(x, (768,), w, b)),
    "layer_norm_128x768": ([(F16, [128, 768]), (F16, [768]), (F16, [768])], (F16, [128, 768]), [node("LayerNormalization", ["x0", "x1", "x2"], axis=-1)],
                           lambda t, x, w, b: t.nn.functional.layer_norm(x, (768,), w, b)),
    "relu": ([(F16, [8192, 4096])], (F16, [8192, 4096]), [node("Relu", ["x0"])], lambda t, x: t.relu(x)),
    "add": ([(F16, [8192, 4096])] * 2, (F16, [8192, 4096]), [node("Add", ["x0", "x1"])], lambda t, x, y: x + y),
    "add_bias": ([(F16, [8192, 4096]), (F16, [4096])], (F16, [8192, 4096]), [node("Add", ["x0", "x1"])], lambda t, x, y: x + y),
    "add_f32": ([(F32, [8192, 4096])] * 2, (F32, [8192, 4096]), [node("Add", ["x0", "x1"])], lambda t, x, y: x + y),
    "add_odd": ([(F16, [8191, 4095])] * 2, (F16, [8191, 4095]), [node("Add", ["x0", "x1"])], lambda t, x, y: x + y),
    "silu": ([(F16, [8192, 4096])], (F16, [8192, 4096]), [node("Sigmoid", ["x0"], "s"), node("Mul", ["x0", "s"])], lambda t, x: t.nn.functional.silu(x)),
    "tanh": ([(F16, [8192, 4096])], (F16, [8192, 4096]), [node("Tanh", ["x0"])], lambda t, x: t.tanh(x)),
    "erf": ([(F16, [8192, 4096])], (F16, [8192, 4096]), [node("Erf", ["x0"])], lambda t, x: t.erf(x)),
    "erf_f32": ([(F32, [8192, 4096])], (F32, [8192, 4096]), [node("Erf", ["x0"])], lambda t, x: t.erf(x)),
    "transpose_f16": ([(F16, [8192, 4096])], (F16, [4096, 8192]), [node("Transpose", ["x0"], perm=[1, 0])], lambda t, x: x.t().contiguous()),
    "transpose_f32": ([(F32, [8192, 4096])], (F32, [4096, 8192]), [node("Transpose", ["x0"], perm=[1, 0])], lambda t, x: x.t().contiguous()),
    "nchw_nhwc": ([(F16, [32, 64, 112, 112])], (F16, [32, 112, 112, 64]), [node("Transpose", ["x0"], perm=[0, 2, 3, 1])], lambda t, x: x.permute(0, 2, 3, 1).contiguous()),
    "heads": ([(F16, [16, 512, 16, 64])], (F16, [16, 16, 512, 64]), [node("Transpose", ["x0"], perm=[0, 2, 1, 3])], lambda t, x: x.permute(0, 2, 1, 3).contiguous()),
    "concat": ([(F16, [8192, 2048]), (F16, [8192, 2048])], (F16, [8192, 4096]), [node("Concat", ["x0", "x1"], axis=1)], lambda t, x, y: t.cat([x, y], 1)),
    "sum_inner": ([(F32, [8192, 4096])], (F32, [8192]), [node("ReduceMean", ["x0"], axes=[1], keepdims=0)], lambda t, x: x.mean(1)),
    "sum_outer": ([(F32, [8192, 4096])], (F32, [4096]), [node("ReduceMean", ["x0"], axes=[0], keepdims=0)], lambda t, x: x.mean(0)),
    "sum_all": ([(F32, [8192, 4096])], (F32, []), [node("ReduceMean", ["x0"], axes=[0, 1], keepdims=0)], lambda t, x: x.mean()),
    "max_inner": ([(F16, [8192, 4096])], (F16, [8192]), [node("ReduceMax", ["x0"], axes=[1], keepdims=0)], lambda t, x: x.amax(1)),
}


def make(kiln, folder):
    import onnx
    from onnx import TensorProto, helper

    types = {F16: TensorProto.FLOAT16, F32: TensorProto.FLOAT}
    for name, (inputs, output, nodes, _) in CASES.items():
        here = os.path.join(folder, name)
        os.makedirs(here, exist_ok=True)
        graph_inputs = [helper.make_tensor_value_info(f"x{i}", types[t], dims) for i, (t, dims) in enumerate(inputs)]
        graph_nodes = [helper.make_node(op, names, [out], **attributes) for op, names, out, attributes in nodes]
        graph = helper.make_graph(graph_nodes, name, graph_inputs, [helper.make_tensor_value_info("y", types[output[0]], output[1])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        onnx.save(model, f"{here}/model.onnx")
        subprocess.run([kiln, "compile", f"{here}/model.onnx", "-o", f"{here}/model.kiln"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([kiln, "finalize", f"{here}/model.kiln", "--target", "sm_90", "-o", here], check=True, stdout=subprocess.DEVNULL)
        with open(f"{here}/kernels.json") as f:
            kernels = json.load(f)["kernels"]
        if len(kernels) != 1 or len(kernels[0]["inputs"]) != len(inputs):
            raise SystemExit(f"{name}: {len(kernels)} kernels of {[len(k['inputs']) for k in kernels]} inputs")
        print(name, [(l["symbol"], l["grid"][0], l["block"][0]) for l in kernels[0]["launches"]])


def run(folder, only):
    import torch

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import driver

    types = {F16: torch.float16, F32: torch.float32}
    source, copy = torch.empty(8192 * 4096, dtype=torch.float16, device="cuda"), torch.empty(8192 * 4096, dtype=torch.float16, device="cuda")
    copy_ms = driver.time_ms([lambda: copy.copy_(source)])
    copy_rate = 2 * source.nbytes / copy_ms / 1e6
    print(f"copy of 64 MiB: {copy_rate:.0f} GB/s")
    wrong = 0
    for name, (inputs, output, _, torch_way) in CASES.items():
        if not name.startswith(only) or not os.path.exists(f"{folder}/{name}/kernels.json"):
            continue
        torch.manual_seed(1)
        with open(f"{folder}/{name}/kernels.json") as f:
            kernel = json.load(f)["kernels"][0]
        try:
            module = driver.Module(f"{folder}/{name}/{kernel['object']}")
            # Sets that take turns, so that no case lives in the cache alone: 3 of the large ones are more than it
            # holds.
            sets = [[torch.randn(dims, device="cuda").to(types[t]) for t, dims in inputs] for _ in range(3)]
            results = [torch.full(output[1], float("nan"), dtype=types[output[0]], device="cuda") for _ in sets]
            scratch = [torch.full((max(16, s["bytes"] if isinstance(s, dict) else s),), 255, dtype=torch.uint8, device="cuda") for s in kernel["scratch"]]
            calls = []
            for s, r in zip(sets, results):
                places = {"input": s, "output": [r], "scratch": scratch}
                launches = [driver.Launch(module.function(l["symbol"], l["lds_bytes"]), l, [places[a["kind"]][a["index"]].data_ptr() for a in l["arguments"]]) for l in kernel["launches"]]
                calls.append(lambda launches=launches: [launch() for launch in launches])
            calls[0]()
            torch.cuda.synchronize()
            want = torch_way(torch, *[x.double() for x in sets[0]])
            error = ((results[0].double() - want).norm() / want.norm()).item()
            ok = error <= (2e-3 if output[0] == F16 else 2e-6)  # softmax of long rows ends among f16 numbers without all their digits
            wrong += not ok
            ms = driver.time_ms(calls)
            peer = driver.time_ms([lambda s=s: torch_way(torch, *s) for s in sets])
            moved = sum(x.nbytes for x in sets[0]) + results[0].nbytes
            rate = moved / ms / 1e6
            print(f"{name:22} error {error:.1e}{'' if ok else ' WRONG'} {ms * 1e3:8.1f} us {rate:6.0f} GB/s, {rate / copy_rate:.2f} x copy, PyTorch {peer * 1e3:8.1f} us, {peer / ms:.2f} x", flush=True)
            module.unload()
        except RuntimeError as e:
            wrong += 1
            print(f"{name:22} FAILED {str(e).splitlines()[0]}", flush=True)
    print(f"{wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "make":
        make(os.path.abspath(sys.argv[2]), sys.argv[3])
    elif len(sys.argv) >= 3 and sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[4] if len(sys.argv) > 4 and sys.argv[3] == "--only" else "")
    else:
        sys.exit(__doc__)
