"""The rules: what the code of one kernel must do on hardware that an emulator of single instructions does not show.

- wait: a register that a load is still to write is neither read nor written before the wait for it.
- barrier: all accesses to LDS have been waited for when a wave arrives at a barrier.
- race: two waves do not access the same byte of LDS between two barriers if one of them writes it.
- exec: no lane is switched off at a matrix instruction.
- release: global stores have been waited for when an atomic publishes them (kernels whose last workgroup joins parts).
- resources: the registers that occur are those that the metadata states, and these fit into the processor's limits.

The code is followed along all paths. A state is what is known of registers (values.py), the loads that are under way, the
accesses to LDS since the last barrier, and whether EXEC is full. States that meet at an instruction are joined after a
few visits, so loops end.
"""
import functools
import re

import numpy as np

from machine_code import registers
from values import Machine

# Distinct states at one instruction before they are joined; two are needed for buffers that alternate.
MOST_STATES = 6
# More of them, in which registers that have another value each time (such as a loop's counter) are unknown.
FORGETFUL_STATES = 4
OLDEST = 64  # no counter is larger
# A kernel in which a race was found is looked at again with its loops followed turn by turn, as far as their numbers of turns are known. This is the most
# steps of that; kernels that need more keep what was found first. A branch over code for which no lane is on is not followed then: waves that skip the
# code access less.
MOST_STEPS = 200000
LAST_STATES = 4
# Scalar instructions that leave the condition code as it is.
KEEP_SCC = ("s_mov", "s_cmov", "s_cselect", "s_load", "s_buffer", "s_barrier", "s_wait", "s_nop", "s_branch", "s_cbranch", "s_endpgm", "s_sendmsg", "s_set", "s_sleep", "s_clause", "s_delay", "s_mul",
            "s_brev", "s_bitset", "s_getpc", "s_inst", "s_dcache", "s_icache", "s_pack", "s_bfm", "s_ff", "s_ctz", "s_flbit", "s_clz", "s_sext", "s_cvt", "s_code_end")
WIDTHS = {"u8": 1, "i8": 1, "b8": 1, "u16": 2, "i16": 2, "b16": 2, "b32": 4, "u32": 4, "i32": 4, "f32": 4, "b64": 8, "u64": 8, "f64": 8, "b96": 12, "b128": 16}
MEMORY = ("s_load", "s_buffer_load", "ds_", "global_", "buffer_", "flat_", "scratch_")
NO_MEMORY = ("ds_bpermute", "ds_permute", "ds_swizzle", "ds_nop")
MATRIX = ("v_mfma", "v_wmma", "v_smfmac", "v_swmmac")
STORES = ("global_store", "buffer_store", "flat_store", "scratch_store")


def generation(processor):
    """9, 10, 11 or 12: the number before the two digits of version and stepping, or before the word generic."""
    return int(re.match(r"gfx(\d+?)(?:-.*|[0-9a-f]{2})$", processor)[1])


class Counters:
    """The counter of each kind of memory operation, by generation: which wait ends which."""

    def __init__(self, gen):
        self.gen = gen
        if gen < 10:
            self.kinds = {"vmcnt": ("load", "store"), "lgkmcnt": ("lds", "scalar")}
        elif gen < 12:
            self.kinds = {"vmcnt": ("load",), "vscnt": ("store",), "lgkmcnt": ("lds", "scalar")}
        else:
            self.kinds = {"loadcnt": ("load",), "storecnt": ("store",), "dscnt": ("lds",), "kmcnt": ("scalar",)}
        # Before gfx10, loads and stores are in one order.
        self.together = {"load": ("load", "store"), "store": ("load", "store")} if gen < 10 else {}

    def waits(self, x):
        """{counter: most operations that may remain} of a wait."""
        if x.name == "s_wait_idle":
            return dict.fromkeys(self.kinds, 0)
        if x.name == "s_waitcnt":
            if found := re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", x.text):
                return {c: int(n) for c, n in found}
            return {c: 0 for c in ("vmcnt", "lgkmcnt")} if x.operands == ["0"] else {}
        number = int(x.operands[-1], 0) if x.operands and re.fullmatch(r"(0x)?[0-9a-f]+", x.operands[-1]) else None
        if number is None:
            return {}
        if m := re.fullmatch(r"s_waitcnt_(vmcnt|vscnt|lgkmcnt)", x.name):
            return {m[1]: number}
        if m := re.fullmatch(r"s_wait_(load|store)cnt_dscnt", x.name):
            return {m[1] + "cnt": number >> 8, "dscnt": number & 63}
        if m := re.fullmatch(r"s_wait_(loadcnt|storecnt|dscnt|kmcnt)", x.name):
            return {m[1]: number}
        return {}


