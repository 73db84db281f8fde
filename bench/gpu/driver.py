"""The CUDA driver for scripts that run finalized kernels on a GPU without kiln: modules from PTX or cubin, tensor maps,
launches, timing with CUDA graphs.
PyTorch owns memory and the stream. Errors are exceptions that carry the driver's words."""
import ctypes as C

import torch

cuda = C.CDLL("libcuda.so.1")
torch.zeros(1, device="cuda")

# CUtensorMapDataType of kiln's element types.
MAP_TYPES = {"u8": 0, "i8": 0, "u16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}
MAP_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
MAP_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}


def check(result, what):
    if result:
        text = C.c_char_p()
        cuda.cuGetErrorName(result, C.byref(text))
        raise RuntimeError(f"{what}: {text.value.decode() if text.value else result}")


class Module:
    def __init__(self, path):
        if path.endswith(".ptx"):
            with open(path, "rb") as f:
                image = f.read() + b"\0"
        else:
            with open(path, "rb") as f:
                image = f.read()
        size = 16384
        errors = C.create_string_buffer(size)
        options = (C.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, its size
        values = (C.c_void_p * 2)(C.cast(errors, C.c_void_p), C.c_void_p(size))
        self.handle = C.c_void_p()
        result = cuda.cuModuleLoadDataEx(C.byref(self.handle), image, 2, options, values)
        if result:
            raise RuntimeError(f"{path}: {errors.value.decode(errors='replace')}")

    def function(self, symbol, shared_bytes=0):
        f = C.c_void_p()
        check(cuda.cuModuleGetFunction(C.byref(f), self.handle, symbol.encode()), symbol)
        if shared_bytes > 48 * 1024:
            check(cuda.cuFuncSetAttribute(f, 8, shared_bytes), symbol)
        return f

    def unload(self):
        cuda.cuModuleUnload(self.handle)


def encode_tensor_map(description, pointer):
    """kernels.json's description of a tensor map over memory at `pointer` → 64-byte aligned buffer of 128 bytes; keep
    the first element."""
    keep = C.create_string_buffer(128 + 64)
    address = (C.addressof(keep) + 63) // 64 * 64
    rank = len(description["dims"])
    dims = (C.c_uint64 * rank)(*description["dims"])
    strides = (C.c_uint64 * max(1, rank - 1))(*description["strides"])
    box = (C.c_uint32 * rank)(*description["box"])
    steps = (C.c_uint32 * rank)(*description.get("element_strides") or [1] * rank)
    check(cuda.cuTensorMapEncodeTiled(C.c_void_p(address), MAP_TYPES[description["type"]], rank, C.c_void_p(pointer), dims, strides, box, steps, 0,
                                      MAP_SWIZZLES[description["swizzle_bytes"]], MAP_PROMOTIONS[description["l2_promotion_bytes"]], 0), "cuTensorMapEncodeTiled")
    return keep, address


class Attribute(C.Structure):  # CUlaunchAttribute
    _fields_ = [("id", C.c_int), ("padding", C.c_int), ("value", C.c_int * 16)]


class Configuration(C.Structure):  # CUlaunchConfig
    _fields_ = [("grid", C.c_uint * 3), ("block", C.c_uint * 3), ("shared", C.c_uint), ("stream", C.c_void_p), ("attributes", C.POINTER(Attribute)), ("count", C.c_uint)]


PROGRAMMATIC = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
cuda.cuLaunchKernelEx.argtypes = [C.POINTER(Configuration), C.c_void_p, C.c_void_p, C.c_void_p]


class Launch:
    """One launch with its arguments bound; call it to enqueue it on PyTorch's current stream. With `early`, a kernel that
    waits for its predecessors itself may start before they have ended, as in kiln's graphs: its weights must be complete."""

    def __init__(self, function, description, pointers, early=False):
        self.function = function
        self.attribute = Attribute(id=PROGRAMMATIC)
        self.attribute.value[0] = 1
        self.configuration = Configuration(shared=description["lds_bytes"], attributes=C.pointer(self.attribute), count=int(early and description["waits"]))
        self.configuration.grid[:] = description["grid"]
        self.configuration.block[:] = description["block"]
        maps = {m["argument"]: m for m in description.get("tensor_maps", [])}
        self.keep, slots = [], []
        for i, pointer in enumerate(pointers):
            if i in maps:
                keep, address = encode_tensor_map(maps[i], pointer)
                self.keep.append(keep)
                slots.append(address)
            else:
                holder = C.c_uint64(pointer)
                self.keep.append(holder)
                slots.append(C.addressof(holder))
        self.arguments = (C.c_void_p * len(slots))(*slots)

    def __call__(self):
        self.configuration.stream = torch.cuda.current_stream().cuda_stream
        check(cuda.cuLaunchKernelEx(C.byref(self.configuration), self.function, C.cast(self.arguments, C.c_void_p), None), "cuLaunchKernelEx")


def time_ms(calls, repeats=20, replays=7):
    """Median milliseconds of one call, from a CUDA graph of `repeats` calls that walk through `calls`."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.cuda.graph(graph, stream=stream):
        for i in range(repeats):
            calls[i % len(calls)]()
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    times = []
    for _ in range(replays):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / repeats)
    times.sort()
    return times[len(times) // 2]
