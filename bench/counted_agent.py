"""The agent, able to count its tasks: python -m bench.counted_agent FILE run …

At SIGUSR1 it writes to FILE how many asyncio tasks and how many objects it has: from outside nobody
can see these. All else is the agent as it is.
"""

import asyncio
import gc
import json
import signal
import sys
from pathlib import Path

from hami_mock.__main__ import main


def _count_at_signal(path: Path) -> None:
    def count(*_: object) -> None:
        # What can go has gone then: only what is held on to is counted.
        gc.collect()
        tasks = asyncio.all_tasks(asyncio.get_running_loop())
        new = path.with_suffix(".new")
        new.write_text(json.dumps({"tasks": len(tasks), "objects": len(gc.get_objects())}))
        new.replace(path)

    signal.signal(signal.SIGUSR1, count)


if __name__ == "__main__":
    _count_at_signal(Path(sys.argv.pop(1)))
    sys.exit(main())
