"""What the registers of all threads of a workgroup hold, where that follows from the thread's number and constants.

A value is an array with one 32-bit number for each thread; scalar registers repeat theirs within a wave. Whatever depends
on memory, arguments or the workgroup's number is unknown and has no entry. Only the integer instructions that compute
addresses are known; every other one makes its results unknown.
"""
import functools
import re

import numpy as np

from machine_code import registers
from operations import HALVES, LOW_FROM_LOW, OPERATIONS, SHIFTS, bits, mul, operation_of, shift, truth_table

SELECTIONS = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8), "WORD_0": (0, 16), "WORD_1": (16, 16)}
# Scalar instructions whose condition code says that the result is not 0.
NOT_ZERO = ("s_and_b32", "s_or_b32", "s_xor_b32", "s_andn2_b32", "s_and_not1_b32", "s_not_b32", "s_lshl_b32", "s_lshr_b32", "s_ashr_i32", "s_bfe_u32", "s_bfe_i32")
COMPARISONS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "lg": np.not_equal}
# Instructions with a second result, which becomes unknown.
TWO_RESULTS = ("_co_", "div_scale", "mad_u64", "mad_i64", "mad_co", "swap")
# a * b + c with c and the result in pairs of registers. Compilers also compute 32-bit numbers so, and only the low half becomes known.
LOW_HALF = re.compile(r"v_mad(_co)?_(u64_u32|i64_i32)")
# Whole registers that compilers keep in a thread's own memory.
SPILLED = ("_b32", "_b64", "_b96", "_b128", "_dword", "_dwordx2", "_dwordx3", "_dwordx4")
NO_RESULT = ("s_cmp", "s_bitcmp", "s_barrier", "s_wait", "s_nop", "s_cbranch", "s_branch", "s_endpgm", "s_sleep", "s_setprio", "s_clause", "s_delay",
             "s_sendmsg", "s_inst_prefetch", "s_setreg", "s_sched", "s_dcache", "s_icache", "s_code_end", "s_set_gpr", "s_trap", "s_version",
             "global_wb", "global_inv", "buffer_gl", "buffer_wb", "buffer_inv")


@functools.cache
def has_two_results(name):
    return name.startswith("v_") and any(word in name for word in TWO_RESULTS)


