#!/usr/bin/env python3
"""Runs a corpus folder of HIP kernels (written by `spirv_corpus TARGET FOLDER`) and compares with plain C++.

  spirv_corpus.py FOLDER [--only NAME...]

AMD targets run in the emulator (docs/emulation.md: KILN_AMD_MACHINE), in three orders of waves;
NVIDIA targets on this machine's GPU through libcuda. Python's standard library is enough. Exit status 1 where a kernel
is wrong, 77 where nothing can run here.
"""
import argparse
import array
import ctypes
import json
import os
import pathlib
import random
import struct
import sys

CODES = {"f32": "f", "f64": "d", "i64": "q", "i32": "i", "i16": "h", "i8": "b", "u8": "B", "bool": "B", "u32": "I", "u64": "Q", "u16": "H"}


def numbers(data, kind):
    if kind == "f16":
        return [v[0] for v in struct.iter_unpack("<e", data)]
    if kind == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    return list(array.array(CODES[kind], data))


def difference(got, wanted, kind, tolerance):
    floating = kind in ("f16", "bf16", "f32", "f64")
    for i, (a, b) in enumerate(zip(numbers(got, kind), numbers(wanted, kind))):
        if not (abs(a - b) <= tolerance * (1 + abs(b)) if floating else a == b):
            return f"element {i} is {a} instead of {b}"
    return ""


class Emulator:
    """One process for all kernels; buffers end at guard pages."""
    ORDERS = {"forward": list, "reversed": lambda waves: list(reversed(list(waves))), "shuffled": lambda waves: random.Random(1).sample(list(waves), len(list(waves)))}

    def __init__(self, target):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "emulation"))
        import amd_machine
        import memory
        self.machine, self.buffer, self.target = amd_machine, memory.Buffer, target

    def run(self, folder, kernel, order):
        self.machine.ORDER = self.ORDERS[order]
        inputs = [self.buffer(self.machine, t["bytes"], (folder / t["file"]).read_bytes(), 0) for t in kernel["inputs"]]
        outputs = [self.buffer(self.machine, t["bytes"], None, 0xA5) for t in kernel["expected"]]
        scratch = [self.buffer(self.machine, n, None, 0xA5) for n in kernel["scratch"]]
        of = {"input": inputs, "output": outputs, "scratch": scratch}
        code = self.machine.Hsaco(str(folder / kernel["object"]))
        for l in kernel["launches"]:
            self.machine.run(code, l["symbol"], self.target, tuple(l["grid"]), (l["block"], 1, 1), [of[kind][index].address.to_bytes(8, "little") for kind, index in l["arguments"]], l["lds"])
        return [b.bytes() for b in outputs]


class Cuda:
    """libcuda by itself: PTX in, the driver compiles."""
    ORDERS = {"once": None, "again": None}

    def __init__(self, target):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuDeviceGet(ctypes.byref(device), 0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.check(self.cuda.cuCtxSetCurrent(context))

    def check(self, status):
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"CUDA {status}: {text.value.decode() if text.value else ''}")

    def run(self, folder, kernel, order):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), (folder / kernel["object"]).read_bytes()))

        def buffer(data):
            pointer = ctypes.c_uint64()
            self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(max(len(data), 16))))
            self.check(self.cuda.cuMemcpyHtoD_v2(pointer, data, ctypes.c_size_t(len(data))))
            return pointer
        of = {"input": [buffer((folder / t["file"]).read_bytes()) for t in kernel["inputs"]], "output": [buffer(b"\xa5" * t["bytes"]) for t in kernel["expected"]],
              "scratch": [buffer(b"\xa5" * n) for n in kernel["scratch"]]}
        for l in kernel["launches"]:
            self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, l["symbol"].encode()))
            pointers = [of[kind][index] for kind, index in l["arguments"]]
            arguments = (ctypes.c_void_p * max(1, len(pointers)))(*[ctypes.cast(ctypes.byref(p), ctypes.c_void_p) for p in pointers])
            self.check(self.cuda.cuLaunchKernel(function, *l["grid"], l["block"], 1, 1, l["lds"], None, arguments, None))
        self.check(self.cuda.cuCtxSynchronize())
        results = []
        for pointer, t in zip(of["output"], kernel["expected"]):
            data = ctypes.create_string_buffer(t["bytes"])
            self.check(self.cuda.cuMemcpyDtoH_v2(data, pointer, ctypes.c_size_t(t["bytes"])))
            results.append(data.raw)
        for pointer in sum(of.values(), []):
            self.cuda.cuMemFree_v2(pointer)
        self.cuda.cuModuleUnload(module)
        return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    corpus = json.loads((options.folder / "corpus.json").read_text())
    amd = corpus["target"].startswith("gfx")
    if amd and not os.environ.get("KILN_AMD_MACHINE"):
        print("spirv_corpus: skipped: KILN_AMD_MACHINE names the emulator's library (docs/emulation.md)")
        return 77
    machine = (Emulator if amd else Cuda)(corpus["target"])
    passed, failed = 0, 0
    for kernel in corpus["kernels"]:
        if options.only and kernel["name"] not in options.only:
            continue
        problems = []
        for order in machine.ORDERS:
            try:
                for got, t in zip(machine.run(options.folder, kernel, order), kernel["expected"]):
                    if why := difference(got, (options.folder / t["file"]).read_bytes(), t["type"], kernel["tolerance"]):
                        problems.append(f"{order}: {why}")
            except Exception as e:  # the emulator refuses an instruction, the driver a module
                problems.append(f"{order}: {type(e).__name__}: {str(e)[:200]}")
        passed, failed = passed + (not problems), failed + bool(problems)
        print(f"{kernel['name']:24} {'ok' if not problems else 'WRONG: ' + problems[0]}", flush=True)
    print(f"spirv_corpus: {corpus['target']}: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
