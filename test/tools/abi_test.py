"""The C interface stays compatible: its functions, the places of the fields of its structs and the values of its enums are
those that test/compat/abi lists for each version, and programs that were built with old headers run with today's library.
KILN_LIBRARIES is the folder of the libraries.

    KILN_WRITE_ABI=1    writes the list of today's version, after KILN_API_VERSION was raised. Lists of released versions are
                        never written again."""
import os
import re
import subprocess
import unittest

import kiln_case
from kiln_case import KilnCase, main

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
LISTS = os.path.join(TOP, "test/compat/abi")
# Structs that callers make and that carry their size, so that they may grow.
GROWING = {"kiln_open_options", "kiln_api_table", "kiln_sampling"}


def read(path):
    with open(path) as f:
        return f.read()


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def describe(header, folder):
    """The interface of a header, a line for each thing that must not change: by a C program that asks its compiler."""
    text = without_comments(read(header))
    lines = [f'puts("function {name}");' for name in sorted(re.findall(r"\b(kiln_\w+)\([^;{}]*\);", re.sub(r"\{[^{}]*\}", "", text)))]
    for body, name in re.findall(r"typedef enum \w+(?: KILN_INT)? \{([^}]*)\} (\w+);", text):
        for value in re.findall(r"\bKILN_\w+", body):
            lines.append(f'printf("value {name} {value} %d\\n", (int){value});')
    for body, name in re.findall(r"typedef struct \w+ \{([^}]*)\} (\w+);", text):
        for field in body.split(";"):
            pointer = re.search(r"\(\*(\w+)\)\(", field)
            for part in [pointer[1]] if pointer else field.split(","):
                found = re.search(r"(\w+)\s*$", part)
                if found:
                    lines.append(f'printf("field {name}.{found[1]} at %zu, %zu bytes\\n", offsetof({name}, {found[1]}), sizeof((({name}*)0)->{found[1]}));')
        if name not in GROWING:
            lines.append(f'printf("struct {name} %zu bytes\\n", sizeof({name}));')
    program = os.path.join(folder, "describe.c")
    with open(program, "w") as f:
        f.write(f'#include "{header}"\n#include <stdio.h>\nint main(void) {{\n' + "\n".join(lines) + "\nreturn 0; }\n")
    subprocess.run(["cc", "-o", program[:-2], program], check=True)
    return subprocess.run([program[:-2]], check=True, capture_output=True, text=True).stdout.splitlines()


def version_of(header):
    return int(re.search(r"#define KILN_API_VERSION (\d+)", read(header))[1])


class Abi(KilnCase):
    header = os.path.join(TOP, "runtime/kiln.h")

    def test_nothing_of_an_older_version_has_changed(self):
        today = set(describe(self.header, self.dir))
        lists = [name for name in os.listdir(LISTS) if name.endswith(".txt")]
        self.assertGreaterEqual(len(lists), 3)
        for name in lists:
            gone = [line for line in read(os.path.join(LISTS, name)).splitlines() if line not in today]
            self.assertEqual(gone, [], f"{name}: these are no longer so")

    def test_what_is_new_has_a_new_version(self):
        today, version = describe(self.header, self.dir), version_of(self.header)
        path = os.path.join(LISTS, f"kiln_{version}.txt")
        if os.environ.get("KILN_WRITE_ABI"):
            with open(path, "w") as f:
                f.write("\n".join(today) + "\n")
        self.assertEqual(today, read(path).splitlines(), "raise KILN_API_VERSION, then run this test with KILN_WRITE_ABI=1")

    def test_old_lists_are_those_of_their_headers(self):
        for name in os.listdir(LISTS):
            if name.endswith(".h"):
                self.assertEqual(describe(os.path.join(LISTS, name), self.dir), read(os.path.join(LISTS, name[:-2] + ".txt")).splitlines(), name)

    def test_the_library_exports_all_functions(self):
        library = os.path.join(os.environ["KILN_LIBRARIES"], "libkiln_runtime.so.0")
        symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        exported = {line.split()[-1] for line in symbols.splitlines() if re.search(r" T kiln_", line)}
        declared = {line.split()[1] for line in describe(self.header, self.dir) if line.startswith("function ")}
        self.assertEqual(exported, declared)

    def test_the_page_says_which_threads_may_call_a_function(self):
        table = read(os.path.join(TOP, "docs/c_api.md")).split("## Threads")[1].split("\n## ")[0]
        told = re.findall(r"`(kiln_\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `")))
        declared = [line.split()[1] for line in describe(self.header, self.dir) if line.startswith("function ")]
        self.assertEqual(sorted(told), sorted(declared))

    @unittest.skipIf(kiln_case.SANITIZER, "the programs are built without the sanitizer that the library has")
    def test_programs_of_old_headers_run(self):
        file, folder = self.compiled(), os.environ["KILN_LIBRARIES"]
        outputs = set()
        for header in [self.header, *(os.path.join(LISTS, n) for n in sorted(os.listdir(LISTS)) if n.endswith(".h"))]:
            include = os.path.join(self.dir, f"v{version_of(header)}")
            os.mkdir(include)
            os.symlink(header, os.path.join(include, "kiln.h"))
            program = os.path.join(include, "run_portable")
            subprocess.run(["cc", "-I", include, "-o", program, os.path.join(TOP, "examples/run_portable.c"), f"-L{folder}", "-lkiln_runtime", f"-Wl,-rpath,{folder}"], check=True)
            environment = {**os.environ, "KILN_CACHE_DIR": self.path("cache")}
            done = subprocess.run([program, file], capture_output=True, text=True, env=environment, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.add(done.stdout)
        self.assertEqual(len(outputs), 1)
        self.assertIn("y ", outputs.pop())

    @unittest.skipIf(kiln_case.SANITIZER, "the programs are built without the sanitizer that the library has")
    def test_the_table_serves_programs_that_load_the_library(self):
        program = self.path("load.c")
        with open(program, "w") as f:
            f.write("""#include <dlfcn.h>
#include <stdio.h>
#include "kiln.h"
int main(int argc, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  const kiln_api_table* (*get)(int) = (const kiln_api_table* (*)(int))dlsym(library, "kiln_api");
  const kiln_api_table* kiln = get(KILN_API_VERSION);
  if (!kiln || get(KILN_API_VERSION + 1) || get(0) || kiln->size < sizeof *kiln) return 1;
  kiln_program* opened;
  kiln_status status = kiln->program_open("nothing.kiln", 1, &opened);
  printf("%d %s %s", kiln->version == kiln->api_version(), kiln->status_name(status), kiln->last_error());
  return 0;
}
""")
        subprocess.run(["cc", f"-I{TOP}/runtime", "-o", program[:-2], program, "-ldl"], check=True)
        done = subprocess.run([program[:-2], os.path.join(os.environ["KILN_LIBRARIES"], "libkiln_runtime.so.0")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^1 missing_file nothing\.kiln")


if __name__ == "__main__":
    main()
