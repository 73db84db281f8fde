"""Runs matrix product kernels that wgmma_cases.py made, on a Hopper GPU: python3 bench/gpu/wgmma_check.py FOLDER
[--only PREFIX] [--no-time]
Every kernel is checked on random data, outputs filled with NaN before; those that are not `bounded` are then timed
beside PyTorch's matmul in the same process (CUDA graphs, operands that take turns). One line for each; the last line
counts. Exit code 1 where one is wrong."""
import argparse
import json
import os
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver  # noqa: E402

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i8": torch.int8, "i32": torch.int32}
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def random(shape, kind):
    if kind in ("i8",):
        return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8)
    return (torch.randn(shape, device="cuda") * 0.5).to(TYPES[kind])


def left_and_right(case, a, b):
    return (a.transpose(-1, -2) if case["ta"] else a), (b.transpose(-1, -2) if case["tb"] else b)


def product(case, a, b):
    a, b = left_and_right(case, a, b)
    if case["type"] == "i8":
        return (a.double() @ b.double())
    return a.float() @ b.float()


def expected(case, inputs):
    """Outputs by the definition, in f32 (int8: f64, exact)."""
    y = product(case, inputs[0], inputs[1])
    if case["epilogue"] == 0:
        return [y]
    kind = TYPES[case["otype"]]
    y = y.to(kind).float()  # the anchor's result has the dot's type
    if case["epilogue"] == 3:
        return [y * torch.sigmoid(y)]
    biased = y + inputs[2].float()
    if case["epilogue"] == 1:
        return [torch.relu(biased)]
    if case["epilogue"] == 2:
        return [torch.relu(biased + inputs[3].float())]
    return [y, torch.relu(biased)]


def make_inputs(case):
    batch = [case["batch"]] if case["batch"] > 1 else []
    m, n, k = case["m"], case["n"], case["k"]
    shapes = [batch + ([k, m] if case["ta"] else [m, k]), batch + ([n, k] if case["tb"] else [k, n])]
    inputs = [random(s, case["type"]) for s in shapes]
    if case["epilogue"] in (1, 2, 4):
        inputs.append(random([n], case["otype"]))
    if case["epilogue"] == 2:
        inputs.append(random(batch + [m, n], case["otype"]))
    return inputs


class Kernel:
    def __init__(self, folder, case):
        path = os.path.join(folder, case["object"])
        self.module = driver.Module(path)
        self.case = case
        self.functions = [self.module.function(l["symbol"], l["lds_bytes"]) for l in case["launches"]]
        self.scratch = []

    def bind(self, inputs, outputs):
        scratch = [torch.zeros(max(16, s["bytes"]), dtype=torch.uint8, device="cuda") for s in self.case["scratch"]]
        self.scratch.append(scratch)  # launches know addresses only
        lists = {"input": inputs, "output": outputs, "scratch": scratch}
        calls = [driver.Launch(f, l, [lists[a["kind"]][a["index"]].data_ptr() for a in l["arguments"]]) for f, l in zip(self.functions, self.case["launches"])]
        for call, l in zip(calls, self.case["launches"]):
            if l["prepare"]:
                call()
        return [c for c, l in zip(calls, self.case["launches"]) if not l["prepare"]]


def make_outputs(case):
    batch = [case["batch"]] if case["batch"] > 1 else []
    kind = TYPES[case["otype"]]
    count = 2 if case["epilogue"] == 4 else 1
    fill = float("nan") if kind.is_floating_point else -12345
    return [torch.full(batch + [case["m"], case["n"]], fill, dtype=kind, device="cuda") for _ in range(count)]