def kind_of(x):
    """The kind of memory operation of an instruction, and whether it returns something: (kind, returns) or None."""
    name = x.name
    if not name.startswith(MEMORY):
        return None
    if name.startswith(("s_load", "s_buffer_load")):
        return "scalar", True
    if name.startswith("ds_"):
        return "lds", name.startswith(("ds_read", "ds_load") + NO_MEMORY) or "_rtn" in name
    if name.startswith(("global_load", "buffer_load", "flat_load", "scratch_load")):
        return "load", True
    if name.startswith(STORES):
        return "store", False
    if name.startswith(("global_atomic", "flat_atomic", "buffer_atomic")):
        returns = any(m in ("glc", "sc0") or "TH_ATOMIC_RETURN" in m for m in x.modifiers)
        return ("load" if returns else "store"), returns
    return None


def lds_access(x):
    """(is a write, [(offset, bytes)]) of an instruction that accesses LDS memory, else None."""
    if not x.name.startswith("ds_") or x.name.startswith(NO_MEMORY):
        return None
    reads = x.name.startswith(("ds_read", "ds_load"))
    width = next((WIDTHS[w] for w in x.name.split("_") if w in WIDTHS), 16)
    settings = dict(m.split(":") for m in x.modifiers if ":" in m)
    if re.search(r"(read|write|load|store)_?2|2addr", x.name):
        unit = width * (64 if "st64" in x.name or "stride64" in x.name else 1)
        return not reads, [(int(settings.get(o, "0"), 0) * unit, width) for o in ("offset0", "offset1")]
    return not reads, [(int(settings.get("offset", "0"), 0), width)]


def address_operand(x):
    """The register with the address of an access to LDS."""
    return x.operands[1] if kind_of(x)[1] else x.operands[0]


class Facts:
    """What the rules ask about one instruction."""

    def __init__(self, x, counters):
        name = x.name
        self.waits = counters.waits(x) if name.startswith(("s_wait_", "s_waitcnt")) else None
        self.kind, self.access = kind_of(x), lds_access(x)
        self.is_matrix = name.startswith(MATRIX)
        self.arrives = name.startswith("s_barrier") and name != "s_barrier_wait"
        self.passes = name in ("s_barrier", "s_barrier_wait")
        self.sets_scc = name.startswith("s_") and not name.startswith(KEEP_SCC)
        self.sets_exec = "exec" in x.text or name.startswith("v_cmpx")


class State:
    """What holds before an instruction on some path."""

    def __init__(self, values, lanes):
        self.values = values
        self.masks = {}  # scalar register or vcc -> the threads for which a comparison holds
        self.lanes = lanes  # the threads that EXEC may enable
        self.pending = {}  # (kind, register or "write" or "read") -> number of later operations of the kind
        self.accesses = {}  # (index of an access to LDS since the last barrier, turn) -> its addresses, or None
        self.full = True  # EXEC enables all threads
        self.saved = {}  # scalar register -> (full, lanes) of the EXEC that it holds
        self.scc = None  # the condition code, if it is known
        self.narrow = frozenset()  # registers that were written while EXEC was narrowed

    def copy(self):
        other = State(dict(self.values), self.lanes)
        other.masks = dict(self.masks)
        other.pending, other.accesses, other.full = dict(self.pending), dict(self.accesses), self.full
        other.saved, other.narrow, other.scc = dict(self.saved), self.narrow, self.scc
        return other

    def within(self, other):
        """Whether `other` allows everything that this state does."""
        return (self.full >= other.full and other.scc in (None, self.scc) and self.narrow <= other.narrow and not np.any(self.lanes & ~other.lanes)
                and all(same(self.masks.get(r), m) for r, m in other.masks.items())
                and all(same(self.values.get(r), v) for r, v in other.values.items())
                and all(other.pending.get(k, OLDEST + 1) <= age for k, age in self.pending.items())
                and all(i in other.accesses and covers(other.accesses[i], a) for i, a in self.accesses.items())
                and all(r in self.saved and self.saved[r][0] >= full and not np.any(self.saved[r][1] & ~lanes) for r, (full, lanes) in other.saved.items()))

    def forget_what_counts(self, others):
        """Makes registers unknown that have more than two values in these states."""
        for r, v in list(self.values.items()):
            found = {v.tobytes()}
            found |= {o.values[r].tobytes() for o in others if r in o.values}
            if len(found) > 2:
                del self.values[r]

    def join(self, other):
        self.values = {r: v for r, v in self.values.items() if same(v, other.values.get(r))}
        for k, age in other.pending.items():
            self.pending[k] = min(age, self.pending.get(k, OLDEST))
        for i, a in other.accesses.items():
            self.accesses[i] = a if i not in self.accesses else merged(a, self.accesses[i])
        self.masks = {r: m for r, m in self.masks.items() if same(m, other.masks.get(r))}
        self.full &= other.full
        self.scc = self.scc if self.scc == other.scc else None
        self.lanes = self.lanes | other.lanes
        self.saved = {r: (s[0] and other.saved[r][0], s[1] | other.saved[r][1]) for r, s in self.saved.items() if r in other.saved}
        self.narrow |= other.narrow


