"""Did you mean …? What a mistyped word was probably meant to be."""

from collections.abc import Iterable


def similar(word: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the known words that are most like a word in any case, the closest first."""
    import difflib  # only after a mistake

    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=most, cutoff=cutoff)
    return [by_lower[each] for each in close]


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return "; did you mean …?", to be put behind an error, or nothing."""
    close = similar(str(word), known)
    return f"; did you mean {close[0]}?" if close else ""
