"""The command line inside the package, as a child process."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Sequence

from .errors import InternalError, KilnError, NotBuiltInError, of_status


def command() -> str:
    """The path of the `kiln` executable of this package."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "kiln")
    if not os.access(path, os.X_OK):
        raise NotBuiltInError(f"{path}: the kiln command is not here; install the package again")
    return path


def _error_of(text: str, code: int) -> KilnError:
    """The exception for what the command wrote: its errors are one line, `kiln: KIND: MESSAGE`."""
    for line in reversed(text.strip().splitlines()):
        parts = line.split(": ", 2)
        if len(parts) == 3 and parts[0] == "kiln":
            return of_status(parts[1], parts[2])
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    return InternalError(f"kiln: the command {ended}: {text.strip()[-500:]}")


def run_command(arguments: Sequence[str]) -> Any:
    """Runs the command and returns the JSON document that it prints. Its errors are raised as exceptions of this
    package. The child ends if this thread is interrupted."""
    done = subprocess.run([command(), *arguments, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise _error_of(done.stderr, done.returncode)
    return json.loads(done.stdout)
