#!/usr/bin/env python3
"""What the house looks like: lines of each room, which rooms include which, include cycles, the largest files, the
longest functions.

    scripts/house.py                        tables, in Markdown (docs/house.md explains them)
    scripts/house.py --tree FOLDER          of another checkout
    scripts/house.py --check                exit 1 where rooms form an include cycle, where two types have one name,
                                            and where a number is larger than in test/house/numbers.json: they only fall
"""
import argparse
import json
import pathlib
import re
import sys

ROOMS = ["ir", "mlir_bridge", "spirv", "runtime", "aot", "jit", "session", "generation", "bindings", "python", "onnxruntime", "tools"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def sources(top):
    """Relative path → text of every C++ source of ours; generated and vendored code is not."""
    found = {}
    for room in ROOMS:
        for path in sorted((top / room).rglob("*")):
            if path.suffix in (".cpp", ".hpp", ".h") and "spirv/device" not in path.as_posix():
                found[path.relative_to(top).as_posix()] = path.read_text()
    return found


def blanked(text):
    """The text with comments, strings and characters replaced by spaces; lines stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z])\'(?:\\.|[^\'\\\n])+\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def functions(text):
    """(name, first line, lines) of every function body outside of other functions; lambdas count with what holds
    them."""
    text = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", lambda m: re.sub(r"[^\n]", " ", m[0]), blanked(text), flags=re.M)
    open_braces, begin, result = [], 0, []
    for i, c in enumerate(text):
        if c == "{":
            head = text[begin:i].strip()
            inside = any(kind != "scope" for kind, *_ in open_braces)
            scope = re.search(r"\b(namespace|class|struct|union|enum|extern)\b[^()=]*$", head)
            call = re.search(r"([~\w:]+|operator\W+)\s*\(", head)
            kind = "other"
            if not inside and scope:
                kind = "scope"
            elif not inside and call and not re.search(r"(^|[^=!<>])=([^=]|$)", head[: call.start()]):
                kind = "function"
            lines_before = text.count("\n", 0, begin + len(text[begin:i]) - len(text[begin:i].lstrip()))
            open_braces.append((kind, call[1] if call else "", lines_before + 1))
            begin = i + 1
        elif c == "}":
            if not open_braces:
                break
            kind, name, first = open_braces.pop()
            if kind == "function":
                result.append((name, first, text.count("\n", 0, i) + 2 - first))
            begin = i + 1
        elif c == ";" and all(kind == "scope" for kind, *_ in open_braces):
            begin = i + 1
    return result


def types(text):
    """(qualified name, line) of every type that is defined in a named namespace. Types of functions, of other types, of unnamed
    namespaces and specializations of templates are left out: they are nobody else's."""
    text = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", lambda m: re.sub(r"[^\n]", " ", m[0]), blanked(text), flags=re.M)
    scopes, begin, result = [], 0, []
    for i, c in enumerate(text):
        if c == "{":
            head = text[begin:i]
            namespace = re.search(r"\bnamespace\s*([\w:]*)\s*$", head)
            defined = re.search(r"\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:\w+\s*\(.*\)\s*)?(\w+)\s*(?:final\s*)?(?::(?!:)[^()=]*)?$", head)
            if namespace:
                scopes.append(namespace[1] or None)
            else:
                if defined and all(scopes):
                    result.append(("::".join([*scopes, defined[1]]), text.count("\n", 0, i) + 1))
                scopes.append(None)
            begin = i + 1
        elif c == "}":
            if scopes:
                scopes.pop()
            begin = i + 1
        elif c == ";":
            begin = i + 1
    return result


def cycles(edges):
    """Sets of nodes that reach each other (Tarjan), larger than one."""
    index, low, on, stack, result = {}, {}, set(), [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while True:
                last = stack.pop()
                on.discard(last)
                group.append(last)
                if last == node:
                    break
            if len(group) > 1:
                result.append(sorted(group))

    sys.setrecursionlimit(10000)
    for node in sorted(edges):
        if node not in index:
            visit(node)
    return result


def room_of(path):
    """mlir_bridge has rooms of its own; what stands beside them is its door."""
    parts = path.split("/")
    if parts[0] != "mlir_bridge":
        return parts[0]
    return "/".join(parts[:2]) if len(parts) > 2 else "mlir_bridge (door)"


class House:
    def __init__(self, top):
        self.texts = sources(top)
        self.lines = {path: text.count("\n") for path, text in self.texts.items()}
        # A header and its source are one component.
        self.components, self.rooms = {}, {}
        for path, text in self.texts.items():
            component, room = path.rsplit(".", 1)[0], room_of(path)
            self.components.setdefault(component, set())
            self.rooms.setdefault(room, set())
            for target in INCLUDE.findall(text):
                if target not in self.texts:
                    continue
                other = target.rsplit(".", 1)[0]
                if other != component:
                    self.components[component].add(other)
                if room_of(target) != room:
                    self.rooms[room].add(room_of(target))
        self.functions = sorted(
            ((lines, path, name, first) for path, text in self.texts.items() for name, first, lines in functions(text)),
            key=lambda f: (-f[0], f[1]))
        self.types = {}
        for path, text in self.texts.items():
            for name, line in types(text):
                self.types.setdefault(name, []).append(f"{path}:{line}")

    def print(self):
        print("| room | files | lines | includes |\n|---|--:|--:|---|")
        for room in sorted(self.rooms):
            files = [path for path in self.texts if room_of(path) == room]
            others = ", ".join(f"`{r}`" for r in sorted(self.rooms[room])) or "nothing"
            print(f"| `{room}` | {len(files)} | {sum(self.lines[f] for f in files)} | {others} |")
        for what, edges in (("rooms", self.rooms), ("files (a header and its source are one)", self.components)):
            found = cycles(edges)
            print(f"\nInclude cycles of {what}: {len(found)}")
            for group in found:
                print("- " + ", ".join(group))
        print("\n| largest files | lines |\n|---|--:|")
        for path in sorted(self.lines, key=lambda p: (-self.lines[p], p))[:10]:
            print(f"| `{path}` | {self.lines[path]} |")
        print("\n| longest functions | lines |\n|---|--:|")
        for lines, path, name, first in self.functions[:20]:
            print(f"| `{name}` (`{path}:{first}`) | {lines} |")

    def check(self, recorded):
        bad = 0
        for group in cycles(self.rooms):
            print("an include cycle of rooms: " + ", ".join(group))
            bad = 1
        for name, places in self.types.items():
            if len(places) > 1:
                print(f"{name} is the name of {len(places)} types ({', '.join(places)}); give each a name of its own: "
                      "the linker keeps one of their functions for both")
                bad = 1
        for lines, path, name, first in self.functions[:20]:
            print(f"{lines:5} lines: {name} ({path}:{first})")
        for group in cycles(self.components):
            print("files that include each other: " + ", ".join(group))
        now = {"lines of the longest function": self.functions[0][0], "include cycles of files": len(cycles(self.components))}
        for what, number in now.items():
            if number > recorded[what]:
                print(f"{what}: {number}, and they were {recorded[what]}: this number only falls")
                bad = 1
            if number < recorded[what]:
                print(f"{what}: {number}, and they were {recorded[what]}: write {number} into test/house/numbers.json")
        return bad


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tree", type=pathlib.Path, default=here)
    arguments.add_argument("--check", action="store_true")
    given = arguments.parse_args()
    house = House(given.tree)
    if given.check:
        sys.exit(house.check(json.loads((here / "test/house/numbers.json").read_text())))
    house.print()


if __name__ == "__main__":
    main()
