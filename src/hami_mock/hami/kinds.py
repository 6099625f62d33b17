"""In which ways vendors differ in HAMi's formats; light to load, for every vendor says so.

Named tuples, here and in `vendors`: a dataclass takes six times as long to make.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple


class Encoding(StrEnum):
    """How the cards of a register annotation are written."""

    JSON = "JSON"
    COLON = "colon form of 9 fields"
    SHORT_COLON = "colon form of 7 fields"
    METAX = "Metax's JSON"
    DRS = "Enflame's JSON"


class ReportStyle(StrEnum):
    """How a vendor's plugin writes the time of its report; all are the same to the scheduler."""

    DOTTED = "Reported_%Y.%m.%d %H:%M:%S"
    GO = "Reported %Y-%m-%d %H:%M:%S.%f %z %Z"

    def write(self, now: datetime) -> str:
        return now.strftime(self.value)


class Lock(NamedTuple):
    """A lock on a node: the annotation that it is, and after which time it is void."""

    annotation: str
    lifetime: timedelta


HAMI_LOCK = Lock("hami.io/mutex.lock", timedelta(minutes=5))

DRS_DEVICE_ID = "{node}-enflame-drs-{index}"
"""What the scheduler calls a card of Enflame's, whose annotation has no IDs."""

HAMI_CORE = "hami-core"
"""The mode of a card that is sliced by HAMi's library; the colon form's if it doesn't say."""

MIG = "mig"
"""The mode of a card that is cut into instances."""
