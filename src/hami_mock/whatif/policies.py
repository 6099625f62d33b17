"""The same pods by other rules: what each policy makes of them."""

from collections.abc import Callable, Sequence

from hami_mock.settings.pools import Pool
from hami_mock.whatif.outcome import Outcome
from hami_mock.whatif.purchase import Tell
from hami_mock.whatif.rules import Rules

PlaceBy = Callable[[Sequence[Pool], Rules], Outcome]
"""Places the workload on a fleet by rules."""
FleetFor = Callable[[Rules], Sequence[Pool]]
"""Returns the fleet as it is where these rules hold: what nodes tell depends on the policy."""


def compare(
    rules: Sequence[Rules], fleet_for: FleetFor, place: PlaceBy, tell: Tell
) -> list[Outcome]:
    """Place the workload by each of the rules, on an empty fleet each time."""
    found = []
    for each in rules:
        tell(f"placing by the policy {each.policy}")
        found.append(place(fleet_for(each), each))
    return found
