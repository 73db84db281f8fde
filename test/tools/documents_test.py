"""Pages of docs/ that are made from the program: its commands and options, operators, targets, and the fields of its
files.

KILN_WRITE_TABLES=1 writes them."""
import json
import os
import re
import subprocess
import unittest

import kiln_case

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST, LAST = "<!-- made by test/tools/documents_test.py -->\n", "<!-- end -->\n"


def fields_of(path):
    """Rows of a FlatBuffers schema: (table, field, type, comment)."""
    with open(os.path.join(TOP, path)) as file:
        text = file.read()
    for declaration in re.finditer(r"^(table|struct) (\w+) \{(.*?)\}", text, re.S | re.M):
        for line in declaration[3].splitlines():
            code, _, comment = line.partition("//")
            fields = re.findall(r"(\w+):\s*([^;(]+?)\s*(?:\([^)]*\))?;", code)
            for name, kind in fields:
                yield declaration[2], name, kind, comment.strip() if len(fields) == 1 else ""


class Documents(kiln_case.KilnCase):
    maxDiff = None

    def documented(self, page, made):
        path = os.path.join(TOP, "docs", page)
        with open(path) as file:
            text = file.read()
        before, _, rest = text.partition(FIRST)
        there, _, after = rest.partition(LAST)
        if there == made:
            return
        if os.environ.get("KILN_WRITE_TABLES"):
            with open(path, "w") as file:
                file.write(before + FIRST + made + LAST + after)
            return
        self.assertEqual(there, made, f"docs/{page} is not what the code says; run this test with KILN_WRITE_TABLES=1")

    def help_of(self, *command):
        done = subprocess.run([kiln_case.KILN, *command, "--help"], capture_output=True, text=True, check=True)
        return done.stdout.replace(kiln_case.KILN, "kiln").rstrip() + "\n"

    def commands_in(self, text):
        listed = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]  # an example follows
        return re.findall(r"^  ([a-z][a-z-]*) ", listed, re.M)

    def test_commands(self):
        made = "```\n" + self.help_of() + "```\n"
        for command in self.commands_in(self.help_of()):
            text = self.help_of(command)
            made += f"\n## kiln {command}\n\n```\n{text}```\n"
            for inner in self.commands_in(text):
                made += f"\n### kiln {command} {inner}\n\n```\n{self.help_of(command, inner)}```\n"
        self.documented("commands.md", made)

    def test_operators(self):
        made = ""
        for domain, title in (("", "ONNX"), ("ai.onnx.ml", "ai.onnx.ml"), ("com.microsoft", "com.microsoft"), ("kiln", "kiln")):
            rows = [o for o in self.json("ops")["operators"] if o["domain"] == domain]
            if not rows:
                continue
            made += f"\n## {title}\n\n| operator | versions of the domain | limits |\n|---|---|---|\n"
            for o in rows:
                made += f"| {o['name']} | {o['min_opset']} to {o['max_opset']} | {o['notes']} |\n"
        self.documented("operators.md", made)

    def test_targets(self):
        rows = [t for t in self.json("targets")["targets"] if t["name"] != "native"]
        made = "## CPUs\n\n| target | processor | vector bits | for | numbers from |\n|---|---|---|---|---|\n"
        for t in rows:
            if t["family"] == "cpu":
                made += f"| {t['name']} | {t['processor']} | {t['vector_bits']} | {t['products']} | {t['source']} |\n"
        for family, title in (("amdgpu", "AMD GPUs"), ("nvidia", "NVIDIA GPUs")):
            made += f"\n## {title}\n\n| target | for | units | wave | LDS, KiB | registers | matrix instructions | dot products | also |\n|---|---|---|---|---|---|---|---|---|\n"
            sources = {}
            for t in (t for t in rows if t["family"] == family):
                also = [t["features"].removeprefix("+")] if t["features"] else []
                also += ["wgmma"] if t["matrix_unit"] == "wgmma" else []
                also += [words for field, words in (("async_copy", "cp.async"), ("tensor_copy", "TMA"), ("dependent_launch", "dependent launch")) if t[field]]
                made += f"| {t['name']} | {t['products']} | {t['compute_units']} | {t['wave']} | {t['lds_bytes'] // 1024} | {t['registers']} | {', '.join(t['matrix_instructions']) or '–'} | {t['dot_products']} | {', '.join(also)} |\n"
                sources.setdefault(t["source"], []).append(t["name"])
            made += "\nSources of the numbers:\n\n" + "".join(f"- {source}: {', '.join(names)}\n" for source, names in sources.items())
        self.documented("targets.md", made)

    def test_fields_of_files(self):
        made = ""
        for path in ("ir/container/program.fbs", "ir/native_kernel.fbs"):
            made += f"\n`{path}`:\n\n| table | field | type | meaning |\n|---|---|---|---|\n"
            made += "".join(f"| {a} | {b} | `{c}` | {d} |\n" for a, b, c, d in fields_of(path))
        self.documented("file_format.md", made)


if __name__ == "__main__":
    kiln_case.main()
