"""The machine code of an AMD code object, as llvm-objdump disassembles it: instructions with their operands and successors,
and the resources that its metadata states."""
import functools
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "emulation"))
import code_object


class Instruction:
    """One instruction. A dual-issue instruction of RDNA 3 has two `parts`; any other one has itself as its only part."""

    def __init__(self, address, text, target=None):
        self.address, self.text, self.target = address, text, target
        self.parts = [Part(t.strip()) for t in text.split("::")]
        # Both parts read their sources before either writes its result, so a part that reads the other's result comes first.
        if len(self.parts) == 2 and self.parts[0].operands[0] in self.parts[1].operands[1:]:
            self.parts.reverse()
        self.name, self.operands, self.modifiers = self.parts[0].name, self.parts[0].operands, self.parts[0].modifiers
        self.registers = frozenset(r for p in self.parts for o in p.operands for r in registers(o)) | implicit(self.name)
        self.next = []  # indices of successors


class Part:
    def __init__(self, text):
        self.name, _, rest = text.partition(" ")
        operands = [o.strip() for o in re.split(r",(?![^\[]*\])", rest)] if rest else []
        # Modifiers follow the last operand: "v1, v[2:3], off offset:16 sc1".
        self.modifiers = []
        if operands:
            first, *self.modifiers = operands[-1].split()
            operands[-1] = first
        self.operands = operands


def implicit(name):
    if name.startswith("s_cbranch_vcc"):
        return frozenset(("vcc_lo", "vcc_hi"))
    return frozenset()


@functools.cache
def registers(operand):
    """The names of the registers that an operand mentions: v1, a2, s3, vcc_lo, exec_lo, m0 ..."""
    operand = operand.strip("-|").removeprefix("abs(").rstrip(")")
    operand = re.sub(r"\.[lh]$", "", operand)
    if m := re.fullmatch(r"(v|a|s|ttmp)(\d+)", operand):
        return (operand,)
    if m := re.fullmatch(r"(v|a|s|ttmp)\[(\d+):(\d+)\]", operand):
        return tuple(f"{m[1]}{i}" for i in range(int(m[2]), int(m[3]) + 1))
    if operand in ("vcc", "exec"):
        return (operand + "_lo", operand + "_hi")
    if operand in ("vcc_lo", "vcc_hi", "exec_lo", "exec_hi", "m0"):
        return (operand,)
    return ()


def disassembled(paths, processor):
    """{path: [(address, text, address of the branch's target or None)] by kernel} of code objects for one processor."""
    done = subprocess.run(["llvm-objdump-22", "-d", f"--mcpu={processor}", *paths], capture_output=True, text=True, check=True)
    found, lines, base = {}, None, 0
    for line in done.stdout.splitlines():
        if m := FILE.match(line):
            kernels, lines = found.setdefault(m[1], {}), None
        elif m := SYMBOL.match(line):
            if not LABEL.match(m[2]):
                lines, base = kernels.setdefault(m[2], []), int(m[1], 16)
        elif lines is not None and (m := LINE.match(line)):
            to = TARGET.search(m[3]) if "branch" in m[1] else None
            lines.append((int(m[2], 16), " ".join(m[1].split()), base + int(to[1] or "0", 16) if to else None))
    return {path: {kernel: trimmed(lines) for kernel, lines in kernels.items()} for path, kernels in found.items()}


def trimmed(lines):
    """The lines without the padding behind the code."""
    last = max((i for i, (_, text, _) in enumerate(lines) if not text.startswith(("s_code_end", "s_nop 0"))), default=len(lines) - 1)
    return lines[: last + 1]


FILE = re.compile(r"^(\S.*):\s+file format ")
SYMBOL = re.compile(r"^([0-9a-f]+) <([^>]+)>:")
LABEL = re.compile(r"\.?L\d|BB")
LINE = re.compile(r"^\s+(\S.*?)\s*//\s*([0-9A-Fa-f]+):(.*)")
TARGET = re.compile(r"<[^>+]+(?:\+0x([0-9a-f]+))?>")


def instructions(lines):
    return link([Instruction(*line) for line in lines])


def disassemble(path, processor):
    """{kernel: [Instruction]}"""
    return {kernel: instructions(lines) for kernel, lines in disassembled([path], processor)[path].items()}


def link(code):
    """Sets the successors."""
    index = {x.address: i for i, x in enumerate(code)}
    for i, x in enumerate(code):
        x.next = []
        if x.name == "s_endpgm":
            continue
        if x.target is not None:
            if x.target not in index:
                raise ValueError(f"{x.text}: leaves its kernel")
            x.next.append(index[x.target])
        if x.name != "s_branch" and i + 1 < len(code):
            x.next.append(i + 1)
    return code


def notes(path):
    """(processor, {kernel: {key: number}}) from the metadata, such as vgpr_count and group_segment_fixed_size."""
    with open(path, "rb") as f:
        document = code_object.document(f.read())
    kernels = {k[".name"]: {key[1:]: value for key, value in k.items()} for k in document["amdhsa.kernels"]}
    return re.match(r"[\w.]+-amd-amdhsa-\w*-([\w-]+)", document["amdhsa.target"])[1], kernels


def metadata(path):
    return notes(path)[1]
