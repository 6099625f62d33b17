"""All targets."""

from tests.fuzz import traps
from tests.fuzz.parsers import TARGETS as PARSERS
from tests.fuzz.sockets import TARGETS as SOCKETS

TARGETS = (*PARSERS, *SOCKETS)
BY_NAME = {target.name: target for target in (*TARGETS, *traps.TARGETS)}