def wrong_elements(case, outputs, references):
    worst, bad = 0.0, 0
    for y, r in zip(outputs, references):
        error = (y.double() - r.double()).abs()
        if case["type"] == "i8":
            limit = torch.zeros_like(error)
        else:
            eps = {"f16": 1e-3, "bf16": 8e-3, "f32": 2e-5}[case["otype"]]
            steps = 2 if case["epilogue"] else 1
            limit = eps * steps * (r.double().abs() + 1) + 2e-5 * case["k"] ** 0.5 + (steps - 1) * eps * 0.3 * case["k"] ** 0.5
        off = ~(error <= limit)  # NaN is wrong
        bad += int(off.sum())
        worst = max(worst, float(error.nan_to_num(nan=float("inf")).max()))
        if bad:
            where = off.nonzero()[:6].tolist()
            print("   first wrong:", [(w, float(y[tuple(w)]), float(r[tuple(w)])) for w in where])
    return bad, worst


TORCH_TIMES = {}


def torch_ms(case):
    key = tuple(case[x] for x in ("batch", "m", "n", "k", "type", "ta", "tb"))
    if key not in TORCH_TIMES:
        sets = [make_inputs(dict(case, epilogue=0)) for _ in range(3)]
        if case["type"] == "i8":
            if case["ta"] or not case["tb"] or case["batch"] > 1:
                TORCH_TIMES[key] = None
                return None
            out = torch.empty(case["m"], case["n"], dtype=torch.int32, device="cuda")
            calls = [(lambda s=s: torch._int_mm(s[0], s[1].t(), out=out)) for s in sets]
        else:
            out = make_outputs(dict(case, epilogue=0, otype=case["type"]))[0]
            calls = [(lambda s=s: torch.matmul(*left_and_right(case, s[0], s[1]), out=out)) for s in sets]
        TORCH_TIMES[key] = driver.time_ms(calls, repeats(case))
    return TORCH_TIMES[key]


def repeats(case):
    work = case["batch"] * case["m"] * case["n"] * case["k"]
    return 12 if work >= 2**36 else 60


def run(folder, case, timed):
    kernel = Kernel(folder, case)
    inputs, outputs = make_inputs(case), make_outputs(case)
    for call in kernel.bind(inputs, outputs):
        call()
    torch.cuda.synchronize()
    bad, worst = wrong_elements(case, outputs, expected(case, inputs))
    shape = f"{case['batch']}x{case['m']}x{case['n']}x{case['k']}"
    head = f"{case['name']:5s} {shape:18s} {case['type']:4s} ta{case['ta']} tb{case['tb']} e{case['epilogue']} {case['otype']:4s} {case['config']:75s}"
    if bad:
        print(f"{head} WRONG {bad} elements, worst {worst:.4g}", flush=True)
        return False
    line = f"{head} ok {worst:.2g}"
    if timed and "bounded=1" not in case["config"]:
        sets = [inputs] + [make_inputs(case) for _ in range(2)]
        bound = [kernel.bind(s, outputs) for s in sets]
        ms = driver.time_ms([(lambda cs=cs: [c() for c in cs]) for cs in bound], repeats(case))
        ref = torch_ms(case)
        rate = 2e-9 * case["batch"] * case["m"] * case["n"] * case["k"] / ms
        line += f"  {ms * 1e3:8.1f} us {rate:7.1f} T"
        if ref:
            line += f"  torch {ref * 1e3:8.1f} us  ratio {ref / ms:.3f}"
    print(line, flush=True)
    kernel.module.unload()
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--seconds", type=float, default=500)
    options = parser.parse_args()
    with open(os.path.join(options.folder, "cases.json")) as f:
        cases = json.load(f)
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    torch.manual_seed(0)
    begin, done, wrong, unrun = time.time(), 0, [], 0
    for case in cases:
        if not case["name"].startswith(options.only):
            continue
        if time.time() - begin > options.seconds:
            unrun += 1
            continue
        try:
            done += 1
            if not run(options.folder, case, not options.no_time):
                wrong.append(case["name"])
        except RuntimeError as e:
            print(case["name"], case["config"], "FAILED:", str(e).splitlines()[0] if str(e) else repr(e), flush=True)
            wrong.append(case["name"])
            if "ILLEGAL" in str(e) or "LAUNCH" in str(e) or "launch failure" in str(e) or "illegal" in str(e):
                print("the context is lost: nothing more can run in this process", flush=True)
                break
    print(f"{done} run, {len(wrong)} wrong or failed {wrong}, {unrun} not reached", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
