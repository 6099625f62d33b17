"""What can be wrong with a value that HAMi reads or writes."""

from hami_mock.errors import HamiMockError


class Malformed(HamiMockError):
    """A value isn't what HAMi takes; the text names the part, what it is, and what it should be."""
