"""Instructions for the emulator (machine/wave.hpp) from llvm-objdump's text of AMD machine code."""
import ctypes
import re
import struct
import subprocess

NONE, VECTOR, ACCUMULATOR, SCALAR, CONSTANT = range(5)
WHOLE, LOW_HALF, HIGH_HALF, BYTE_0 = range(4)
NEGATED, ABSOLUTE, SIGN_EXTENDED = 1, 2, 4
NO_MOVE, DPP, DPP8 = range(3)
NAMED = {"vcc": 106, "vcc_lo": 106, "vcc_hi": 107, "m0": 124, "null": 125, "exec": 126, "exec_lo": 126, "exec_hi": 127, "flat_scratch": 102, "flat_scratch_lo": 102, "flat_scratch_hi": 103,
         "xnack_mask": 104, "xnack_mask_lo": 104, "xnack_mask_hi": 105}
# Bases of generic addresses of shared and private memory (memory_operations.cpp).
APERTURES = {"src_shared_base": 0x2345 << 32, "src_private_base": 0x2346 << 32, "src_shared_limit": (0x2345 << 32) + 0xFFFFFFFF, "src_private_limit": (0x2346 << 32) + 0xFFFFFFFF}
SELECTED = {"DWORD": WHOLE, "WORD_0": LOW_HALF, "WORD_1": HIGH_HALF, "BYTE_0": BYTE_0, "BYTE_1": BYTE_0 + 1, "BYTE_2": BYTE_0 + 2, "BYTE_3": BYTE_0 + 3}
# Modifiers that matter to caches, waits and schedules only.
IGNORED = re.compile(r"glc|slc|dlc|sc0|sc1|nt|th:.*|scope:.*|lds|offen|gds|vmcnt.*|lgkmcnt.*|expcnt.*|depctr.*|vm_vsrc.*|va_.*|sa_.*|row_mask.*|bank_mask.*|bound_ctrl.*|fi:.*|dst_unused.*|dst_sel.*|src[01]_sel.*")
ROWS = {"row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "row_newbcast": 0x150, "row_share": 0x150, "row_xmask": 0x160}
FIXED = {"wave_shl": 0x130, "wave_rol": 0x134, "wave_shr": 0x138, "wave_ror": 0x13C, "row_mirror": 0x140, "row_half_mirror": 0x141}
# Instructions of which nothing but the name matters.
BARE = ("s_waitcnt", "s_wait_", "s_nop", "s_clause", "s_delay_alu", "s_sendmsg", "s_setprio", "s_sleep", "s_set_inst", "s_inst_prefetch", "s_prefetch", "s_barrier", "s_code_end", "s_dcache", "s_icache",
        "buffer_inv", "buffer_wb", "buffer_gl", "global_inv", "global_wb", "s_endpgm")


class Operand(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint8), ("registers", ctypes.c_uint8), ("selected", ctypes.c_uint8), ("modifiers", ctypes.c_uint8), ("index", ctypes.c_uint32), ("value", ctypes.c_uint64)]


class Instruction(ctypes.Structure):
    _fields_ = [("run", ctypes.c_void_p), ("address", ctypes.c_uint64), ("target", ctypes.c_int32), ("offset", ctypes.c_int32), ("second_offset", ctypes.c_int32), ("bytes", ctypes.c_uint32),
                ("select_low", ctypes.c_uint8), ("select_high", ctypes.c_uint8), ("negate_low", ctypes.c_uint8), ("negate_high", ctypes.c_uint8), ("move", ctypes.c_uint8), ("moved", ctypes.c_uint8),
                ("row_mask", ctypes.c_uint8), ("bank_mask", ctypes.c_uint8), ("zero_outside", ctypes.c_bool), ("fetch_inactive", ctypes.c_bool), ("returns", ctypes.c_bool), ("clamps", ctypes.c_bool),
                ("preserves", ctypes.c_bool), ("output_factor", ctypes.c_uint8), ("operands_given", ctypes.c_uint8), ("control", ctypes.c_uint32), ("operands", Operand * 6)]


class Unknown(Exception):
    """An instruction that is not emulated."""


def split(text):
    """Parts between commas that are not in brackets."""
    parts, depth, at = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth:
            parts.append(text[at:i].strip())
            at = i + 1
    return [p for p in (*parts, text[at:].strip()) if p]


def words(text):
    """Words that are separated by blanks outside of brackets."""
    return [w for w in re.split(r"\s+(?![^\[(]*[\])])", text.strip()) if w]


def bits(modifier):
    return sum(int(b) << i for i, b in enumerate(re.findall(r"[01]", modifier.split(":", 1)[1])))


