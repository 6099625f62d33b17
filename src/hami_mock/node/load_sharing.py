"""How containers share a card that they want more of than there is. Pure."""

from collections.abc import Sequence


def shared(wanted: Sequence[float], most: int) -> list[int]:
    """Return whole amounts that come to `most` at most, each as much less as the others.

    Their sum is that of what is wanted, rounded: what all of them do agrees with what each does.
    """
    total = sum(wanted)
    factor = most / total if total > most else 1.0
    exact = [want * factor for want in wanted]
    amounts = [int(amount) for amount in exact]
    missing = min(most, round(total)) - sum(amounts)
    if missing > 0:
        # Those that lost most to rounding, the first ones of equals.
        order = sorted(range(len(exact)), key=lambda i: amounts[i] - exact[i])
        for position in order[:missing]:
            amounts[position] += 1
    return amounts
