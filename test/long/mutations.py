"""How files are damaged behind their hashes: `.kiln` files, cache entries, protobuf, JSON, plain bytes. For mutants.py.

Every function takes its random numbers from the generator that it is given, so a seed always makes the same file."""
import ctypes
import ctypes.util
import functools
import json
import struct

SECTIONS = ["manifest", "program", "kernels", "weights_index", "tuning_hints", "objects", "weights", "signature", "steps"]
NUMBERS = [0, 1, 2, 7, 8, 63, 64, 127, 128, 255, 256, 4096, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1 << 47, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


@functools.cache
def llvm():
    return ctypes.CDLL("libLLVM.so.22.1")


@functools.cache
def libzstd():
    library = ctypes.CDLL("libzstd.so.1")
    for name in "ZSTD_compress", "ZSTD_decompress", "ZSTD_compressBound":
        getattr(library, name).restype = ctypes.c_size_t
    return library


def blake3(data):
    """The hash as LLVM has it, since Python has none."""
    state, digest, data = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(32), bytes(data)
    llvm().llvm_blake3_hasher_init(state)
    llvm().llvm_blake3_hasher_update(state, data, ctypes.c_size_t(len(data)))
    llvm().llvm_blake3_hasher_finalize(state, digest, ctypes.c_size_t(32))
    return digest.raw


def compress(data):
    data = bytes(data)
    out = ctypes.create_string_buffer(libzstd().ZSTD_compressBound(ctypes.c_size_t(len(data))))
    size = libzstd().ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 1)
    return out.raw[:size]


def decompress(data, size):
    out = ctypes.create_string_buffer(max(size, 1))
    size = libzstd().ZSTD_decompress(out, ctypes.c_size_t(size), bytes(data), ctypes.c_size_t(len(data)))
    return out.raw[:size]


def edit(random, data, low=0, high=None):
    """One to three changes of a bytearray between two offsets; its length stays."""
    high = high or len(data)
    for _ in range(random.randint(1, 3)):
        at, choice = random.randrange(low, high), random.randrange(6)
        if choice == 0:
            data[at] = random.randrange(256)
        elif choice == 1:
            data[at] ^= 1 << random.randrange(8)
        elif choice == 2:
            data[at] = (data[at] + random.randint(-4, 4)) & 255
        elif choice == 3 and at + 4 <= high:
            data[at & ~3:(at & ~3) + 4] = struct.pack("<I", random.choice(NUMBERS) & 0xffffffff)
        elif choice == 4 and at + 8 <= high:
            data[at & ~3:(at & ~3) + 8] = struct.pack("<Q", random.choice(NUMBERS))
        else:
            source = random.randrange(low, high)
            count = min(random.randint(1, 12), high - at, high - source)
            data[at:at + count] = data[source:source + count]
    return data


def edit_text(random, data):
    """Changes that may also cut, insert and repeat."""
    data = bytearray(data)
    for _ in range(random.randint(1, 3)):
        at, choice = random.randrange(len(data) + 1), random.randrange(5)
        if choice == 0 and data:
            edit(random, data)
        elif choice == 1:
            del data[at:at + random.randint(1, 20)]
        elif choice == 2:
            data[at:at] = random.choice([b"\0", b"\x1b]0;x\x07", b"\xff\xfe", b"{" * 50, b"[" * 5000, b'"', b"-1", b"1e300", b"18446744073709551616", b"\n", b"../", b"/etc/passwd", b"9" * 400, b"=", b",", b"A" * 3000])
        elif choice == 3:
            end = random.randint(at, min(len(data), at + 200))
            data[at:at] = data[at:end] * random.choice([1, 2, 50])
        elif random.random() < 0.2:
            del data[at:]
    return bytes(data)