class Machine:
    """The threads of a workgroup."""

    def __init__(self, threads, wave):
        self.threads, self.wave = threads, wave
        self.thread = np.arange(threads, dtype=np.uint32)
        self.wave_of = self.thread // wave
        self.lane = self.thread % np.uint32(wave)
        self.all = np.ones(threads, dtype=bool)
        self.constants = {}
        self.lanes_of = {}  # vector register -> the lanes that v_writelane_b32 has written in some state; their values are at (register, lane)

    def start(self):
        return {"v0": self.thread}

    def constant(self, operand):
        """The value of an operand that is a number, else None."""
        if operand not in self.constants:
            try:
                self.constants[operand] = np.full(self.threads, int(operand, 0) & 0xFFFFFFFF, dtype=np.uint32)
            except ValueError:
                self.constants[operand] = None
        return self.constants[operand]

    def value(self, values, operand):
        found = values.get(operand)
        return found if found is not None else self.constant(operand)

    def holds(self, values, part):
        """The threads for which a comparison holds, or None."""
        m = re.match(r"v_cmpx?_(lt|le|gt|ge|eq|ne|lg)_([ui])(16|32)", part.name)
        sources = part.operands[-2:]
        if not m or len(sources) < 2 or "_sdwa" in part.name:
            return None
        a, b = (self.value(values, s) for s in sources)
        if a is None or b is None:
            return None
        if m[2] == "i":
            a, b = a.astype(np.int32), b.astype(np.int32)
        if m[3] == "16":
            return None
        return COMPARISONS[m[1]](a, b)

    def condition(self, values, part):
        """The condition code after a scalar instruction, if all waves have the same; None if it is unknown."""
        if part.name in NOT_ZERO:
            result = self.result(values, part, {})
            return None if result is None else self.anywhere(result != 0)
        m = re.fullmatch(r"s_cmpk?_(lt|le|gt|ge|eq|lg)_([ui])32|s_bitcmp([01])_b32", part.name)
        if not m:
            return None
        a, b = (self.value(values, s) for s in part.operands)
        if a is None or b is None:
            return None
        if m[3]:
            found = (a >> shift(b)) & np.uint32(1) == int(m[3])
            return bool(found[0]) if np.all(found == found[0]) else None
        if part.name.startswith("s_cmpk") and m[2] == "i" and b[0] >> 15 & 1:
            b = b | np.uint32(0xFFFF0000)
        if m[2] == "i":
            a, b = a.astype(np.int32), b.astype(np.int32)
        found = COMPARISONS[m[1]](a, b)
        return bool(found[0]) if np.all(found == found[0]) else None

    def compare(self, values, masks, part, scc=None, full=False):
        """Keeps the masks that comparisons, selections by the condition code `scc` and logic on them produce. `full`: EXEC enables all threads. The entry REGISTER? has the
        threads for which a mask may be set that is not known exactly; REGISTER! says that EXEC was narrowed, so that threads which were off may be missing in the mask."""
        name, operands = part.name, part.operands
        if not operands or name.startswith("v_cmpx"):
            return
        mask, may, narrowed = None, None, not full
        if name.startswith("v_cmp"):
            mask = self.holds(values, part)
        elif name.startswith(("s_and_b", "s_andn2_b", "s_and_not1_b")) and len(operands) == 3:
            factors = [self.mask(masks, o, full) for o in operands[1:]]
            if not name.startswith("s_and_b") and factors[1] is not None:
                factors[1] = ~factors[1]
            known = [f for f in factors if f is not None]
            may = np.logical_and.reduce(known) if known else None
            if len(known) == 2 or may is not None and not may.any():
                mask, may = may, None
        elif name.startswith("s_cselect_b") and scc is not None:
            mask = self.mask(masks, operands[1 if scc else 2], full)
        elif name.startswith("s_mov_b"):
            mask = self.mask(masks, operands[1], full)
        if not name.startswith("v_cmp"):
            narrowed = any(o + "!" in masks or o.startswith("exec") and not full for o in operands[1:])
        for key, found in ((operands[0], mask), (operands[0] + "?", may), (operands[0] + "!", self.all if mask is not None and narrowed and mask.any() else None)):
            if found is not None:
                masks[key] = found
            else:
                masks.pop(key, None)

    def mask(self, masks, operand, full):
        if operand in ("-1", "0"):
            return self.all if operand == "-1" else ~self.all
        if operand.startswith("exec"):
            return self.all if full else None
        return masks.get(operand)

    def anywhere(self, mask):
        """Whether the mask has a thread, if that is the same for all waves; else None."""
        found = mask.reshape(-1, self.wave).any(axis=1)
        return bool(found[0]) if np.all(found == found[0]) else None

    def execute(self, values, part, masks):
        """Sets the results of one instruction (or half of one)."""
        name, operands = part.name, part.operands
        if not operands or name.startswith(NO_RESULT):
            return
        if name.startswith("v_writelane_b32"):
            self.write_lane(values, *operands)
            return
        if name.startswith("scratch_load"):
            self.reload(values, part)
            return
        half = re.fullmatch(r"v_(\w+_[ub]16)(_e32|_e64|_sdwa)?", name)
        if half and (operation := self.half_operation(half[1], part)):
            self.execute_half(values, part, operation)
            return
        result = self.result(values, part, masks)
        low = self.low_half(values, part) if result is None else None
        doomed = registers(operands[0])
        if len(operands) > 1 and has_two_results(name):
            doomed += registers(operands[1])
        for r in doomed:
            self.forget(values, r)
        if result is None and low is not None and len(doomed) == 1:
            values["low", operands[0]] = low
        if result is not None and len(registers(operands[0])) == 1:
            values[operands[0]] = result
        elif result is not None and LOW_HALF.match(name):
            values[registers(operands[0])[0]] = result

    def half(self, values, operand, selection="WORD_0"):
        """Bits of an operand; "v1.h" is the high half of v1. The entries ("low", "v1") and ("high", "v1") are of v1 if only a half is known."""
        first, width = SELECTIONS["WORD_1" if operand.endswith(".h") else selection]
        whole = self.value(values, re.sub(r"\.[lh]$", "", operand))
        if whole is None and (first % 16) + width <= 16:
            whole = values.get(("high" if first >= 16 else "low", re.sub(r"\.[lh]$", "", operand)))
            first %= 16
        return None if whole is None else (whole >> np.uint32(first)) & np.uint32((1 << width) - 1)

    def selected(self, values, part):
        """The sources of an instruction that selects bytes or halves (SDWA), each None if unknown. None if the result is not a whole register."""
        settings = dict(m.split(":", 1) for m in part.modifiers if ":" in m)
        if settings.get("dst_sel") != "DWORD":
            return None
        found = []
        for i, operand in enumerate(part.operands[1:]):
            selection = settings.get(f"src{i}_sel", "DWORD")
            signed = operand.startswith(("sext", "-", "|"))
            found.append(None if signed else self.value(values, operand) if selection == "DWORD" else self.half(values, operand, selection))
        return found

    def half_operation(self, name, part):
        if name == "bitop3_b16":
            table = next((int(m[7:], 0) for m in part.modifiers if m.startswith("bitop3:")), 0)
            return lambda a, b, c: truth_table(table, a, b, c)
        return HALVES.get(name)

    def low_half(self, values, part):
        """The low half of a result that is not known as a whole, or None."""
        operation, sources = operation_of(part.name), part.operands[1:]
        if part.modifiers or "_sdwa" in part.name or has_two_results(part.name) or not (operation in LOW_FROM_LOW or operation in SHIFTS):
            return None
        places = SHIFTS.get(operation)
        found = [self.value(values, o) if i == places else self.half(values, o) for i, o in enumerate(sources)]
        if any(f is None for f in found):
            return None
        try:
            return operation(*found) & np.uint32(0xFFFF)
        except TypeError:
            return None

    def forget(self, values, register):
        """Makes a register unknown."""
        for key in (register, ("low", register), ("high", register), *((register, lane) for lane in self.lanes_of.get(register, ()))):
            values.pop(key, None)

    def execute_half(self, values, part, operation):
        """Writes half a register. On CDNA the other half becomes 0, on RDNA it stays as it is."""
        target = re.sub(r"\.[lh]$", "", part.operands[0])
        if part.name.endswith("_sdwa"):
            sources = self.selected(values, part)
            sources = sources and [s if s is None else s & np.uint32(0xFFFF) for s in sources]
        else:
            # Where operands are named as halves, op_sel says the same again.
            odd = any(m.startswith(("row_", "quad_perm", "dpp", "clamp")) or m.startswith("op_sel") and not re.search(r"\.[lh]$", part.operands[0]) for m in part.modifiers)
            sources = None if odd else [self.half(values, o) for o in part.operands[1:]]
        result = None if sources is None or any(s is None for s in sources) else operation(*sources) & np.uint32(0xFFFF)
        names = ("low", "high")
        halves = {"low": self.half(values, target), "high": self.half(values, target, "WORD_1")}
        self.forget(values, target)
        halves["high" if part.operands[0].endswith(".h") else "low"] = result
        if self.wave == 64:  # of bitop3_b16 it is not documented
            halves["high"] = None if "bitop3" in part.name else np.zeros_like(self.thread)
        if all(halves[n] is not None for n in names):
            values[target] = halves["low"] | halves["high"] << np.uint32(16)
        else:
            values.update({(n, target): halves[n] for n in names if halves[n] is not None})

    def spill(self, values, part, full):
        """A store to a thread's own memory, where compilers keep registers. Only fixed addresses are known."""
        at, source, base = part.operands[:3]
        stores = self.spilled(part, source)
        if at != "off" or base != "off" or not part.name.endswith(SPILLED) or stores[0][0] % 4:
            for key in [k for k in values if k[0] == "scratch"]:
                del values[key]
            return
        for offset, register in stores:
            values.pop(("scratch", offset), None)
            # A narrowed EXEC leaves the other threads' memory as it was.
            if full and register in values:
                values["scratch", offset] = values[register]

    def reload(self, values, part):
        """A load from there."""
        target, at, base = part.operands[:3]
        for offset, register in self.spilled(part, target):
            self.forget(values, register)
            if at == base == "off" and part.name.endswith(SPILLED) and ("scratch", offset) in values:
                values[register] = values["scratch", offset]

    def spilled(self, part, names):
        first = next((int(m[7:], 0) for m in part.modifiers if m.startswith("offset:")), 0)
        return [(first + 4 * i, r) for i, r in enumerate(registers(names))]

    def write_lane(self, values, register, source, lane):
        """Compilers keep scalars in the lanes of a vector register."""
        for key in (register, ("low", register), ("high", register)):
            values.pop(key, None)
        self.lanes_of.setdefault(register, set()).add(lane)
        value = self.value(values, source)
        if value is None:
            values.pop((register, lane), None)
        else:
            values[register, lane] = value

    def result(self, values, part, masks):
        name, operands = part.name, part.operands
        if any(m.startswith(("row_", "quad_perm", "bound_ctrl", "clamp", "dpp8", "wave_")) for m in part.modifiers):
            return None
        sources = [self.value(values, o) for o in operands[1:]]
        if name.endswith("_sdwa"):
            sources = self.selected(values, part)
            if sources is None or operation_of(name) is None or has_two_results(name):
                return None
        if operation_of(name) is OPERATIONS["and"] and len(sources) == 2 and any(s is not None and s.max() <= 0xFFFF for s in sources):
            # A mask of the low half.
            sources = [s if s is not None else self.half(values, o) for s, o in zip(sources, operands[1:])]
        if name.startswith("v_cndmask_b32") and len(operands) == 4:
            mask = masks.get(operands[3])
            return np.where(mask, sources[1], sources[0]) if mask is not None and sources[0] is not None and sources[1] is not None else None
        if name.startswith("v_mbcnt_lo") and operands[1] == "-1" and sources[1] is not None:
            return np.minimum(self.lane, np.uint32(32)) + sources[1] if self.wave == 64 else self.lane + sources[1]
        if name.startswith("v_mbcnt_hi") and operands[1] == "-1" and sources[1] is not None:
            return np.maximum(self.lane, np.uint32(32)) - np.uint32(32) + sources[1]
        if name == "v_readfirstlane_b32" and sources[0] is not None:
            return np.repeat(sources[0].reshape(-1, self.wave)[:, 0], self.wave)
        if name.startswith("v_readlane_b32"):
            return values.get((operands[1], operands[2]))
        if name.startswith("s_movk_i32") or name.startswith("s_mov_b32"):
            return sources[0]
        if name in ("s_addk_i32", "s_addk_co_i32", "s_mulk_i32"):  # with a 16-bit constant
            operation = OPERATIONS["mul" if "mulk" in name else "add"]
            return None if values.get(operands[0]) is None else operation(values[operands[0]], sources[0])
        if name.startswith("s_bfe_u32") and sources[0] is not None and sources[1] is not None:
            return bits(sources[0], sources[1] & np.uint32(31), (sources[1] >> np.uint32(16)) & np.uint32(127))
        if name.startswith(("v_bitop3_b32", "v_dual_bitop2_b32")):
            if any(s is None for s in sources):
                return None
            table = next((int(m[7:], 0) for m in part.modifiers if m.startswith("bitop3:")), 0)
            return truth_table(table, *sources, *[np.zeros_like(sources[0])] * (3 - len(sources)))
        if LOW_HALF.match(name):
            sources = [self.value(values, registers(o)[0] if registers(o) else o) for o in operands[2:]]
            return None if any(s is None for s in sources) else mul(sources[0], sources[1]) + sources[2]
        # A carry that is added: only the plain sum is known.
        if "_co_ci_" in name or "addc" in name or "subb" in name:
            return None
        if "_co_" in name:
            # Vector instructions write their carry to a register, scalar ones (RDNA 4's names) to the condition code.
            name, sources = name.replace("_co_", "_"), sources[1:] if name.startswith("v_") else sources
        operation = operation_of(name)
        if operation is None or any(s is None for s in sources):
            return None
        try:
            return operation(*sources)
        except TypeError:
            return None
