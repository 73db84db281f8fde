"""The library's kernels (spirv/library) on an NVIDIA GPU: from their SPIR-V objects, and from the same sources compiled
by nvcc through bench/gpu/nvcc.

    spirv_vs_nvcc.py models FOLDER              anywhere: a model of one operator for each case (Python with onnx)
    spirv_vs_nvcc.py make KILN FOLDER           anywhere: compiled and finalized for sm_90
    spirv_vs_nvcc.py run FOLDER [--only PREFIX] on the GPU (Python with torch, nvcc): results compared, times of both; exit code 1 where results differ

Both kinds go through the driver as PTX, with the same grids and blocks. Ours has its sizes as constants, as every
finalized kernel has."""
import ctypes as C
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(HERE, "..", "..", "spirv", "library")
F32, I64 = "f32", "i64"

# name: (domain, operator, attributes, inputs, outputs, source, [(kernel, parameters, values of those that are not
# pointers)]) Parameters: p pointer, q int64_t, i int, f float; inputs: type, dims, and what fills them (normal, unit,
# or a bound for integers).
R, N = 4096, 8192
CASES = {
    "sort_short": ("kiln", "Sort", {}, [(F32, [R, 2048], "normal")], [(F32, [R, 2048]), (I64, [R, 2048])], "sort", [("sort_short", "pppqi", [2048, 0])]),
    "sort_long": ("kiln", "Sort", {}, [(F32, [256, 20000], "normal")], [(F32, [256, 20000]), (I64, [256, 20000])], "sort", [("sort_long", "pppqi", [20000, 0])]),
    "top_k_100_of_50000": ("kiln", "TopK", {"k": 100}, [(F32, [512, 50000], "normal")], [(F32, [512, 100]), (I64, [512, 100])], "top_k", [("top_k", "pppqii", [50000, 100, 1])]),
    "top_k_8_of_512": ("kiln", "TopK", {"k": 8}, [(F32, [16384, 512], "normal")], [(F32, [16384, 8]), (I64, [16384, 8])], "top_k", [("top_k", "pppqii", [512, 8, 1])]),
    "cumulative_sum": ("kiln", "CumulativeSum", {"axis": -1}, [(F32, [N, 4096], "unit")], [(F32, [N, 4096])], "cumulative_sum", [("cumulative_sum", "ppqqii", [4096, 1, 0, 0])]),
    "scatter_add": ("kiln", "ScatterElements", {"axis": 0, "reduction": "add"}, [(F32, [100000, 64], "unit"), (I64, [200000, 64], 100000), (F32, [200000, 64], "unit")], [(F32, [100000, 64])], "scatter",
                    [("copy_data", "ppq", [6400000]), ("scatter", "pppqqqqi", [12800000, 200000, 100000, 64, 1])]),
    "non_zero": ("kiln", "NonZero", {}, [(I64, [16 << 20], 3)], [(I64, [16 << 20]), (I64, [1])], "non_zero",
                 [("count_tiles", "ppq", [16 << 20]), ("sum_tiles", "ppq", [16 << 10]), ("place_tiles", "ppppq", [16 << 20])]),
    "unique": ("kiln", "Unique", {}, [(I64, [30000], 2000)], [(I64, [30000])] * 4 + [(I64, [1])], "unique", [("unique", "ppppppppq", [30000])]),
    "non_max_suppression": ("kiln", "NonMaxSuppression", {"max_output_boxes_per_class": 100, "iou_threshold": 0.5}, [(F32, [4, 8000, 4], "unit"), (F32, [4, 20, 8000], "unit")],
                            [(I64, [8000, 3]), (I64, [1])], "non_max_suppression", [("choose_boxes", "pppppiiiffi", [8000, 20, 100, 0.5, -3.0e38, 0]), ("join_lists", "ppppiii", [80, 20, 100])]),
    "roi_align": ("", "RoiAlign", {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 40.0}, [(F32, [4, 256, 56, 56], "normal"), (F32, [512, 4], "unit"), (I64, [512], 4)],
                  [(F32, [512, 256, 7, 7])], "roi_align", [("roi_align", "ppppqiqiiiiiiffi", [512 * 256 * 49, 4, 512, 256, 56, 56, 7, 7, 2, 40.0, 0.5, 0])]),
    "grid_sample_linear": ("kiln", "GridSample", {}, [(F32, [16, 64, 128, 128], "normal"), (F32, [16, 128, 128, 2], "unit")], [(F32, [16, 64, 128, 128])], "grid_sample",
                           [("sample_images", "pppqiiiqiii", [16 * 64 * 16384, 64, 128, 128, 16384, 1, 0, 0])]),
    "grid_sample_volume": ("kiln", "GridSample", {}, [(F32, [4, 16, 32, 64, 64], "normal"), (F32, [4, 32, 64, 64, 3], "unit")], [(F32, [4, 16, 32, 64, 64])], "grid_sample",
                           [("sample_volumes", "pppqiiiiqiii", [4 * 16 * 131072, 16, 32, 64, 64, 131072, 1, 0, 0])]),
    "resize_linear": ("kiln", "Resize", {"height": 224, "width": 224, "mode": "linear"}, [(F32, [16, 64, 112, 112], "normal")], [(F32, [16, 64, 224, 224])], "resize",
                      [("resize", "ppqiiiiffiiififffff", [16 * 64 * 50176, 112, 112, 224, 224, 2.0, 2.0, 1, 0, 0, -0.75, 0, 0.0, 1.0, 0.0, 1.0, 0.0])]),
    "resize_cubic": ("kiln", "Resize", {"height": 224, "width": 224, "mode": "cubic"}, [(F32, [16, 64, 112, 112], "normal")], [(F32, [16, 64, 224, 224])], "resize",
                     [("resize", "ppqiiiiffiiififffff", [16 * 64 * 50176, 112, 112, 224, 224, 2.0, 2.0, 2, 0, 0, -0.75, 0, 0.0, 1.0, 0.0, 1.0, 0.0])]),
    "random_uniform": ("", "RandomUniform", {"shape": [64 << 20], "seed": 3.0}, [], [(F32, [64 << 20])], "random", [("random_uniform", "pqqff", [64 << 20, 3, 0.0, 1.0])]),
    "random_normal": ("", "RandomNormal", {"shape": [64 << 20], "seed": 3.0}, [], [(F32, [64 << 20])], "random", [("random_normal", "pqqff", [64 << 20, 3, 0.0, 1.0])]),
}


