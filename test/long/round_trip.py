"""Disassembles AMD code objects with llvm-objdump, assembles the text again with llvm-mc and compares the bytes."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "emulation"))
import code_object

FILE = re.compile(r"^(\S.*):\s+file format ")
SYMBOL = re.compile(r"^([0-9a-f]+) <([^>]+)>:")
# The hardware reads the lower half of a literal of 16 bits. The upper one repeats the sign in LLVM's code generator and is 0 in its assembler.
SHORT_LITERAL = re.compile(r"^v_\w+_[buif]16\b.*\b0x[0-9a-f]{4}\b")
LINE = re.compile(r"^\s+(\S.*?)\s*// *([0-9A-Fa-f]+):")


def sections(path):
    with open(path, "rb") as f:
        return code_object.sections(f.read())


def differences(paths, processor):
    """{path: what does not come back as it was}, of objects for one processor."""
    done = subprocess.run(["llvm-objdump-22", "-d", f"--mcpu={processor}", *paths], capture_output=True, text=True)
    if done.returncode or "warning" in done.stderr:
        return {paths[0]: f"llvm-objdump: {done.stderr.strip()[-200:]}"}
    texts, lines, bad = {}, None, {}
    for line in done.stdout.splitlines():
        if m := FILE.match(line):
            lines, path, base = texts.setdefault(m[1], []), m[1], None
        elif m := SYMBOL.match(line):
            base = int(m[1], 16) if base is None else base
        elif m := LINE.match(line):
            if m[1].startswith((".long", "<unknown>")):
                bad.setdefault(path, f"llvm-objdump does not know the instruction at {m[2]}")
            lines.append((int(m[2], 16) - base, m[1]))
    for path in paths:
        if not texts.get(path):
            bad.setdefault(path, "llvm-objdump finds no code")
    good = [path for path in paths if path not in bad]
    with tempfile.NamedTemporaryFile(suffix=".o") as made:
        # Zeros fill the gaps between functions.
        source = "".join(f'.section .text.{i},"ax",@progbits\n' + "".join(f".org {at}\n{text}\n" for at, text in texts[path]) for i, path in enumerate(good))
        done = subprocess.run(["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={processor}", "-filetype=obj", "-o", made.name], input=source, capture_output=True, text=True)
        if done.returncode:
            return bad | dict.fromkeys(good, f"llvm-mc: {done.stderr.strip()[:200]}")
        again = sections(made.name)
    for i, path in enumerate(good):
        want, have = sections(path)[".text"], again[f".text.{i}"]
        for (at, text), end in zip(texts[path], [at for at, _ in texts[path][1:]] + [len(have)]):
            if have[at:end] != want[at:end] and not (SHORT_LITERAL.search(text) and have[at:end - 2] == want[at:end - 2]):
                bad.setdefault(path, f"'{text}' at {at:#x} becomes {have[at:end].hex()}, was {want[at:end].hex()}")
    return bad


def difference(path, processor):
    """What does not come back as it was, or None."""
    return differences([path], processor).get(path)


if __name__ == "__main__":
    found = differences(sys.argv[2:], sys.argv[1])
    for path, why in found.items():
        print(f"{path}: {why}")
    print(f"{len(sys.argv) - 2 - len(found)} the same, {len(found)} different")
    sys.exit(bool(found))
