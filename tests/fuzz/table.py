"""All targets."""

from tests.fuzz import traps
from tests.fuzz.access import TARGETS as ACCESS
from tests.fuzz.driver import TARGETS as DRIVER
from tests.fuzz.parsers import TARGETS as PARSERS
from tests.fuzz.sockets import TARGETS as SOCKETS

TARGETS = (*PARSERS, *ACCESS, *DRIVER, *SOCKETS)
BY_NAME = {target.name: target for target in (*TARGETS, *traps.TARGETS)}
