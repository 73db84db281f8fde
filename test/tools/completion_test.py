"""Completions of shells and manual pages: made from the tables of options, so everything that --help shows is in them."""
import os
import re
import shutil
import subprocess
import unittest

import kiln_case

CHOICES = ["auto", "off", "on"]  # of --graph


def installed(shell):
    return unittest.skipUnless(shutil.which(shell), f"{shell} is not installed")


class Completion(kiln_case.KilnCase):
    @classmethod
    def setUpClass(cls):
        cls.options = {}  # "kiln cache stats" -> its options
        todo = ["kiln"]
        while todo:
            command = todo.pop()
            text = subprocess.run([kiln_case.KILN, *command.split()[1:], "--help"], capture_output=True, text=True, check=True).stdout
            cls.options[command] = re.findall(r"(?<![\w-])--?[a-z][\w-]*", "\n".join(re.findall(r"^  (-\S*)", text, re.M)))
            below = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
            todo += [f"{command} {name}" for name in re.findall(r"^  ([a-z][a-z-]*) ", below, re.M)]

    def script(self, shell):
        text = self.kiln("completion", shell).stdout
        self.assertEqual(self.json("completion", shell)["script"], text)
        with open(self.path(f"kiln.{shell}"), "w") as file:
            file.write(text)
        return self.path(f"kiln.{shell}")

    def commands_below(self, command):
        return sorted(c.split()[-1] for c in self.options if c.rpartition(" ")[0] == command)

    def check(self, complete):
        """`complete(lines)` gives, for each line, the words that a shell offers at its end."""
        self.assertGreater(len(self.options), 25)
        wanted = {"kiln run model.kiln --graph ": CHOICES, "kiln perf --dim batch=1 --graph o": ["off", "on"]}
        for command, options in self.options.items():
            wanted[f"{command} --"] = sorted(o for o in options if o.startswith("--"))
            if self.commands_below(command):
                wanted[f"{command} "] = self.commands_below(command)
        for line, words in zip(wanted, complete(list(wanted))):
            with self.subTest(line):
                self.assertEqual(sorted(words), wanted[line])

    def test_bash(self):
        inside = f"""
source {self.script("bash")}
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"$line"
  [[ $line == *" " ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMPREPLY=()
  _kiln
  echo "${{COMPREPLY[*]}}"
done
"""

        def complete(lines):
            done = subprocess.run(["bash", "--norc", "-c", inside], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True, cwd=self.dir)
            self.assertEqual(done.stderr, "")
            return [line.split() for line in done.stdout.splitlines()]

        self.check(complete)
        self.assertEqual(complete(["kiln inspect kiln.", "kiln run --input kiln."]), [["kiln.bash"], ["kiln.bash"]])

    def test_bash_takes_words_with_an_equals_sign(self):
        done = subprocess.run(["bash", "--norc", "-c", f"source {self.script('bash')}; COMP_WORDS=(kiln run --graph = o) COMP_CWORD=4; _kiln; echo ${{COMPREPLY[*]}}"], capture_output=True, text=True, check=True)
        self.assertEqual(sorted(done.stdout.split()), ["off", "on"])

    @installed("fish")
    def test_fish(self):
        script = self.script("fish")

        def complete(lines):
            inside = f"source {script}\n" + "".join(f"complete -C '{line}'\necho ==\n" for line in lines)
            done = subprocess.run(["fish", "--no-config", "-c", inside], capture_output=True, text=True, check=True, cwd=self.dir, env={**os.environ, "HOME": self.dir})
            self.assertEqual(done.stderr, "")
            return [[l.split("\t")[0] for l in part.splitlines()] for part in done.stdout.split("==\n")]

        self.check(complete)

    @installed("zsh")
    def test_zsh(self):
        # Its helper _arguments is replaced by one that prints what it is given: a specification for each option.
        inside = f"""
compdef() {{ }}
_arguments() {{ print -rl -- "$@" }}
source {self.script("zsh")}
for f in "$@"; do print -r -- "== $f"; $f; done
"""
        functions = {f"_{c.replace(' ', '_')}": c for c in self.options}
        done = subprocess.run(["zsh", "-f", "-c", inside, "zsh", *functions], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        parts = done.stdout.split("== ")[1:]
        self.assertEqual(len(parts), len(self.options))
        for part in parts:
            name, *specifications = part.splitlines()
            with self.subTest(functions[name]):
                found = [m[1] for s in specifications if (m := re.match(r"(?:\([^)]*\)|\*)?(--?[a-z][\w-]*)\[", s))]
                self.assertEqual(sorted(found), sorted(self.options[functions[name]]))
                for below in self.commands_below(functions[name]):
                    self.assertIn(f" {below}\\:", specifications[-2])

    def test_man_pages(self):
        folder = self.path("man1")
        told = self.json("man-pages", folder)
        self.assertEqual(sorted(told["pages"]), sorted(os.listdir(folder)))
        self.assertEqual(sorted(told["pages"]), sorted(f"{c.replace(' ', '-')}.1" for c in self.options if len(c.split()) < 3))
        pages = {}
        for name in told["pages"]:
            with open(os.path.join(folder, name)) as file:
                pages[name] = file.read().replace("\\-", "-")
        for command, options in self.options.items():
            page = pages["-".join(command.split()[:2]) + ".1"]
            with self.subTest(command):
                self.assertEqual([o for o in options if f"\\fB{o}\\fR" not in page], [])
        again = self.path("again")
        self.kiln("man-pages", again)
        for name in pages:
            with open(os.path.join(folder, name), "rb") as a, open(os.path.join(again, name), "rb") as b:
                self.assertEqual(a.read(), b.read())

    @installed("groff")
    def test_roff_has_no_warnings(self):
        self.kiln("man-pages", self.path("man1"))
        for name in os.listdir(self.path("man1")):
            with self.subTest(name):
                done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", os.path.join(self.path("man1"), name)], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    kiln_case.main()
