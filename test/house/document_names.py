#!/usr/bin/env python3
"""Checks that what the documents name exists: files and folders, functions and fields, options of `kiln`, environment
variables, and the targets of links. A name is whatever a code span shows that looks like one.

    test/house/document_names.py            a line for each name that does not exist; exit 1 if there is one

Not checked: CHANGELOG.md and docs/decisions, which tell what was, and fenced blocks except for options of `kiln`.
"""
import fnmatch
import functools
import os
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HISTORY = ("CHANGELOG.md", "docs/decisions/", "third_party/")
SOURCES = ("cpp", "hpp", "h", "c", "hip", "py", "sh", "td", "fbs", "cmake")
# Documents that are about programs and machines of others, with the checks that make no sense there.
ELSEWHERE = {
    "docs/migrate.md": {"option"},  # options of trtexec, migraphx-driver and IREE
    "docs/emulation.md": {"path", "name"},  # tinygrad's emulator; instructions
    "docs/hazards.md": {"name"},  # instructions
    "bench/README.md": {"path", "name", "option"},  # peers and their settings
    "bench/history.md": {"path", "name", "option"},  # the same, and names of earlier code
}
# Names in documents that are words of others or placeholders.
FOREIGN = {"auth_basic", "mark_dynamic", "snake_case", "--allow-unregistered-dialect", "mlir/lib/Bytecode/Reader/BytecodeReader.cpp"}
PLACEHOLDER = re.compile(r"\b(NAME|FILE|DIR|N|vN|relu6|make_model)\b")


def tree():
    """Every file and folder of the repository, relative to its top."""
    found = set()
    for folder, inner, files in os.walk(TOP):
        inner[:] = [name for name in inner if name not in ("build", ".git", "__pycache__")]
        here = pathlib.Path(folder).relative_to(TOP)
        found.update((here / name).as_posix() for name in inner + files)
    return found


def words(paths):
    """Every identifier in a file that is no document, and every option and environment variable as it is written there."""
    found = set()
    for path in paths:
        if path.endswith((".md", ".json", ".bin", ".onnx", ".npy", ".png")) or not (TOP / path).is_file():
            continue
        try:
            text = (TOP / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found.update(re.findall(r"[A-Za-z_]\w*|--[a-z][a-z0-9-]*", text))
    return found


def options_of_commands():
    """Command ("compile", "cache export") → its options, from the page that documents_test.py makes."""
    page = (TOP / "docs/commands.md").read_text(encoding="utf-8")
    parts = re.split(r"^###? kiln (.*)$", page, flags=re.M)[1:]
    return {name: set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text)) for name, text in zip(parts[::2], parts[1::2])}


@functools.cache
def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ +(.*?) *$", text, re.M)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class checker:
    def __init__(self):
        self.tree = tree()
        self.words = words(self.tree)
        self.commands = options_of_commands()
        self.folders = {path.split("/")[0] for path in self.tree if "/" in path}
        self.names = {os.path.basename(path) for path in self.tree}
        self.stems = {name.split(".")[0] for name in self.names}

    def path_exists(self, name, page):
        """Whether a file or folder is called so: from the top, from the page's folder, or as the end of a path. The
        ending of a source may be left out."""
        name = name.rstrip("/")
        near = os.path.normpath(os.path.join(os.path.dirname(page), name))
        endings = ["", *(f".{ending}" for ending in SOURCES)]
        if any(path + ending in self.tree for path in (name, near) for ending in endings):
            return True
        if "*" in name:
            return any(fnmatch.fnmatch(path, pattern) for path in self.tree for pattern in (name, f"*/{name}"))
        return any(path.endswith("/" + name + ending) for path in self.tree for ending in endings)

    def paths_in(self, span):
        for name in re.findall(r"(?<![\w./<$-])[\w*][\w.*-]*(?:/[\w.*-]+)*/?", span):
            name = name.rstrip(".")
            source = name.rpartition(".")[2] in SOURCES and "." in name
            if PLACEHOLDER.search(name) or name.startswith("build/"):
                continue
            if source or ("/" in name and name.split("/")[0] in self.folders and "=" not in span):
                yield name

    def wrong_options(self, text):
        """Options of `kiln` commands that the command does not have."""
        text = text.replace("\\\n", " ")
        for line in text.splitlines():
            for call in re.findall(r"(?:^|[\s/`])kiln ([a-z-]+(?: [a-z-]+)?)([^|;&#`]*)", line):
                command = next((name for name in (call[0], call[0].split()[0]) if name in self.commands), None)
                if command:
                    for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", call[0] + call[1]):
                        if option not in self.commands[command]:
                            yield f"kiln {command} has no option {option}"

    def wrong_names(self, page, span):
        """(check, complaint) for everything that a code span names and that does not exist."""
        for name in self.paths_in(span):
            if name not in FOREIGN and not self.path_exists(name, page):
                yield "path", f"there is no {name}"
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*(?![\w-])", span):
            if option not in self.words | FOREIGN:
                yield "option", f"nothing takes the option {option}"
        if re.fullmatch(r"(~?[a-z_][a-z0-9_]*(::|\.))*[a-z_][a-z0-9_]*(\(\))?", span) and "_" in span:
            for name in re.findall(r"\w+", span):
                if name not in self.words | self.stems | FOREIGN and not name.startswith("llvm_") and not PLACEHOLDER.search(name):
                    yield "name", f"nothing is called {name}"
        for name in re.findall(r"\bKILN_[A-Z0-9_]+\b", span):
            if name not in self.words:
                yield "name", f"nothing reads or defines {name}"

    def wrong_links(self, page, text):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            path = (TOP / page).parent / target if target else TOP / page
            if not path.exists():
                yield f"the link {target} leads nowhere"
            elif anchor and path.suffix == ".md" and anchor not in anchors(path.resolve()):
                yield f"{target or page} has no heading #{anchor}"

    def complaints(self, page):
        text = (TOP / page).read_text(encoding="utf-8")
        skipped = ELSEWHERE.get(page, set())
        prose = re.sub(r"^ *```.*?^ *```", lambda block: re.sub(r"[^\n]", "", block[0]), text, flags=re.S | re.M)
        for number, line in enumerate(prose.split("\n"), 1):
            for span in re.findall(r"`([^`]+)`", line):
                yield from ((number, told) for kind, told in self.wrong_names(page, span) if kind not in skipped)
            yield from ((number, told) for told in self.wrong_links(page, re.sub(r"`[^`]*`", "", line)))
        if page != "docs/commands.md":
            for number, line in enumerate(re.sub(r"\\\n", " ", text).split("\n"), 1):
                yield from ((number, told) for told in self.wrong_options(line))


def main():
    check = checker()
    pages = sorted(path for path in check.tree if path.endswith(".md") and not path.startswith(HISTORY))
    found = [f"{page}:{number}: {told}" for page in pages for number, told in check.complaints(page)]
    print("\n".join(found + [f"{len(pages)} documents, {len(found)} names that do not exist"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
