"""What people want to know of each resource, whichever way the node offers it."""

from typing import Protocol

from hami_mock.node.resources import Resource
from hami_mock.views.deviceplugin.counters import ResourceCounters


class Offering(Protocol):
    """A resource that the node offers, or is about to."""

    @property
    def resource(self) -> Resource: ...
    @property
    def phase(self) -> str:
        """How far it has come, in a word."""

    @property
    def reason(self) -> str:
        """Why it hasn't come further; "" if there is nowhere to go."""

    @property
    def is_offered(self) -> bool:
        """Whether pods can have it."""

    @property
    def counters(self) -> ResourceCounters: ...