def number_of(text, name):
    """The bits of a constant, in the type that the instruction reads."""
    if not re.fullmatch(r"-?\d+\.\d+(e[+-]?\d+)?", text):
        value = int(text, 0)
        # A 32-bit literal of a 64-bit float is its high half.
        return (value << 32 if text.lstrip("-").startswith("0x") and re.search(r"_f64", name) and not name.startswith("v_ldexp") and 0 <= value < 1 << 32 else value) & (1 << 64) - 1
    value = float(text)
    if "_f64" in name and not re.search(r"cvt_f64_f32", name):
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    half = re.search(r"_f16$|_[iu]16$|_b16$|cvt_f32_f16|cvt_[iu]16_f16", name) and not re.search(r"cvt_f16_f32|cvt_pk_f16_f32|fma_mix|mfma|wmma", name)
    if half:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    return struct.unpack("<I", struct.pack("<f", value))[0]


def operand(text, name):
    o = Operand()
    while True:
        if m := re.fullmatch(r"-(?!\d)(.*)|neg\((.*)\)", text):
            o.modifiers |= NEGATED
        elif m := re.fullmatch(r"\|(.*)\||abs\((.*)\)", text):
            o.modifiers |= ABSOLUTE
        elif m := re.fullmatch(r"sext\((.*)\)", text):
            o.modifiers |= SIGN_EXTENDED
        else:
            break
        text = next(g for g in m.groups() if g is not None)
    if text.endswith((".l", ".h")):
        o.selected = LOW_HALF if text.endswith(".l") else HIGH_HALF
        text = text[:-2]
    if text == "off":
        return o
    text = re.sub(r"^lit\((.*)\)$", r"\1", text)
    if m := re.fullmatch(r"(v|a|s|ttmp)(?:(\d+)|\[(\d+)(?::(\d+))?\])", text):
        first = int(m[2] or m[3])
        o.kind, o.index = {"v": VECTOR, "a": ACCUMULATOR}.get(m[1], SCALAR), first + (108 if m[1] == "ttmp" else 0)
        o.registers = int(m[4]) - first + 1 if m[4] else 1
    elif text in NAMED:
        o.kind, o.index, o.registers = SCALAR, NAMED[text], 1 if "_" in text or text == "m0" else 2
    elif text in APERTURES:
        o.kind, o.value, o.registers = CONSTANT, APERTURES[text], 2
    else:
        try:
            o.kind, o.value = CONSTANT, number_of(text, name)
        except ValueError:
            raise Unknown(f"operand {text}") from None
    return o


def set_modifier(x, modifier, encoding):
    key, _, value = modifier.partition(":")
    if key == "offset" or key == "offset0":
        if value.startswith("swizzle"):
            x.control = encoding[0] & 0xFFFF
        else:
            x.offset = int(value, 0)
    elif key == "offset1":
        x.second_offset = int(value, 0)
    elif key in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi"):
        setattr(x, {"op_sel": "select_low", "op_sel_hi": "select_high", "neg_lo": "negate_low", "neg_hi": "negate_high"}[key], bits(modifier))
    elif key == "quad_perm":
        x.move, x.control = DPP, sum(int(n) << 2 * i for i, n in enumerate(re.findall(r"\d", value)))
    elif key == "dpp8":
        x.move, x.control = DPP8, sum(int(n) << 3 * i for i, n in enumerate(re.findall(r"\d", value)))
    elif key in ROWS:
        x.move, x.control = DPP, ROWS[key] + int(value)
    elif key == "row_bcast":
        x.move, x.control = DPP, {"15": 0x142, "31": 0x143}[value]
    elif key in FIXED:
        x.move, x.control = DPP, FIXED[key]
    elif key == "bitop3":
        x.control = int(value, 0)
    elif key == "clamp":
        x.clamps = True
    elif key == "mul" or key == "div":
        x.output_factor = {"mul:2": 1, "mul:4": 2, "div:2": 3}[modifier]
    elif not IGNORED.fullmatch(modifier):
        raise Unknown(f"modifier {modifier}")