def models(folder):
    import onnx
    from onnx import TensorProto, helper

    types = {F32: TensorProto.FLOAT, I64: TensorProto.INT64}
    for name, (domain, operator, attributes, inputs, outputs, _, _) in CASES.items():
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        tensors = lambda prefix, rows: [helper.make_tensor_value_info(f"{prefix}{i}", types[r[0]], r[1]) for i, r in enumerate(rows)]
        node = helper.make_node(operator, [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(outputs))], domain=domain, **attributes)
        opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        onnx.save(helper.make_model(helper.make_graph([node], name, tensors("x", inputs), tensors("y", outputs)), opset_imports=opsets, ir_version=8), f"{folder}/{name}/model.onnx")


def make(kiln, folder):
    for name in CASES:
        here = f"{folder}/{name}"
        for arguments in ([kiln, "compile", f"{here}/model.onnx", "-o", f"{here}/model.kiln"], [kiln, "finalize", f"{here}/model.kiln", "--target", "sm_90", "-o", here, "--no-cache", "--json"]):
            done = subprocess.run(arguments, capture_output=True, text=True)
            if done.returncode:
                print(f"{name:22} {done.stderr.strip()}")
                break
        else:
            report = json.loads(done.stdout)
            print(f"{name:22} finalized in {report['finalize_ms']:.0f} ms")


def nvcc_module(driver, source, folder):
    ptx = f"{folder}/{source}.nvcc.ptx"
    if not os.path.exists(ptx):
        subprocess.run(["nvcc", "-ptx", "-arch=sm_90", "-O3", "-std=c++17", "-x", "cu", "-I", f"{HERE}/nvcc", f"{LIBRARY}/{source}.hip", "-o", ptx], check=True)
    with open(ptx) as f:
        symbols = re.findall(r"\.entry\s+(\w+)\s*\(", f.read())
    return driver.Module(ptx), symbols


