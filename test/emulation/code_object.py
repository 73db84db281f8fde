"""AMD code objects (hsaco ELF files), loaded into this process: sections at their addresses, symbols, metadata, kernel descriptors.

The layout of descriptors and metadata is in LLVM's AMDGPU user guide ("Kernel Descriptor", "Code Object Metadata").
"""
import ctypes
import struct

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
READ_WRITE, PRIVATE_ANONYMOUS, PAGE = 3, 0x22, 4096
RELATIVE64, ABS64 = 13, 3
SYMBOL_TABLES, RELOCATIONS, NOTE, NO_CONTENT, AMDGPU_METADATA = (2, 11), 4, 4, 8, 32


def alloc(size, alignment=16):
    """`size` bytes that end at a page that cannot be accessed (as far as the alignment allows); the page before them cannot be either."""
    room = max((size + alignment - 1) // alignment * alignment, alignment)
    pages = (room + PAGE - 1) // PAGE * PAGE
    begin = libc.mmap(None, pages + 2 * PAGE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)
    if begin in (None, ctypes.c_void_p(-1).value) or libc.mprotect(begin, PAGE, 0) or libc.mprotect(begin + PAGE + pages, PAGE, 0):
        raise MemoryError(f"{size} bytes for a buffer")
    return begin + PAGE + pages - room


def release(address, size, alignment=16):
    room = max((size + alignment - 1) // alignment * alignment, alignment)
    pages = (room + PAGE - 1) // PAGE * PAGE
    libc.munmap(ctypes.c_void_p(address + room - pages - PAGE), ctypes.c_size_t(pages + 2 * PAGE))


def unpacked(data, at=0):
    """(value, position after it) of MessagePack data."""
    code, at = data[at], at + 1

    def text(n, at):
        return data[at:at + n].decode(), at + n

    def sequence(n, at):
        found = []
        for _ in range(n):
            value, at = unpacked(data, at)
            found.append(value)
        return found, at

    def mapping(n, at):
        flat, at = sequence(2 * n, at)
        return dict(zip(flat[::2], flat[1::2])), at

    if code < 0x80:
        return code, at
    if code < 0x90:
        return mapping(code & 15, at)
    if code < 0xA0:
        return sequence(code & 15, at)
    if code < 0xC0:
        return text(code & 31, at)
    if code >= 0xE0:
        return code - 256, at
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code], at
    numbers = {0xCA: "f", 0xCB: "d", 0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}
    if code in numbers:
        return struct.unpack_from(">" + numbers[code], data, at)[0], at + struct.calcsize(numbers[code])
    lengths = {0xD9: (text, "B"), 0xDA: (text, "H"), 0xDB: (text, "I"), 0xDC: (sequence, "H"), 0xDD: (sequence, "I"), 0xDE: (mapping, "H"), 0xDF: (mapping, "I")}
    read, size = lengths[code]
    return read(struct.unpack_from(">" + size, data, at)[0], at + struct.calcsize(size))


def document(data):
    """The metadata of the bytes of a code object: what its note says."""
    segments_at, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    for i in range(count):
        kind, _, offset = struct.unpack_from("<IIQ", data, segments_at + 56 * i)
        if kind == NOTE:
            name_size, size, kind = struct.unpack_from("<III", data, offset)
            if kind == AMDGPU_METADATA:
                return unpacked(data[offset + 12 + (name_size + 3 & ~3):][:size])[0]
    return {}


def sections(data):
    """{name: bytes} of the bytes of an ELF file."""
    at, count, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
    headers = [struct.unpack_from("<IIQQQQ", data, at + 64 * i) for i in range(count)]
    strings = headers[names][4]
    return {data[strings + h[0]:data.index(b"\0", strings + h[0])].decode(): data[h[4]:h[4] + h[5]] for h in headers if h[1] != NO_CONTENT}


class CodeObject:
    """The sections of a file in memory. `symbols` has offsets in it, `meta` the metadata's document, `base` where it lies."""

    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        if data[:4] != b"\x7fELF":
            raise ValueError(f"{path}: not an ELF file")
        self.path, self.code = path, {}
        segments_at, sections_at = struct.unpack_from("<QQ", data, 32)
        segment_count, section_count = struct.unpack_from("<H", data, 56)[0], struct.unpack_from("<H", data, 60)[0]
        segments = [struct.unpack_from("<IIQQQQQQ", data, segments_at + 56 * i) for i in range(segment_count)]  # type flags offset address _ bytes memory _
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + 64 * i) for i in range(section_count)]
        size = max(s[3] + s[6] for s in segments if s[0] == 1)
        self.base = libc.mmap(None, size + 2 * PAGE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)
        for s in segments:
            if s[0] == 1:
                ctypes.memmove(self.base + s[3], data[s[2]:s[2] + s[5]], s[5])
        self.symbols, self.meta, dynamic = {}, document(data), []
        for s in sections:
            if s[1] in SYMBOL_TABLES:
                names = sections[s[6]][4]
                table = []
                for at in range(s[4], s[4] + s[5], 24):
                    name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                    table.append(value)
                    if section not in (0, 0xFFF1):
                        self.symbols[data[names + name:data.index(b"\0", names + name)].decode()] = value
                if s[1] == 11:
                    dynamic = table
        for s in sections:
            if s[1] == RELOCATIONS:
                for at in range(s[4], s[4] + s[5], 24):
                    place, info, addend = struct.unpack_from("<QQq", data, at)
                    if info & 0xFFFFFFFF not in (RELATIVE64, ABS64):
                        raise ValueError(f"{path}: relocation {info & 0xFFFFFFFF}")
                    value = self.base + addend + (dynamic[info >> 32] if info & 0xFFFFFFFF == ABS64 else 0)
                    ctypes.c_uint64.from_address(self.base + place).value = value & (1 << 64) - 1

    def descriptor(self, kernel):
        """What the kernel descriptor says."""
        if kernel + ".kd" not in self.symbols:
            raise ValueError(f"{self.path}: no kernel {kernel}")
        data = ctypes.string_at(self.base + self.symbols[kernel + ".kd"], 64)
        shared, private, arguments = struct.unpack_from("<III", data, 0)
        resources_3, resources_1, resources_2, properties, preloaded = struct.unpack_from("<IIIHH", data, 44)
        entry = self.symbols[kernel + ".kd"] + struct.unpack_from("<q", data, 16)[0]
        facts = next((k for k in self.meta.get("amdhsa.kernels", []) if k[".symbol"] == kernel + ".kd"), {})
        return {"shared": shared, "private": private, "argument_bytes": arguments, "entry": entry, "resources_1": resources_1, "resources_2": resources_2,
                "resources_3": resources_3, "properties": properties, "preloaded": preloaded, "facts": facts}


