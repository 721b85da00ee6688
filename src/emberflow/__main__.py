"""`python -m emberflow`: the `emberflow` command, also where the folder of commands is not on PATH."""

from __future__ import annotations

import sys

from emberflow.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
