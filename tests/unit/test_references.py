"""What is written from the code is what the code makes now."""

import subprocess
import sys
from pathlib import Path

from hami_mock import vendors
from hami_mock.views.exporters.dcgm_extras import EXTRAS
from hami_mock.views.exporters.hami_monitor import BUILD, LEGACY, METRICS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "observability.md").read_text()


def test_pages_and_schemas_are_current() -> None:
    check = [sys.executable, "tools/references.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_metric_of_every_exporter_has_a_row() -> None:
    own = [vendor.exporter().metrics for vendor in vendors.VENDORS if vendor.exporter]
    names = {metric.name for metrics in (*own, METRICS, LEGACY) for metric in metrics}
    for name in {*names, *(name for name, *_ in EXTRAS), BUILD}:
        assert f"\n| `{name}` | " in PAGE, name