def packed_arguments(descriptor, values, grid, block, dynamic_shared):
    """The bytes of a kernel's argument segment. `values`: bytes of each explicit argument in order."""
    segment = bytearray(max(descriptor["argument_bytes"], 16) + 512)
    hidden = {"hidden_block_count_x": grid[0], "hidden_block_count_y": grid[1], "hidden_block_count_z": grid[2], "hidden_group_size_x": block[0], "hidden_group_size_y": block[1],
              "hidden_group_size_z": block[2], "hidden_grid_dims": 3, "hidden_dynamic_lds_size": dynamic_shared}
    left = list(values)
    for argument in descriptor["facts"].get(".args", []):
        kind, at, size = argument[".value_kind"], argument[".offset"], argument[".size"]
        if kind.startswith("hidden_"):
            value = hidden.get(kind, 0).to_bytes(size, "little")
        elif kind == "dynamic_shared_pointer":
            value = descriptor["shared"].to_bytes(size, "little")
        else:
            if not left:
                raise ValueError("the kernel takes more arguments than it is given")
            value = left.pop(0)
        if len(value) != size:
            raise ValueError(f"an argument has {len(value)} bytes, the kernel takes {size}")
        segment[at:at + size] = value
    if left:
        raise ValueError(f"{len(left)} arguments more than the kernel takes")
    return bytes(segment)
