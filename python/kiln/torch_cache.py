"""Models that torch.compile's backend has made, kept for later processes in the folder torch/ of the kernel cache.

A file is written under another name and renamed, so processes may share the folder. Nothing here raises: a folder or file
that cannot be used is one line in the log, and the model is made.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import tempfile
from typing import Any, Mapping

from .errors import KilnError
from .model import Model

log = logging.getLogger("kiln")

MOST_BYTES = 8 << 30  # of the folder; models that were not used for longest go first


def _refused(path: str) -> str:
    """Why others than this user and root can change the file or folder; empty: nobody else can."""
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode):
        return "is a link"
    if facts.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    return "may be written by others" if facts.st_mode & 0o022 else ""


def _way_refused(path: str) -> str:
    """Why others can put something else in the place of the file or folder, by the rules of docs/cache.md."""
    real = os.path.realpath(path)
    ways = {os.path.dirname(p) for p in (path, real)}
    while more := {os.path.dirname(way) for way in ways} - ways:
        ways |= more
    for way in ways:
        facts = os.lstat(way)
        shared = facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX and not stat.S_ISLNK(facts.st_mode)
        if facts.st_uid not in (os.geteuid(), 0) or shared:
            return f"{path} lies in {way}, which others may change"
    why = _refused(real)
    return f"{path} {why}" if why else ""


def folder_of(options: Mapping[str, Any]) -> str | None:
    """The folder that these options of a session choose, made if it is missing. None: nothing is kept."""
    if options.get("no_cache"):
        return None
    chosen = os.fspath(options.get("cache") or os.environ.get("KILN_CACHE_DIR") or "")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME", "")
        chosen = os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "kiln")
    folder = os.path.abspath(os.path.join(chosen, "torch"))
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        why = _way_refused(folder)
    except OSError as e:
        why = f"{folder}: {e.strerror}"
    if why:
        log.warning("graphs of torch are not kept: %s", why)
        return None
    return folder


def find(folder: str, name: str) -> Model | None:
    """The model of this name, which counts as used now. None if there is none, or if others could have changed its file."""
    path = os.path.join(folder, name + ".kiln")
    try:
        if _refused(path):
            return None
        os.utime(path)
        return Model(path)
    except (OSError, KilnError):
        return None


def _make_room(folder: str, kept: str) -> None:
    """Removes the models that were not used for longest until the folder has at most MOST_BYTES; the file `kept` stays."""
    found = []
    for entry in os.scandir(folder):
        try:
            facts = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # another process has removed it
        if stat.S_ISREG(facts.st_mode):
            found.append((facts.st_mtime_ns, facts.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= MOST_BYTES:
            return
        if path != kept:
            total -= size
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass


def keep(folder: str, name: str, model: Model) -> None:
    """Copies the model's file into the folder, for `find` of any process."""
    path = os.path.join(folder, name + ".kiln")
    made = ""
    try:
        handle, made = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as target, open(model.path, "rb") as source:
            shutil.copyfileobj(source, target, 1 << 20)
        os.replace(made, path)
        made = ""
        _make_room(folder, path)
    except OSError as e:
        log.warning("a graph of torch is not kept in %s: %s", folder, e.strerror)
    finally:
        if made:
            try:
                os.unlink(made)
            except OSError:
                pass
