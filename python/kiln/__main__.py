"""`python -m kiln` is the command line."""

import os
import sys

from kiln.command import command
from kiln.errors import KilnError


def main() -> None:
    try:
        path = command()
    except KilnError as e:
        sys.exit(f"kiln: {e.status}: {e}")
    os.execv(path, ["kiln", *sys.argv[1:]])


if __name__ == "__main__":
    main()