def run(folder, only):
    import torch

    sys.path.insert(0, HERE)
    import driver

    types = {F32: torch.float32, I64: torch.int64}
    wrong, rows = 0, []
    for name, (_, _, _, inputs, outputs, source, launches) in CASES.items():
        if not name.startswith(only):
            continue
        try:
            with open(f"{folder}/{name}/kernels.json") as f:
                kernel = json.load(f)["kernels"][0]
            torch.manual_seed(1)
            fill = {"normal": lambda d: torch.randn(d, device="cuda"), "unit": lambda d: torch.rand(d, device="cuda")}
            x = [fill[how](dims) if isinstance(how, str) else torch.randint(0, how, dims, device="cuda") for _, dims, how in inputs]
            results = [[torch.zeros(dims, dtype=types[t], device="cuda") for t, dims in outputs] for _ in range(2)]
            scratch = [torch.zeros(max(16, s["bytes"]), dtype=torch.uint8, device="cuda") for s in kernel["scratch"]]
            ours = driver.Module(f"{folder}/{name}/{kernel['object']}")
            theirs, symbols = nvcc_module(driver, source, folder)
            kind = "l" if inputs and inputs[0][0] == I64 else "f"
            calls = [[], []]
            for launch, (function, parameters, values) in zip(kernel["launches"], launches, strict=True):
                for which in range(2):
                    places = {"input": x, "output": results[which], "scratch": scratch}
                    pointers = [places[a["kind"]][a["index"]].data_ptr() for a in launch["arguments"]]
                    if which == 0:
                        calls[0].append(driver.Launch(ours.function(launch["symbol"], launch["lds_bytes"]), launch, pointers))
                        continue
                    mangled = f"{len(function)}{function}"
                    found = [s for s in symbols if s.startswith(f"_Z{mangled}I{kind}") or (s.startswith(f"_Z{mangled}") and not s.startswith(f"_Z{mangled}I"))]
                    made = driver.Launch(theirs.function(found[0]), {**launch, "lds_bytes": 0, "tensor_maps": []}, [])
                    left, numbers, slots = iter(pointers), iter(values), []
                    for p in parameters:
                        holder = C.c_uint64(next(left)) if p == "p" else {"q": C.c_int64, "i": C.c_int, "f": C.c_float}[p](next(numbers))
                        made.keep.append(holder)
                        slots.append(C.addressof(holder))
                    made.arguments = (C.c_void_p * len(slots))(*slots)
                    calls[1].append(made)
            times = []
            for made in calls:
                [call() for call in made]
                torch.cuda.synchronize()
            # Sums in another order differ in their last bits; all else is the same source and must be the same bits,
            # but for nvcc's own math functions.
            close = all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) if a.dtype == torch.float32 else torch.equal(a, b) for a, b in zip(*results))
            wrong += not close
            times = [driver.time_ms([lambda made=made: [call() for call in made]], repeats=5) for made in calls]
            rows.append(times[1] / times[0])
            print(f"{name:22} {'same' if close else 'WRONG'}  SPIR-V {times[0] * 1e3:9.1f} us  nvcc {times[1] * 1e3:9.1f} us  {times[1] / times[0]:.2f} x", flush=True)
            ours.unload(), theirs.unload()
        except (RuntimeError, OSError, subprocess.CalledProcessError, IndexError, ValueError) as e:
            wrong += 1
            print(f"{name:22} FAILED {str(e).splitlines()[0] if str(e) else e!r}", flush=True)
    if rows:
        mean = 1.0
        for r in rows:
            mean *= r ** (1 / len(rows))
        print(f"{wrong} wrong; {sum(r >= 0.9 for r in rows)} of {len(rows)} at 0.9 x or more, geometric mean {mean:.2f} x")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "models":
        models(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "make":
        make(os.path.abspath(sys.argv[2]), sys.argv[3])
    elif len(sys.argv) >= 3 and sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[4] if len(sys.argv) > 4 and sys.argv[3] == "--only" else "")
    else:
        sys.exit(__doc__)
