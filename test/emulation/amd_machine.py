"""The emulator of AMD GPUs (machine/): loads code objects and executes launches, workgroup by workgroup.

KILN_AMD_MACHINE names its library (libkiln_amd_machine.so of a build). Memory of kernels is memory of this process. Every buffer ends at a page that cannot be
accessed, so an access beyond it ends the process with SIGSEGV.
"""
import ctypes
import itertools
import os

import code_object
import decode

MOST_INSTRUCTIONS = 2_000_000_000
ORDER = list  # order of the waves of a workgroup between barriers
alloc, libc = code_object.alloc, code_object.libc


class Fault(Exception):
    """What a kernel must not do, or what is not emulated."""


class Launch(ctypes.Structure):
    _fields_ = [("code", ctypes.c_void_p), *((n, ctypes.c_uint32) for n in ("instructions", "lanes", "threads", "block_x", "block_y", "packed_ids", "flushes", "shared", "scratch", "user_registers")),
                ("user", ctypes.c_uint32 * 32), ("id_registers", ctypes.c_uint32), ("ids_in_ttmp", ctypes.c_uint32), ("most_instructions", ctypes.c_uint64)]


_library = None


def load():
    """The library, which is loaded once."""
    global _library
    if _library is None:
        _library = ctypes.CDLL(os.environ["KILN_AMD_MACHINE"])
        _library.emulation_operation.restype, _library.emulation_operation.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        _library.emulation_run.restype = ctypes.c_int64
        if _library.emulation_instruction_bytes() != ctypes.sizeof(decode.Instruction):
            raise RuntimeError("decode.py and wave.hpp disagree about an instruction")
    return _library


class Hsaco(code_object.CodeObject):
    """A code object whose kernels are decoded when they are first launched."""

    def __init__(self, path):
        super().__init__(path)
        self.lines, self.decoded = None, {}

    def kernel(self, symbol, processor):
        if symbol not in self.decoded:
            self.lines = self.lines or decode.disassembled(self.path, processor)
            library = load()
            descriptor = self.descriptor(symbol)
            code, unknown = decode.decoded(self.lines[symbol], self.base, lambda name: library.emulation_operation(name.encode()), decode.keeps_halves(processor))
            if unknown:
                raise Fault("not emulated: " + "; ".join(sorted(set(unknown.values()))[:4]))
            if code[0].address != self.base + descriptor["entry"]:
                raise Fault("the kernel does not begin at its symbol")
            self.decoded[symbol] = code, descriptor
        return self.decoded[symbol]


def generation(processor):
    return 9 if processor.startswith("gfx9") else int(processor[3:5])


def launch_of(code, descriptor, processor, grid, block, arguments, dynamic_shared):
    """The Launch, and the address and size of its argument segment."""
    segment = code_object.packed_arguments(descriptor, arguments, grid, block, dynamic_shared)
    address = alloc(len(segment), 64)
    ctypes.memmove(address, segment, len(segment))
    # Scalar registers that the user guide's table of initial state names, in its order.
    properties, resources, user = descriptor["properties"], descriptor["resources_2"], []
    for bit, values in ((1, [0] * 4), (2, [0] * 2), (4, [0] * 2), (8, [address & 0xFFFFFFFF, address >> 32]), (16, [0] * 2), (32, [0] * 2), (64, [descriptor["private"]])):
        if properties & bit:
            user += values
    user += [0] * ((resources >> 1 & 31) - len(user))
    wide, lanes = generation(processor), 32 if properties & 0x400 else 64
    launch = Launch(code=ctypes.addressof(code), instructions=len(code), lanes=lanes, threads=block[0] * block[1] * block[2], block_x=block[0], block_y=block[1],
                    packed_ids=processor.startswith(("gfx90a", "gfx94", "gfx95", "gfx9-4")) or wide >= 11, flushes=(descriptor["resources_1"] >> 16 & 3) != 3,
                    shared=descriptor["shared"] + dynamic_shared, scratch=max(descriptor["private"], 0), user_registers=len(user), id_registers=resources >> 7 & 7, ids_in_ttmp=wide >= 12,
                    most_instructions=MOST_INSTRUCTIONS)
    launch.user[:len(user)] = user
    return launch, address, len(segment)


def run(hsaco, symbol, processor, grid, block, arguments, dynamic_shared=0, groups=None):
    """Executes a launch; `arguments` are bytes, `groups` an order of workgroups. Returns {"waveinst": instructions of waves}."""
    library = load()
    code, descriptor = hsaco.kernel(symbol, processor)
    launch, segment, segment_bytes = launch_of(code, descriptor, processor, grid, block, arguments, dynamic_shared)
    waves = -(-launch.threads // launch.lanes)
    order = (ctypes.c_uint32 * waves)(*ORDER(list(range(waves))))
    scratch = (ctypes.c_uint8 * max(launch.scratch * launch.lanes * waves, 1))()
    error, findings, executed = ctypes.create_string_buffer(500), ctypes.create_string_buffer(2000), 0
    try:
        for k, j, i in groups or itertools.product(range(grid[2]), range(grid[1]), range(grid[0])):
            done = library.emulation_run(ctypes.byref(launch), (ctypes.c_uint32 * 3)(i, j, k), order, scratch, error, len(error), findings, len(findings))
            if done < 0:
                raise Fault(error.value.decode())
            if findings.value:
                raise Fault(findings.value.decode().splitlines()[0])
            executed += done
    finally:
        code_object.release(segment, segment_bytes, 64)
    return {"waveinst": executed}
