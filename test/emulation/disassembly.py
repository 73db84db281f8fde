"""Which matrix and dot instructions an object has, by launch."""
import re
import shutil
import subprocess

OBJDUMP = next(filter(None, map(shutil.which, ("llvm-objdump-22", "llvm-objdump"))), None)
INTERESTING = re.compile(r"\b(v_s?mfmac?_\w+|v_s?wmma\w*|v_dot\w+)")


def matrix_instructions(path):
    """{symbol: {opcode: count}}; None where there is no llvm-objdump."""
    if not OBJDUMP:
        return None
    text = subprocess.run([OBJDUMP, "-d", path], capture_output=True, text=True, check=True).stdout
    found, symbol = {}, ""
    for line in text.splitlines():
        if m := re.match(r"[0-9a-f]+ <(.+)>:", line):
            symbol = m[1]
        elif m := INTERESTING.search(line):
            of_symbol = found.setdefault(symbol, {})
            of_symbol[m[1]] = of_symbol.get(m[1], 0) + 1
    return found
