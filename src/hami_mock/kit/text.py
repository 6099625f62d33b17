"""Text from outside, made safe to repeat in errors, log lines, labels and annotations. Pure."""

LONGEST = 300
LONGEST_LINE = 1000
"""Of an error, which may repeat a value, its place and a file's path."""


def cut(text: str, most: int = LONGEST) -> str:
    """Return at most so many characters of a text, and an ellipsis for the rest.

    What can't be printed is written as Python would: a line break forges no second line of the
    log, and half of a surrogate pair, which no encoding takes, breaks nothing.
    """
    short = text if len(text) <= most else f"{text[:most]}…"
    if short.isprintable():
        return short
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in short)
