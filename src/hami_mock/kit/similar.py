"""Did you mean …? What a mistyped word was probably meant to be."""

from collections.abc import Iterable

from hami_mock.errors import MOST_PROBLEMS

_LONGEST = 100


def similar(word: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the known words that are most like a word in any case, the closest first."""
    import difflib  # only after a mistake

    # It takes the product of both lengths, and nobody mistypes a word that long.
    if len(word) > _LONGEST:
        return []
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=most, cutoff=cutoff)
    return [by_lower[each] for each in close]


def did_you_mean(word: object, known: Iterable[str], mistakes_before: int = 0) -> str:
    """Return "; did you mean …?", to be put behind an error, or nothing.

    Nothing too after so many mistakes that this one won't be shown: a search takes milliseconds.
    """
    close = similar(str(word), known) if mistakes_before < MOST_PROBLEMS else []
    return f"; did you mean {close[0]}?" if close else ""
