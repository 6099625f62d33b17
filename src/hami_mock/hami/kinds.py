"""In which ways vendors differ in HAMi's formats; light to load, for every vendor says so.

Named tuples, here and in `vendors`: a dataclass takes six times as long to make.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hami_mock.hami.register import Codec


class Encoding(NamedTuple):
    """How the cards of a register annotation are written.

    `codec` loads what reads and writes a vendor's own; None: `register` knows how.
    """

    name: str
    codec: "Callable[[], Codec] | None" = None


JSON = Encoding("JSON")
COLON = Encoding("colon form of 9 fields")
SHORT_COLON = Encoding("colon form of 7 fields")


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

HAMI_CORE = "hami-core"
"""The mode of a card that is sliced by HAMi's library; the colon form's if it doesn't say."""

MIG = "mig"
"""The mode of a card that is cut into instances."""
MIG_ALLOCATIONS = "hami.io/vgpu-mig-allocations"
"""The annotation with the instances that are reserved, and then made, for a pod."""

MPS = "mps"
"""A mode that HAMi's plugin only reports: it does the same as for `HAMI_CORE`."""
