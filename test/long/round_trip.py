"""Disassembles AMD code objects with llvm-objdump, assembles the text again with llvm-mc and compares the bytes."""
import re
import subprocess
import tempfile


def text_section(path):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["llvm-objcopy-22", "-O", "binary", "--only-section=.text", path, out.name], check=True, capture_output=True)
        return out.read()


def difference(path, processor):
    """What does not come back as it was, or None."""
    done = subprocess.run(["llvm-objdump-22", "-d", f"--mcpu={processor}", path], capture_output=True, text=True)
    if done.returncode or "warning" in done.stderr:
        return f"llvm-objdump: {done.stderr.strip()[-200:]}"
    lines, base, starts = [], None, []
    for line in done.stdout.splitlines():
        if m := re.match(r"^([0-9a-f]+) <([^>]+)>:", line):
            base = int(m[1], 16) if base is None else base
            starts.append(int(m[1], 16))
        elif m := re.match(r"^\s+(\S.*?)\s*// *([0-9A-Fa-f]+):", line):
            if m[1].startswith((".long", "<unknown>")):
                return f"llvm-objdump does not know the instruction at {m[2]}"
            lines.append((int(m[2], 16) - base, m[1]))
    if not lines:
        return "llvm-objdump finds no code"
    want = text_section(path)
    with tempfile.NamedTemporaryFile(suffix=".o") as made:
        # Zeros fill the gaps between functions.
        source = "".join(f".org {at}\n{text}\n" for at, text in lines)
        done = subprocess.run(["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={processor}", "-filetype=obj", "-o", made.name], input=source, capture_output=True, text=True)
        if done.returncode:
            return f"llvm-mc: {done.stderr.strip()[:200]}"
        have = text_section(made.name)
    for (at, text), end in zip(lines, [at for at, _ in lines[1:]] + [len(have)]):
        if have[at:end] != want[at:end]:
            return f"'{text}' at {at:#x} becomes {have[at:end].hex()}, was {want[at:end].hex()}"
    return None


if __name__ == "__main__":
    import sys

    bad = 0
    for path in sys.argv[2:]:
        if why := difference(path, sys.argv[1]):
            bad += 1
            print(f"{path}: {why}")
    print(f"{len(sys.argv) - 2 - bad} the same, {bad} different")
    sys.exit(bad > 0)
