"""How well each two cards of a node are connected, as HAMi's plugin scores them.

HAMi adds up a number for the way over PCIe and one for NVLink:

- 10: over the link between two CPUs
- 20: over one CPU, but several host bridges
- 30: over one host bridge
- 40: over several PCIe switches
- 50: over one PCIe switch
- 60: on one board
- 100 for each NVLink, of which a card has 18 at most

Our cards know their NUMA node, but no bridges and switches, so theirs are 10 and 20.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from hami_mock.hami.go_values import INT64, Fields, json_list

_OTHER_CPU = 10
_SAME_CPU = 20
_NVLINK = 100


@dataclass(frozen=True)
class Place:
    """Where a card is: its NUMA node, and which others it has how many NVLinks to."""

    uuid: str
    numa: int | None = None
    link: str | None = None
    nvlinks: int = 1


def encode(cards: Iterable[Place]) -> str:
    cards = tuple(cards)
    rows = [
        {
            "uuid": card.uuid,
            "score": {peer.uuid: _score(card, peer) for peer in cards if peer is not card},
        }
        for card in cards
    ]
    return json.dumps(rows, separators=(",", ":"))


def decode(text: str) -> dict[str, dict[str, int]]:
    """Return the scores of each card with its peers.

    Raises Malformed; the scheduler then doesn't take the node's cards either.
    """
    scores: dict[str, dict[str, int]] = {}
    for i, row in enumerate(json_list(text)):
        fields = Fields(row, f"card {i}")
        peers = fields.get("score", dict)
        values = Fields(peers, f"card {i}: score")
        scores[fields.get("uuid", str)] = {peer: values.get(peer, INT64) for peer in peers}
    return scores


def _score(one: Place, other: Place) -> int:
    # Cards that don't say where they are stand on a machine with one CPU.
    apart = None not in (one.numa, other.numa) and one.numa != other.numa
    pcie = _OTHER_CPU if apart else _SAME_CPU
    linked = one.link is not None and one.link == other.link
    return pcie + (_NVLINK * one.nvlinks if linked else 0)
