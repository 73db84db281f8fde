"""Checks and times matrix products and convolutions that were finalized one by one, on an NVIDIA GPU: python3
bench/gpu/gemm.py FOLDER [--only PREFIX]
FOLDER holds NAME.ptx and NAME.json, or NAME@NUMBER for further configurations of the same case. A .json has `spec` (the
case: "NAME op=dot m= n= k= ..." or "NAME op=conv h= c= f= k= s= p= ...", "NAME op=int4 m= n= k=" of int4_cases.py: i4
weights [n, k/g, g] and their scales, beside PyTorch with f16 weights), `inputs` and `outputs` ([type, dims] each),
`scratch` (bytes), `zeroed` (flags) and `launches` (`symbol`, `grid`, `block`, `lds`, `prepare`, `args`: [kind, index],
kinds 0 to 2: input, output, scratch). Outputs start as NaN; results are compared with PyTorch in f32, times (CUDA
graphs, operands that take turns so that small cases do not live in one cache line forever) stand beside PyTorch's f16
kernel. Exit code 1 where one is wrong."""
import argparse
import glob
import json
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver  # noqa: E402

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i8": torch.int8, "i32": torch.int32, "u8": torch.uint8, "i4": torch.uint8}
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


def random(kind, dims):
    if kind == "i8":
        return torch.randint(-128, 128, dims, device="cuda", dtype=torch.int8)
    if kind == "i4":  # two to a byte
        return torch.randint(0, 256, dims[:-1] + [dims[-1] // 2], device="cuda", dtype=torch.uint8)
    return (torch.randn(dims, device="cuda") * 0.5).to(TYPES[kind])


class Case:
    def __init__(self, document):
        name, *pairs = document["spec"].split()
        self.name, self.options, self.document = name.split("@")[0], dict(p.split("=") for p in pairs), document

    def number(self, key, default=0):
        return int(self.options.get(key, default))

    def convolve(self, x, w, bias=None):
        """channels_last image and [window..., channels, features] weights, as PyTorch's channels_last tensors."""
        if bias is not None:
            bias = bias.to(x.dtype)
        y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), bias, self.number("s", 1), self.number("p"), self.number("d", 1), self.number("g", 1))
        return y.permute(0, 2, 3, 1)

    def unpacked(self, packed, scales):
        """f16 weights [n, k]."""
        nibbles = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).to(torch.int8)
        return ((nibbles ^ 8) - 8).to(scales.dtype).mul(scales).flatten(1)

    def product(self, a, b):
        if self.options["op"] == "conv":
            return self.convolve(a, b)
        a = a.transpose(-1, -2) if self.number("ta") else a
        return a @ (b.transpose(-1, -2) if self.number("tb") else b)

    def expected(self, inputs):
        wide = torch.float64 if inputs[0].dtype in (torch.int8, torch.float32) else torch.float32
        if self.options["op"] == "int4":
            return [inputs[0].to(wide) @ self.unpacked(*inputs[1:3]).to(wide).T]
        y = self.product(inputs[0].to(wide), inputs[1].to(wide))
        epilogue = self.number("epi")
        if epilogue == 3:
            return [y * torch.sigmoid(y)]
        if epilogue == 0:
            return [y]
        biased = y + inputs[2].to(wide)
        if epilogue == 2:
            biased = biased + inputs[3].to(wide)
        return [y, torch.relu(biased)] if epilogue == 4 else [torch.relu(biased)]

    def torch_call(self, inputs):
        """PyTorch's way of doing the product alone."""
        a, b = inputs[:2]
        if self.options["op"] == "int4":
            w = self.unpacked(*inputs[1:3])
            return lambda: a @ w.T
        if self.options["op"] == "conv":
            w = b.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
            x = a.permute(0, 3, 1, 2)
            return lambda: torch.nn.functional.conv2d(x, w, None, self.number("s", 1), self.number("p"), self.number("d", 1), self.number("g", 1))
        if a.dtype == torch.int8:
            bt = b.t().contiguous().t()
            return lambda: torch._int_mm(a, bt)
        b = b if self.number("tb") else b
        return lambda: self.product(a, b)

    def work(self):
        """Multiply-adds * 2."""
        dims = self.document["inputs"][1][1]
        total = 2
        for d in dims:
            total *= d
        rows = 1
        for d in self.document["outputs"][0][1][:-1]:
            rows *= d
        return total * rows


