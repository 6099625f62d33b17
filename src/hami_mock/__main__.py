"""python -m hami_mock."""

import sys

from hami_mock.cli import main

sys.exit(main())
