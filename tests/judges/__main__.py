"""python -m tests.judges: have all judges now, once; best before any test waits for them."""

from __future__ import annotations

import sys

from tests.e2e.harness.errors import HarnessError, RequirementsMissing
from tests.e2e.harness.progress import Progress
from tests.judges.table import JUDGES


def main() -> int:
    progress = Progress()
    for name, have in JUDGES.items():
        try:
            with progress.step(f"have {name}"):
                have()
        except RequirementsMissing as missing:
            print(f"{name}: {missing}", file=sys.stderr)  # its tests say so too
        except HarnessError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
