#!/usr/bin/env python3
"""Native files on several devices of one process at the same time, compared with the host.

    several_devices.py LIBKILN_RUNTIME HOST_FILE DEVICE=FILE... [--runs N]

LIBKILN_RUNTIME is libkiln_runtime.so; HOST_FILE and the FILEs are what `kiln finalize --native-file` made of one model for the host and for the
devices, such as cuda:0=m.sm_90.kiln cuda:1=m.sm_80.kiln. Each device has a program and a thread of its own; all run N (20) times with other inputs each
time. Python's standard library is enough. Exits 1 where an output differs by more than 1e-3 of the largest value.
"""
import argparse
import array
import ctypes
import random
import struct
import sys
import threading

F32, F16, I64, I32, BOOL = 1, 2, 6, 7, 16
CODES = {F32: "f", F16: "e", I64: "q", I32: "i", BOOL: "B"}


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_size_t), ("dims", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("threads", ctypes.c_uint), ("trusted_keys", ctypes.c_char_p), ("allow_unsigned", ctypes.c_int)]


class Program:
    def __init__(self, library, path, device):
        self.k, self.program, self.context = library, ctypes.c_void_p(), ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), device.encode(), 1, None, 1)
        self.check(self.k.kiln_program_open_with(path.encode(), ctypes.byref(options), ctypes.byref(self.program)))
        self.check(self.k.kiln_context_create(self.program, ctypes.byref(self.context)))
        self.inputs, self.outputs = self.tensors("input"), self.tensors("output")

    def check(self, status):
        if status:
            raise RuntimeError(self.k.kiln_last_error().decode())

    def tensors(self, kind):
        count = getattr(self.k, f"kiln_program_{kind}_count")
        count.restype, count.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
        found = []
        for i in range(count(self.program)):
            info = Info()
            self.check(getattr(self.k, f"kiln_program_{kind}")(self.program, ctypes.c_size_t(i), ctypes.byref(info)))
            found.append((info.name.decode(), info.type, info.bytes))
        return found

    def run(self, data):
        inputs = [ctypes.create_string_buffer(d, len(d)) for d in data]
        outputs = [ctypes.create_string_buffer(size) for _, _, size in self.outputs]
        pointers = lambda buffers: (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(b) for b in buffers))
        self.check(self.k.kiln_run_from_host(self.context, pointers(inputs), pointers(outputs)))
        return [b.raw for b in outputs]


def made(kind, size, chance):
    if kind in (F32, F16):
        values = [chance.gauss(0, 1) for _ in range(size // (4 if kind == F32 else 2))]
        return array.array("f", values).tobytes() if kind == F32 else b"".join(struct.pack("<e", v) for v in values)
    code = CODES[kind]
    return array.array(code, [chance.randrange(2) for _ in range(size // array.array(code).itemsize)]).tobytes()


def numbers(raw, kind):
    if kind == F16:
        return [v for v, in struct.iter_unpack("<e", raw)]
    return array.array(CODES[kind], raw)


def difference(got, wanted, kind):
    got, wanted = numbers(got, kind), numbers(wanted, kind)
    largest = max(map(abs, wanted), default=0) or 1
    return max((abs(a - b) if a == a else float("inf") for a, b in zip(got, wanted)), default=0) / largest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("host")
    parser.add_argument("devices", nargs="+")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    library = ctypes.CDLL(options.library)
    library.kiln_last_error.restype = ctypes.c_char_p
    host = Program(library, options.host, "host")
    programs = {d: Program(library, d.partition("=")[2], d.partition("=")[0]) for d in options.devices}
    data = [[made(kind, size, random.Random(100 * r + i)) for i, (_, kind, size) in enumerate(host.inputs)] for r in range(options.runs)]
    wanted = [host.run(d) for d in data]
    worst, problems = dict.fromkeys(programs, 0.0), {}

    def work(name):
        try:
            for d, w in zip(data, wanted):
                for got, want, (_, kind, _) in zip(programs[name].run(d), w, host.outputs):
                    worst[name] = max(worst[name], difference(got, want, kind))
        except Exception as e:  # a thread has nobody to throw to
            problems[name] = str(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in programs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for name in programs:
        print(f"{name}: {problems.get(name) or f'{options.runs} runs, largest difference {worst[name]:.1e}'}")
    return 1 if problems or max(worst.values()) > 1e-3 else 0


if __name__ == "__main__":
    sys.exit(main())