class Kernel:
    def __init__(self, path, case):
        self.module, self.case = driver.Module(path), case
        self.keep = []

    def bind(self, inputs, outputs):
        """Prepared; a callable that launches the rest."""
        document = self.case.document
        scratch = [torch.zeros(max(16, n), dtype=torch.uint8, device="cuda") if z else torch.full((max(16, n),), 255, dtype=torch.uint8, device="cuda") for n, z in zip(document["scratch"], document["zeroed"])]
        places = (inputs, outputs, scratch)
        launches = []
        for l in document["launches"]:
            function = self.module.function(l["symbol"], l["lds"])
            description = {"grid": l["grid"], "block": [l["block"], 1, 1], "lds_bytes": l["lds"]}
            launch = driver.Launch(function, description, [places[k][i].data_ptr() for k, i in l["args"]])
            if l["prepare"]:
                launch()
            else:
                launches.append(launch)
        torch.cuda.synchronize()
        self.keep.append((inputs, outputs, scratch))

        def call():
            for launch in launches:
                launch()
        return call


def error_of(outputs, expected, spread):
    worst = 0.0
    for got, wanted in zip(outputs, expected):
        got, wanted = got.double(), wanted.double()
        if not torch.isfinite(got).all():
            return float("nan")
        worst = max(worst, ((got - wanted).norm() / (wanted.norm() + 1e-30)).item())
    return worst


def blank(document):
    return [torch.full(dims, float("nan"), dtype=TYPES[kind], device="cuda") if TYPES[kind].is_floating_point else torch.full(dims, 85, dtype=TYPES[kind], device="cuda") for kind, dims in document["outputs"]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--no-time", action="store_true")
    arguments = parser.parse_args()
    wrong = 0
    cases = {}
    for path in sorted(glob.glob(os.path.join(arguments.folder, "*.json"))):
        with open(path) as f:
            case = Case(json.load(f))
        if case.name.startswith(arguments.only):
            cases.setdefault(case.name, []).append((path, case))
    for name, members in cases.items():
        members.sort(key=lambda m: int(m[0][:-5].rsplit("@", 1)[1]) if "@" in m[0] else 0)
        first = members[0][1]
        torch.manual_seed(1)
        # More bytes of weights than the second-level cache holds.
        copies = 2 if first.work() > 2e10 else 16 if first.options["op"] == "int4" else 4
        sets = [[random(kind, dims) for kind, dims in first.document["inputs"]] for _ in range(copies)]
        expected = first.expected(sets[0])
        peer = None
        if not arguments.no_time:
            try:
                peer = driver.time_ms([first.torch_call(s) for s in sets])
            except RuntimeError as e:
                print(f"{name}: PyTorch: {str(e).splitlines()[0]}")
        best = None
        for path, case in members:
            label = os.path.basename(path)[:-5]
            settings = " ".join(f"{k}={case.options[k]}" for k in ("tile_m", "tile_n", "part_m", "part_n", "chunks", "stages", "splits", "instruction", "narrow_columns", "narrow_waves", "narrow_stages") if k in case.options) if "@" in label else ""
            try:
                kernel = Kernel(path[:-5] + ".ptx", case)
                outputs = blank(case.document)
                call = kernel.bind(sets[0], outputs)
                call()
                torch.cuda.synchronize()
                again = [o.clone() for o in outputs]
                call()
                torch.cuda.synchronize()
                error = error_of(outputs, expected, None)
                kind = case.document["outputs"][0][0]
                ok = error <= {"f16": 2e-3, "bf16": 1.5e-2, "f32": 1e-5}.get(kind, 0)
                same = all(torch.equal(a, b) for a, b in zip(again, outputs))
                line = f"{label:14} error {error:.1e}{'' if ok else ' WRONG'}{'' if same else ' NOT THE SAME TWICE'}"
                wrong += not ok or not same
                if not arguments.no_time:
                    calls = [call] + [kernel.bind(s, blank(case.document)) for s in sets[1:]]
                    ms = driver.time_ms(calls)
                    line += f"  {ms * 1e3:8.2f} us {first.work() / ms / 1e9:7.1f} TFLOP/s"
                    if peer:
                        line += f"  PyTorch {peer * 1e3:8.2f} us, {peer / ms:5.2f} x"
                    best = min(best or (ms, label), (ms, label))
                print(f"{line}  {settings}", flush=True)
                kernel.module.unload()
            except RuntimeError as e:
                wrong += 1
                print(f"{label:14} FAILED {str(e).splitlines()[0]} {settings}", flush=True)
        if best and len(members) > 1:
            print(f"== {name:14} best {best[1]} {best[0] * 1e3:.2f} us" + (f", PyTorch {peer * 1e3:.2f} us, {peer / best[0]:.2f} x" if peer else ""), flush=True)
    print(f"{wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
