#!/usr/bin/env python3
"""Copies what the site is made of into a folder, at the places that the files have in the repository: the pages of docs/,
the pages outside that mkdocs.yml lists, and every file that one of them links to. So links work in both, unchanged.

    scripts/site.py FOLDER
    scripts/site.py --check      exits 1 if the menu in mkdocs.yml lacks a page of docs/
"""
import pathlib
import re
import shutil
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
# Words behind the language of a block ("python gpu") are for the tests that run it. mkdocs takes such a line for text, and the end of
# the block for the beginning of one.
FENCE = re.compile(r"^( *```\w+) .*$", re.M)


def linked_files(page):
    """Files in the repository that a page links to. A link to a folder stands for a page that lists it."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / target[0]).resolve()
        if "://" not in target[0] and path.is_relative_to(TOP) and path.exists():
            yield path


def write_page(path, folder):
    to = folder / path.relative_to(TOP)
    to.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8")

    def to_index(match):
        target = (path.parent / match[1]).resolve()
        return f"]({match[1].rstrip('/')}/README.md)" if "://" not in match[1] and target.is_dir() else match[0]

    to.write_text(FENCE.sub(r"\1", LINK.sub(to_index, text)), encoding="utf-8")


def write_index(path, folder):
    """The page of a folder that has none: a list of its pages."""
    to = folder / path.relative_to(TOP) / "README.md"
    to.parent.mkdir(parents=True, exist_ok=True)
    pages = sorted(path.glob("*.md"))
    titles = [page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for page in pages]
    to.write_text(f"# {path.name}\n\n" + "".join(f"- [{t}]({p.name})\n" for t, p in zip(titles, pages)), encoding="utf-8")
    return pages


def listed_pages():
    return re.findall(r"\s([\w/]+\.md)$", (TOP / "mkdocs.yml").read_text(encoding="utf-8"), re.M)


def check_menu():
    missing = sorted({f"docs/{p.name}" for p in (TOP / "docs").glob("*.md")} - set(listed_pages()))
    for page in missing:
        print(f"site: error: the menu in mkdocs.yml lacks {page}", file=sys.stderr)
    return int(bool(missing))


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    listed = listed_pages()
    todo, done = [TOP / name for name in listed], set()
    while todo:
        path = todo.pop()
        if path in done:
            continue
        done.add(path)
        if path.is_dir():
            todo += [path / "README.md"] if (path / "README.md").exists() else write_index(path, folder)
        elif path.suffix == ".md":
            write_page(path, folder)
            todo += linked_files(path)
        else:
            to = folder / path.relative_to(TOP)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
    return len(done)


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        sys.exit(check_menu())
    print(f"{main(pathlib.Path(sys.argv[1]).resolve())} files in {sys.argv[1]}")