def decode(text, encoding, lookup):
    """An Instruction; `lookup` gives the function for a name, or None. `encoding`: the words of the machine code."""
    full, _, rest = text.partition(" ")
    name = re.sub(r"(_e32|_e64)?(_dpp|_sdwa)?$", "", full)
    name = name.replace("v_dual_", "v_")
    x = Instruction(target=-1, row_mask=15, bank_mask=15, bytes=4 * len(encoding))
    x.run = lookup(name)
    if not x.run:
        raise Unknown(full)
    if name.startswith(BARE):
        return x
    texts = split(rest)
    modifiers = []
    if texts:
        first, *modifiers = words(texts[-1])
        if re.match(r"\w+:", first) or first in ("clamp",):
            modifiers, texts = [first, *modifiers], texts[:-1]
        else:
            texts[-1] = first
    packed = name.startswith(("v_pk_", "v_dot2_", "v_mfma", "v_wmma"))
    if packed:
        x.select_high = 7
    for m in modifiers:
        set_modifier(x, m, encoding)
    settings = dict(m.partition(":")[::2] for m in modifiers)
    if name.startswith(("s_cbranch", "s_branch")):
        return x
    x.operands_given = len(texts)
    for i, t in enumerate(texts):
        x.operands[i] = operand(t, name)
    if re.match(r"s_(mov|mul|add|cmov)k_|s_cmpk_.._i32", name) and x.operands[1].value >> 15 & 1:
        x.operands[1].value |= (1 << 64) - (1 << 16)  # 16 bits with a sign
    if any(o.selected for o in x.operands):
        # The text names halves of registers, and op_sel says the same again.
        x.select_low = 0
        x.preserves = True
    if x.move:
        # A data-parallel primitive moves the first source: after the result, and after the carry.
        x.moved = 0 if name.startswith("v_cmpx") and x.operands[0].kind == VECTOR else 2 if x.operands[1].kind == SCALAR and "_co_" in name else 1
        x.row_mask, x.bank_mask = int(settings.get("row_mask", "0xf"), 0), int(settings.get("bank_mask", "0xf"), 0)
        x.zero_outside, x.fetch_inactive = "bound_ctrl" in settings, settings.get("fi") == "1"
    if full.endswith("_sdwa"):
        first = 2 if x.operands[1].kind == SCALAR and "_co_" in name else 1
        for i, key in ((0, "dst_sel"), (first, "src0_sel"), (first + 1, "src1_sel")):
            if key in settings:
                x.operands[i].selected = SELECTED[settings[key]]
        x.preserves = settings.get("dst_unused") == "UNUSED_PRESERVE"
        if settings.get("dst_unused") == "UNUSED_SEXT":
            raise Unknown("dst_unused:UNUSED_SEXT")
    if "atomic" in name:
        x.returns = any(m in ("glc", "sc0") or "TH_ATOMIC_RETURN" in m for m in modifiers)
    if packed and any(o.modifiers for o in x.operands):
        raise Unknown(text)
    if name.startswith("v_s_") and (any(o.modifiers for o in x.operands) or x.clamps or x.output_factor):
        raise Unknown(text)
    if name.startswith("v_mfma") and any(m.partition(":")[0] in ("cbsz", "abid", "blgp") for m in modifiers):
        raise Unknown(text)
    return x


def disassembled(path, processor):
    """{symbol: [(address, text, words of the encoding, target or None)]} of an object."""
    done = subprocess.run(["llvm-objdump-22", "-d", f"--mcpu={processor}", path], capture_output=True, text=True, check=True)
    kernels, lines, base = {}, None, 0
    for line in done.stdout.splitlines():
        if m := re.match(r"^([0-9a-f]+) <([^>]+)>:", line):
            if not re.match(r"\.?L\d|BB", m[2]):
                lines, base = kernels.setdefault(m[2], []), int(m[1], 16)
        elif lines is not None and (m := re.match(r"^\s+(\S.*?)\s*//\s*([0-9A-Fa-f]+):((?: [0-9A-Fa-f]{8})+)(.*)", line)):
            to = re.search(r"<[^>+]+(?:\+0x([0-9a-f]+))?>", m[4]) if "branch" in m[1] else None
            lines.append((int(m[2], 16), " ".join(m[1].split()), [int(w, 16) for w in m[3].split()], base + int(to[1] or "0", 16) if to else None))
    return kernels


def keeps_halves(processor):
    """Whether a load of 16 bits into half a register leaves the other half as it was. With SRAM ECC it does not (LLVM's AMDGPU user guide, "sramecc")."""
    return processor not in ("gfx906", "gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950", "gfx9-4-generic")


def decoded(lines, base, lookup, halves_stay=True):
    """An array of Instruction for a kernel. What is not known becomes an instruction without a function: {index: words} names those."""
    made, addresses, targets, unknown = [], {}, {}, {}
    for address, text, encoding, target in lines:
        addresses[address] = len(made)
        # Both halves of a dual instruction read their sources before either writes: see pair_conflicts().
        parts = [p.strip() for p in text.split("::")]
        for part in ordered(parts):
            try:
                x = decode(part, encoding, lookup)
                if "_d16" in part.partition(" ")[0]:
                    x.preserves = halves_stay
            except Unknown as e:
                x = Instruction()
                unknown[len(made)] = f"{e} in '{text}'"
            x.address = base + address
            if target is not None:
                targets[len(made)] = target
            made.append(x)
    for i, target in targets.items():
        made[i].target = addresses[target]
    return (Instruction * len(made))(*made), unknown


def ordered(parts):
    """The halves of a dual instruction so that the first does not write what the second reads. Where each does, none is right: Unknown."""
    if len(parts) == 1:
        return parts

    def results_and_sources(text):
        name, _, rest = text.partition(" ")
        operands = split(rest)
        reads = operands[1:] + (operands[:1] if "fmac" in name or "dot2" in name else [])
        return operands[0], {r.strip("-|") for r in reads}

    (first, first_reads), (second, second_reads) = map(results_and_sources, parts)
    if first not in second_reads:
        return parts
    if second in first_reads:
        raise Unknown(f"both halves of '{' :: '.join(parts)}' read what the other writes")
    return parts[::-1]
