"""Try one input again: python -m tests.fuzz.replay TARGET FILE. It ends with 1 if it does harm."""

import os
import sys
from pathlib import Path

from tests.fuzz.table import BY_NAME
from tests.fuzz.target import judge, watch_log


def main() -> int:
    name, path = sys.argv[1:]
    watch_log()
    found = judge(BY_NAME[name], Path(path).read_bytes())
    if found is not None:
        print(f"{found.name}: {found.text}")
    sys.stdout.flush()  # what runs beside the input isn't waited for
    return 0 if found is None else 1


if __name__ == "__main__":
    os._exit(main())