def edit_json(random, text):
    """A document of which one to three values are others, gone, or repeated."""
    document = json.loads(text)
    for _ in range(random.randint(1, 3)):
        places = []

        def walk(node):
            for key in (list(node) if isinstance(node, dict) else range(len(node))):
                places.append((node, key))
                if isinstance(node[key], (dict, list)):
                    walk(node[key])
        walk(document)
        if not places:
            break
        (node, key), choice = random.choice(places), random.randrange(7)
        if choice == 0:
            del node[key]
        elif choice == 1:
            node[key] = random.choice([None, True, -1, 0, 1 << 63, -(1 << 63), 1e300, 0.5, "", "x" * 5000, "\x1b[31m", "../../etc/passwd", "ab" * 32, [], {}, [[[[]]]], "2*n+1", "floor(a/b)"])
        elif choice == 2:
            source, other = random.choice(places)
            try:
                node[key] = json.loads(json.dumps(source[other]))
            except (KeyError, IndexError):
                pass
        elif choice == 3 and isinstance(node, list):
            node.extend([node[key]] * random.choice([1, 10, 300]))
        elif choice == 4:
            deep = node[key]
            for _ in range(random.choice([3, 20, 40, 400])):
                deep = [deep] if random.random() < 0.5 else {"a": deep}
            node[key] = deep
        elif isinstance(node[key], str) and node[key]:
            node[key] = edit_text(random, node[key].encode()).decode("utf-8", "replace")
        elif isinstance(node[key], (int, float)):
            node[key] = random.choice([*NUMBERS, -1, -2, 1e18, 1e-300])
    return json.dumps(document).encode()


# protobuf without a schema: a message is a list of [field, wire type, value]; a value of type 2 that reads as a message is one


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def read_message(data, depth=0):
    at, fields = 0, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 70:
                raise ValueError
    while at < len(data):
        tag = number()
        field, wire = tag >> 3, tag & 7
        if field == 0:
            raise ValueError
        if wire == 0:
            fields.append([field, 0, number()])
        elif wire == 2:
            size = number()
            if at + size > len(data):
                raise ValueError
            value, at = data[at:at + size], at + size
            if size > 2 and depth < 8:
                try:
                    value = read_message(value, depth + 1)
                except (ValueError, IndexError):
                    pass
            fields.append([field, 2, value])
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if at + size > len(data):
                raise ValueError
            fields.append([field, wire, data[at:at + size]])
            at += size
        else:
            raise ValueError
    return fields


def write_message(fields):
    out = b""
    for field, wire, value in fields:
        out += varint(field << 3 | wire)
        if wire == 0:
            out += varint(value) if isinstance(value, int) else b"\0"
        else:
            value = write_message(value) if isinstance(value, list) else value if isinstance(value, bytes) else varint(value)
            out += varint(len(value)) + value if wire == 2 else value[:8 if wire == 1 else 4].ljust(8 if wire == 1 else 4, b"\0")
    return out


def copied(value):
    return [[f, w, copied(v)] for f, w, v in value] if isinstance(value, list) else value


def edit_message(random, data):
    """One to three fields gone, repeated, exchanged, or with another number, text or tag; else changes of single bytes."""
    try:
        tree = read_message(data)
    except (ValueError, IndexError):
        tree = None
    if not tree or random.random() < 0.3:
        return bytes(edit(random, bytearray(data)))
    for _ in range(random.randint(1, 3)):
        lists, rest = [], [tree]
        while rest:
            lists.append(rest.pop())
            rest += [f[2] for f in lists[-1] if isinstance(f[2], list)]
        lists = [fields for fields in lists if fields]
        if not lists:
            break
        fields = random.choice(lists)
        at, choice = random.randrange(len(fields)), random.randrange(7)
        field, other = fields[at], random.choice(random.choice(lists))
        if choice == 0:
            del fields[at]
        elif choice == 1:
            fields.insert(random.randrange(len(fields) + 1), [field[0], field[1], copied(field[2])])
        elif choice == 2:
            field[1], field[2] = other[1], copied(other[2])
        elif field[1] == 0:
            field[2] = random.choice([*NUMBERS, 3, 5, 16, 1 << 31, 1 << 40, -1, -2, -(1 << 63), -(1 << 31)])
        elif isinstance(field[2], bytes) and field[2]:
            if field[1] == 2 and other[1] == 2 and isinstance(other[2], bytes) and random.random() < 0.5:
                field[2] = other[2]
            else:
                field[2] = bytes(edit(random, bytearray(field[2])))
        else:
            field[0] = random.randint(1, 25)
    return write_message(tree)