def same(a, b):
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


# An access is (addresses or None, the threads that may do it).


def covers(a, b):
    return (a[0] is None or same(a[0], b[0])) and not np.any(b[1] & ~a[1])


def merged(a, b):
    return (a[0] if same(a[0], b[0]) else None, a[1] | b[1])


class Checker:
    def __init__(self, code, processor, threads, lds_bytes=1 << 18, follows_loops=False):
        self.code, self.processor = code, processor
        self.counters = Counters(generation(processor))
        self.facts = [Facts(x, self.counters) for x in code]
        wave = 64 if self.counters.gen == 9 else 32
        threads = -(-threads // wave) * wave
        self.machine, self.lds_bytes = Machine(threads, wave), lds_bytes
        self.faults = {}  # (rule, address) -> words
        self.conflicts = {}  # pairs of accesses that were compared
        self.follows_loops = follows_loops

    def fault(self, rule, i, words):
        x = self.code[i]
        self.faults.setdefault((rule, x.address), f"{rule} at {x.address - self.code[0].address:#x} ({x.text}): {words}")

    def run(self):
        """Words for each fault, or None if loops were to be followed for too long."""
        steps = 0
        leaders = {0} | {n for i, x in enumerate(self.code) for n in x.next if n != i + 1 or len(x.next) > 1}
        seen, work = {}, [(0, State(self.machine.start(), self.machine.all))]
        while work:
            i, state = work.pop()
            while True:
                if i in leaders:
                    known = seen.setdefault(i, [])
                    if any(state.within(k) for k in (known[-LAST_STATES:] if self.follows_loops else known)):
                        break
                    if len(known) >= MOST_STATES and not self.follows_loops:
                        state.forget_what_counts(known)
                        if any(state.within(k) for k in known):
                            break
                    if len(known) >= MOST_STATES + FORGETFUL_STATES and not self.follows_loops:
                        joined = known[-1].copy()
                        joined.join(state)
                        state = joined
                        if len(known) >= 2 * MOST_STATES + FORGETFUL_STATES:
                            known.pop()
                    known.append(state.copy())
                self.step(i, state)
                steps += 1
                if self.follows_loops and steps > MOST_STEPS:
                    return None
                following = self.successors(i, state)
                if not following:
                    break
                work += [(n, state.copy()) for n in following[1:]]
                i = following[0]
        return sorted(self.faults.values())

    def successors(self, i, state):
        x = self.code[i]
        if not self.follows_loops or len(x.next) < 2:
            return x.next
        taken, not_taken = x.next[:1], x.next[1:]
        if x.name in ("s_cbranch_scc0", "s_cbranch_scc1") and state.scc is not None:
            return taken if state.scc == (x.name == "s_cbranch_scc1") else not_taken
        if x.name in ("s_cbranch_vccz", "s_cbranch_vccnz"):
            name = "vcc" if self.machine.wave == 64 else "vcc_lo"
            mask = None if name + "!" in state.masks else state.masks.get(name)
            found = None if mask is None else self.machine.anywhere(mask)
            if found is not None:
                return taken if found == (x.name == "s_cbranch_vccnz") else not_taken
        return not_taken if x.name == "s_cbranch_execz" else x.next

    # --- one instruction

    def step(self, i, state):
        x, facts = self.code[i], self.facts[i]
        if facts.waits is not None:
            for counter, most in facts.waits.items():
                self.wait(state, counter, most)
            return
        kind = facts.kind
        if state.pending:
            self.check_registers(i, x, kind, state)
        if facts.is_matrix and not state.full:
            self.fault("exec", i, "some lanes may be switched off")
        if facts.arrives:
            for what in ("write", "read"):
                if ("lds", what) in state.pending:
                    self.fault("barrier", i, f"an LDS {what} was not waited for")
        if facts.passes:
            state.accesses.clear()
        if kind:
            self.memory(i, x, kind, state)
        if self.follows_loops and facts.sets_scc:
            state.scc = self.machine.condition(state.values, x)
        if facts.sets_exec:
            self.follow_exec(x, state)
        elif x.operands and x.operands[0] in state.saved:
            del state.saved[x.operands[0]]
        if kind and not kind[1]:
            if x.name.startswith("scratch_store"):
                self.machine.spill(state.values, x, state.full)
            return
        for part in x.parts:
            self.machine.compare(state.values, state.masks, part, state.scc, state.full)
            self.machine.execute(state.values, part, state.masks)
            if not state.full and part.name.startswith(("v_", "scratch_load")) and part.operands:
                state.narrow |= frozenset((part.operands[0],))

    def wait(self, state, counter, most):
        for kind in self.counters.kinds.get(counter, ()):
            # Scalar loads return in any order.
            done = [k for k, age in state.pending.items() if k[0] == kind and (most == 0 or (kind != "scalar" and age >= most))]
            for k in done:
                del state.pending[k]

    def check_registers(self, i, x, kind, state):
        own = set()
        if kind and kind[1]:
            own = set(registers(x.operands[0]))
        for k in [k for k in state.pending if k[1] in x.registers]:
            # Loads of one kind write registers in their order, so a later one may overwrite the result. On RDNA 4 this
            # holds for LDS only.
            ordered = k[0] == "lds" or k[0] == "load" and self.counters.gen < 12
            if k[1] in own and k[0] == kind[0] and ordered and all(k[1] not in registers(o) for o in x.operands[1:]):
                continue
            self.fault("wait", i, f"{k[1]} is still to be written by a {k[0]} operation")
            del state.pending[k]

    def memory(self, i, x, kind, state):
        group = self.counters.together.get(kind[0], (kind[0],))
        for k, age in state.pending.items():
            if k[0] in group:
                state.pending[k] = min(age + 1, OLDEST)
        if kind[1]:
            for r in registers(x.operands[0]):
                state.pending[(kind[0], r)] = 0
        elif kind[0] == "store":
            state.pending[("store", "write")] = 0
        access = self.facts[i].access
        if access:
            state.pending[("lds", "write" if access[0] else "read")] = 0
            self.access(i, x, access, state)

    # --- LDS

    def access(self, i, x, access, state):
        own = (state.values.get(address_operand(x)), state.lanes)
        if self.machine.threads > self.machine.wave:
            for (other, _), theirs in state.accesses.items():
                their_access = self.facts[other].access
                if (access[0] or their_access[0]) and self.conflict(i, own, access, other, theirs, their_access):
                    self.fault("race", i, f"another wave may access the same LDS at {self.code[other].address - self.code[0].address:#x} ({self.code[other].text})")
            # Turns of a loop whose addresses are known are kept apart if the loop is followed.
            key = (i, own[0].tobytes() if self.follows_loops and own[0] is not None else None)
            state.accesses[key] = own if key not in state.accesses else merged(own, state.accesses[key])

    def conflict(self, i, own, access, other, theirs, their_access):
        if own[0] is None or theirs[0] is None:
            return True
        key = (i, other, *(part.tobytes() for part in own + theirs))
        if key not in self.conflicts:
            atomic = [not self.code[n].name.startswith(("ds_read", "ds_load", "ds_write", "ds_store")) for n in (i, other)]
            self.conflicts[key] = not all(atomic) and self.overlap(own, access[1], theirs, their_access[1])
        return self.conflicts[key]

    def overlap(self, own, parts, theirs, their_parts):
        """Whether a byte is accessed by different waves."""
        (at, waves), (other_at, other_waves) = self.bytes_of(own, parts), self.bytes_of(theirs, their_parts)
        if not at.size or not other_at.size:
            return False
        size = int(max(at.max(), other_at.max())) + 1
        # The first and the last wave of `own` for each byte.
        first, last = np.full(size, -1, dtype=np.int32), np.full(size, -1, dtype=np.int32)
        last[at], first[at[::-1]] = waves, waves[::-1]
        before, after = first[other_at], last[other_at]
        return bool(np.any((before >= 0) & ((before != other_waves) | (after != other_waves))))

    def bytes_of(self, access, parts):
        """The bytes that threads access, in the order of the threads, and the wave of each."""
        offsets = np.concatenate([np.arange(offset, offset + width) for offset, width in parts])
        base, waves = access[0][access[1]].astype(np.int64), self.machine.wave_of[access[1]].astype(np.int32)
        return ((base[:, None] + offsets) % self.lds_bytes).ravel(), np.repeat(waves, len(offsets))

    # --- EXEC

    def follow_exec(self, x, state):
        before = (state.full, state.lanes)
        everything = self.machine.all

        def of(operand):
            """What EXEC would be if it were the operand."""
            if operand.startswith("exec"):
                return before
            if operand == "-1":
                return True, everything
            return state.saved.get(operand, (False, state.masks.get(operand, state.masks.get(operand + "?", everything))))

        name, o = x.name, x.operands
        now = before
        if name.startswith("v_cmpx"):
            holds = self.machine.holds(state.values, x)
            now = (False, state.lanes & holds if holds is not None else state.lanes)
        elif "saveexec" in name:
            other = of(o[1])
            if name.startswith("s_or_saveexec"):
                now = (before[0] or other[0], before[1] | other[1])
            else:
                now = (False, before[1] & other[1] if name.startswith("s_and_saveexec") else before[1])
            state.saved[o[0]] = before
        elif o and o[0].startswith("exec"):
            if name.startswith("s_mov"):
                now = of(o[1])
            elif name.startswith("s_or_"):
                now = (any(of(s)[0] for s in o[1:]), of(o[1])[1] | of(o[2])[1])
            elif name.startswith("s_and_b"):
                now = (False, of(o[1])[1] & of(o[2])[1])
            elif name.startswith("s_xor"):
                now = (False, of(o[1])[1] | of(o[2])[1])
            else:
                now = (False, before[1])
        elif o and name.startswith("s_mov") and o[1].startswith("exec"):
            state.saved[o[0]] = before
        elif o and name.startswith("s_xor") and any(s.startswith("exec") for s in o[1:]):
            # exec ^ mask: together with the narrowed EXEC these are the lanes from before.
            state.saved[o[0]] = of(next((s for s in o[1:] if not s.startswith("exec")), o[1]))
        state.full, state.lanes = now
        if state.full and not before[0]:
            for r in (name for r in state.narrow for name in registers(r)):
                for key in (r, ("low", r), ("high", r)):
                    state.values.pop(key, None)
            state.narrow = frozenset()


REGISTER = re.compile(r"\b([va])(?:(\d+)\b|\[\d+:(\d+)\])")


def resource_faults(texts, meta, limits):
    """`texts`: all instructions. `limits`: {"registers", "lds_bytes"} of the processor."""
    faults = []
    highest = {"v": -1, "a": -1}
    for kind, one, last in REGISTER.findall("\n".join(texts)):
        highest[kind] = max(highest[kind], int(one or last))
    total = int(meta.get("vgpr_count", 0))
    accumulators = int(meta.get("agpr_count", 0) or 0)
    # The count includes accumulation registers.
    if highest["v"] >= total or highest["a"] >= max(accumulators, 1) and highest["a"] >= 0:
        faults.append(f"resources: uses v{highest['v']} and a{highest['a']}, the metadata states {total} and {accumulators}")
    if total > limits["registers"]:
        faults.append(f"resources: {total} vector registers of {limits['registers']}")
    if int(meta.get("group_segment_fixed_size", 0)) > limits["lds_bytes"]:
        faults.append(f"resources: {meta['group_segment_fixed_size']} bytes of LDS of {limits['lds_bytes']}")
    return faults


def check_kernel(code, processor, threads, meta=None, limits=None):
    """Words for each fault of one kernel."""
    faults = Checker(code, processor, threads).run()
    if any(f.startswith("race") for f in faults):
        # Addresses that count were unknown: with the loops turn by turn they are known.
        exact = Checker(code, processor, threads, follows_loops=True).run()
        if exact is not None:
            faults = [f for f in faults if not f.startswith("race")] + [f for f in exact if f.startswith("race")]
    return faults + (resource_faults([x.text for x in code], meta, limits) if meta and limits else [])
