"""Without numpy one sentence says how to get it."""

import subprocess
import sys

_SCRIPT = """
import sys
sys.modules["numpy"] = None
from hami_mock.errors import UsageError
import hami_mock.whatif.outcome, hami_mock.whatif.workload
try:
    import hami_mock.whatif.cluster_model
except UsageError as error:
    print(error)
"""


def test_it_says_what_to_install() -> None:
    # In a process of its own: this one has numpy already.
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "what-if needs numpy, which isn't installed: pip install 'hami-mock[whatif]'\n"
    )