class KilnFile:
    """The sections of a `.kiln` file, unpacked; bytes() puts them together with every hash right."""
    MAGIC = b"\x89KILN\r\n\x1a"

    def __init__(self, data):
        version, count, _, a, b, c, _ = struct.unpack_from("<IIQHHHH", data, 8)
        self.version, self.written_by, self.sections = version, (a, b, c), {}
        for row in range(count):
            kind, codec, offset, stored, raw = struct.unpack_from("<IIQQQ", data, 64 + 64 * row)
            section = data[offset:offset + stored]
            self.sections[SECTIONS[kind]] = bytearray(decompress(section, raw) if codec else section)

    def bytes(self):
        order = sorted(self.sections, key=lambda name: (name == "weights", SECTIONS.index(name)))
        offset, rows = 64 + 64 * len(order), []
        for name in order:
            alignment = 4096 if name == "weights" else 16
            offset = (offset + alignment - 1) // alignment * alignment
            data = bytes(self.sections[name])
            digest = blake3(self.sections["weights_index"]) if name == "weights" else blake3(data)
            rows.append((offset, struct.pack("<IIQQQ", SECTIONS.index(name), 0, offset, len(data), len(data)) + digest, data))
            offset += len(data)
        table = b"".join(row for _, row, _ in rows)
        head = self.MAGIC + struct.pack("<IIQHHHH", self.version, len(order), offset, *self.written_by, 0)
        out = bytearray(head + blake3(head + table) + table)
        for at, _, data in rows:
            out += bytes(at - len(out)) + data
        return bytes(out)

    def payloads(self):
        """Where the hash of each kernel lies in its section, where its payload, and of how many bytes."""
        data = self.sections["kernels"]

        def number(at):
            return struct.unpack_from("<I", data, at)[0]

        def field(table, index):
            entries = table - struct.unpack_from("<i", data, table)[0]
            at = 4 + 2 * index
            if at >= struct.unpack_from("<H", data, entries)[0]:
                return None
            offset = struct.unpack_from("<H", data, entries + at)[0]
            return table + offset if offset else None
        vector = field(number(0), 0)
        if vector is None:
            return []
        vector, found = vector + number(vector), []
        for i in range(number(vector)):
            table = vector + 4 + 4 * i
            table += number(table)
            payload = field(table, 1)
            payload += number(payload)
            found.append((field(table, 0), payload + 4, number(payload)))
        return found

    def replace_payload(self, index, payload):
        """Of the same length; its hash becomes right in the section and in the program."""
        at, begin, size = self.payloads()[index]
        kernels, digest = self.sections["kernels"], blake3(payload)
        old = bytes(kernels[at:at + 32])
        kernels[begin:begin + size], kernels[at:at + 32] = payload, digest
        for name in "program", "steps":
            if name in self.sections:
                self.sections[name] = bytearray(bytes(self.sections[name]).replace(old.hex().encode(), digest.hex().encode()))
        return digest.hex()


def repaired_entry(entry):
    """A cache entry with right hashes where its numbers still allow that (jit/cache/entry.hpp)."""
    if len(entry) < 144:
        return bytes(entry)
    entry, kind, fields, stored = bytearray(entry), struct.unpack_from("<I", entry, 12)[0], struct.unpack_from("<I", entry, 48)[0], struct.unpack_from("<Q", entry, 56)[0]
    begin = 144 + fields
    if kind:
        begin = (begin + 4095) // 4096 * 4096
    if begin + stored <= len(entry):
        entry[72:104] = blake3(entry[begin:begin + stored])
    entry[112:144] = blake3(entry[:112] + entry[144:144 + fields])
    return bytes(entry)
