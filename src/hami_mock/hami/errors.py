"""What can be wrong with a value that HAMi reads or writes."""

from hami_mock.errors import HamiMockError
from hami_mock.kit.text import cut


class Malformed(HamiMockError):
    """A value isn't what HAMi takes; the text names the part, what it is, and what it should be.

    The value was written by anybody, so the text is cut: it goes into logs and annotations.
    """

    def __init__(self, text: str) -> None:
        super().__init__(cut(text))
