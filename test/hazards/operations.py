"""What the instructions that compute addresses do, on arrays with one 32-bit number for each thread."""
import functools

import numpy as np

MASK = np.uint64(0xFFFFFFFF)


def u64(x):
    return x.astype(np.uint64)


def low(x):
    return (x & MASK).astype(np.uint32)


def shift(x):
    return x & np.uint32(31)


def bits(x, offset, width):
    return (x >> shift(offset)) & ((np.uint32(1) << (width & np.uint32(31))) - np.uint32(1))


def signed_bits(x, offset, width):
    unused = np.uint32(32) - (width & np.uint32(31))
    return (bits(x, offset, width) << unused).astype(np.int32).__rshift__(unused.astype(np.int32)).astype(np.uint32)


def signed24(x):
    return (x << np.uint32(8)).astype(np.int32).astype(np.int64) >> 8


def mul24(a, b):
    return low(u64(a & np.uint32(0xFFFFFF)) * u64(b & np.uint32(0xFFFFFF)))


def mul(a, b):
    return low(u64(a) * u64(b))


def mul_high(a, b):
    return (u64(a) * u64(b) >> np.uint64(32)).astype(np.uint32)


def mul_signed24(a, b):
    return (signed24(a) * signed24(b)).astype(np.uint32)


def ashr(count, x):
    return (x.astype(np.int32) >> shift(count).astype(np.int32)).astype(np.uint32)


def bfi(mask, a, b):
    return (mask & a) | (~mask & b)


def reverse(x):
    result = np.zeros_like(x)
    for i in range(32):
        result |= ((x >> np.uint32(i)) & np.uint32(1)) << np.uint32(31 - i)
    return result


def truth_table(table, a, b, c):
    """v_bitop3_b32: bit 4a + 2b + c of the table for each bit of the operands."""
    result = np.zeros_like(a)
    for i in range(8):
        if table >> i & 1:
            result |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return result


def align_bit(a, b, count):
    return low((u64(a) << np.uint64(32) | u64(b)) >> u64(shift(count)))


# By name without its type and encoding suffixes. Operands are in the order of the assembly.
OPERATIONS = {
    "mov": lambda a: a,
    "accvgpr_read": lambda a: a,
    "accvgpr_write": lambda a: a,
    "accvgpr_mov": lambda a: a,
    "not": lambda a: ~a,
    "add": lambda a, b: a + b,
    "add_nc": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "sub_nc": lambda a, b: a - b,
    "subrev": lambda a, b: b - a,
    "subrev_nc": lambda a, b: b - a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "and_not1": lambda a, b: a & ~b,
    "lshl": lambda a, b: a << shift(b),
    "lshr": lambda a, b: a >> shift(b),
    "lshlrev": lambda a, b: b << shift(a),
    "lshrrev": lambda a, b: b >> shift(a),
    "ashrrev": ashr,
    "ashr": lambda a, b: ashr(b, a),
    "mul_u32_u24": mul24,
    "mul_i32_i24": mul_signed24,
    "mul_lo": mul,
    "mul": mul,
    "mul_hi": mul_high,
    "mad": lambda a, b, c: mul(a, b) + c,
    "mad_u32_u24": lambda a, b, c: mul24(a, b) + c,
    "mad_i32_i24": lambda a, b, c: mul_signed24(a, b) + c,
    "lshl_add": lambda a, b, c: (a << shift(b)) + c,
    "add_lshl": lambda a, b, c: (a + b) << shift(c),
    "lshl_or": lambda a, b, c: (a << shift(b)) | c,
    "and_or": lambda a, b, c: (a & b) | c,
    "or3": lambda a, b, c: a | b | c,
    "xor3": lambda a, b, c: a ^ b ^ c,
    "add3": lambda a, b, c: a + b + c,
    "xad": lambda a, b, c: (a ^ b) + c,
    "bfe_u": bits,
    "bfe_signed": signed_bits,
    "bfi": bfi,
    "bfrev": reverse,
    "brev": reverse,
    "alignbit": align_bit,
    "min": np.minimum,
    "max": np.maximum,
    "min_signed": lambda a, b: np.minimum(a.astype(np.int32), b.astype(np.int32)).astype(np.uint32),
    "max_signed": lambda a, b: np.maximum(a.astype(np.int32), b.astype(np.int32)).astype(np.uint32),
    "lshl1_add": lambda a, b: (a << np.uint32(1)) + b,
    "lshl2_add": lambda a, b: (a << np.uint32(2)) + b,
    "lshl3_add": lambda a, b: (a << np.uint32(3)) + b,
    "lshl4_add": lambda a, b: (a << np.uint32(4)) + b,
}
# Of halves of registers, as numbers below 65536.
HALVES = {
    "mov_b16": lambda a: a,
    "add_u16": lambda a, b: a + b,
    "add_nc_u16": lambda a, b: a + b,
    "sub_u16": lambda a, b: a - b,
    "sub_nc_u16": lambda a, b: a - b,
    "subrev_u16": lambda a, b: b - a,
    "mul_lo_u16": mul,
    "lshlrev_b16": lambda a, b: b << (a & np.uint32(15)),
    "lshrrev_b16": lambda a, b: b >> (a & np.uint32(15)),
    "and_b16": lambda a, b: a & b,
    "or_b16": lambda a, b: a | b,
    "xor_b16": lambda a, b: a ^ b,
    "min_u16": np.minimum,
    "max_u16": np.maximum,
}
# Operations whose low half depends on the low halves of the operands alone (for shifts, if the number of places is known).
LOW_FROM_LOW = {OPERATIONS[n] for n in ("mov", "not", "add", "sub", "subrev", "and", "or", "xor", "mul", "mul_u32_u24", "mad", "mad_u32_u24", "and_or", "or3", "xor3", "add3", "xad", "bfi")}
LOW_FROM_LOW |= {OPERATIONS[n] for n in ("add_nc", "sub_nc", "subrev_nc", "mul_lo")}
SHIFTS = {OPERATIONS["lshl"]: 1, OPERATIONS["lshlrev"]: 0, OPERATIONS["lshl_add"]: 1, OPERATIONS["add_lshl"]: 2, OPERATIONS["lshl_or"]: 1}  # which operand is the number of places
PLAIN = {"bfe_u32": "bfe_u", "bfe_i32": "bfe_signed", "mul_u32_u24": "mul_u32_u24", "mul_i32_i24": "mul_i32_i24", "mad_u32_u24": "mad_u32_u24", "mad_i32_i24": "mad_i32_i24",
         "min_i32": "min_signed", "max_i32": "max_signed", "mul_hi_u32": "mul_hi", "mul_lo_u32": "mul_lo", "mad_u32": "mad"}
# Suffixes of types for which the operations above are right.
TYPES = ("_u32", "_i32", "_b32")


@functools.cache
def operation_of(name):
    """The entry of OPERATIONS, or None."""
    kind, _, rest = name.partition("_")
    if kind == "v" and rest.startswith("dual_"):
        rest = rest[5:]
    elif kind not in ("v", "s"):
        return None
    for suffix in ("_e32", "_e64", "_sdwa"):
        rest = rest.removesuffix(suffix)
    if rest in PLAIN:
        return OPERATIONS[PLAIN[rest]]
    for suffix in TYPES:
        if rest.endswith(suffix):
            return OPERATIONS.get(rest[: -len(suffix)])
    return None
