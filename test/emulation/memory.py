"""Buffers for emulated kernels that show what a kernel must not do.

Each buffer ends at a guard page (code_object.alloc), is filled with a poison that no right answer consists of, and has
the bytes between its end and the guard page checked afterwards. Memory goes back to the system when the arena is
dropped, so one process can run many kernels.
"""
import ctypes

POISON = {"f": 0xFF, "i": 0xA5}  # NaN as f16, bf16, f32 and f64; an unlikely integer
SLACK = 0xEE
ALIGNMENT = 16  # of code_object.alloc


class WrongWrite(Exception):
    """A kernel wrote where it must not."""


class Arena:
    """Owns buffers made through amd_machine, `runner`."""

    def __init__(self, runner):
        self.runner, self.buffers = runner, []

    def buffer(self, size, content=None, fill=0):
        b = Buffer(self.runner, size, content, fill)
        self.buffers.append(b)
        return b

    def check(self):
        for b in self.buffers:
            b.check()

    def release(self):
        for b in self.buffers:
            b.release()
        self.buffers = []


class Buffer:
    """`size` bytes: constant when made from `content`, otherwise filled with the byte `fill`."""

    def __init__(self, runner, size, content, fill):
        self.runner, self.size, self.content, self.name = runner, size, content, ""
        self.room = max((size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT, ALIGNMENT)
        self.address = runner.alloc(size, ALIGNMENT)
        ctypes.memset(self.address, fill, size)
        if content is not None:
            ctypes.memmove(self.address, content, size)
        ctypes.memset(self.address + size, SLACK, self.room - size)

    def bytes(self):
        return ctypes.string_at(self.address, self.size)

    def check(self):
        if ctypes.string_at(self.address + self.size, self.room - self.size) != bytes([SLACK]) * (self.room - self.size):
            raise WrongWrite(f"{self.name}: written beyond its {self.size} bytes")
        if self.content is not None and self.bytes() != bytes(self.content):
            raise WrongWrite(f"{self.name}: an input or constant was changed")

    def release(self):
        pages = (self.room + 4095) // 4096 * 4096
        begin = self.address + self.room - pages - 4096
        self.runner.libc.munmap(ctypes.c_void_p(begin), ctypes.c_size_t(pages + 8192))
