"""Everything that can go wrong on purpose, and who must act."""

from collections.abc import Iterable

MOST_PROBLEMS = 20


class HamiMockError(Exception):
    """The root of all errors that this program raises itself."""


class UsageError(HamiMockError):
    """The user must act: a flag, a variable or a file is wrong (exit code 2).

    `problems` has one line for each mistake found, and one for how many more there are than anybody
    reads.
    """

    def __init__(self, problems: Iterable[str] | str) -> None:
        lines = (problems,) if isinstance(problems, str) else tuple(problems)
        if (more := len(lines) - MOST_PROBLEMS) > 1:
            lines = (*lines[:MOST_PROBLEMS], f"… and {more} more mistakes")
        self.problems = lines
        super().__init__("\n".join(self.problems))


class StartError(HamiMockError):
    """The operator must act: this machine can't serve it, a port is in use, say (exit code 1)."""


class KubeletError(HamiMockError):
    """Nobody must act: the kubelet didn't take the registration; it is tried again, and logged."""


class KubeletAbsent(KubeletError):
    """Nobody listens on the kubelet's socket (yet)."""


class Refused(KubeletError):
    """The kubelet listens and refused, or dropped what it had accepted."""


class ClusterError(HamiMockError):
    """Nobody must act: what the API server didn't do is tried again, and logged."""

    retry_after = 0.0
    """Seconds that it wants to be left alone for."""


class NotThere(ClusterError):
    """The object doesn't exist (any more)."""


class Conflict(ClusterError):
    """The object isn't the one that was read: somebody changed it in between."""


class Away(ClusterError):
    """The API server can't be reached, is overloaded, or has an error of its own."""


class Busy(Away):
    """The API server has more to do than it can (429): it wants fewer requests."""


class Outdated(Away):
    """The API server doesn't know any more what came after a version (410): all is to be read."""


class Invalid(Away):
    """It doesn't take what was sent: a patch doesn't apply any more, or a field isn't valid."""


class NotAllowed(ClusterError):
    """The operator must act: the token is not accepted, or the role lacks a rule (see the text)."""


class Unauthenticated(NotAllowed):
    """The token or the certificate is not accepted: it has expired, or is for another cluster."""


class DeviceError(HamiMockError):
    """The kubelet asked for a device that can't be given: it gets a gRPC error."""


class UnknownDevice(DeviceError):
    """The ID belongs to no device of the resource."""

    def __init__(self, resource: str, device_id: str) -> None:
        super().__init__(f"{resource}: there is no device {device_id!r}")


class UnhealthyDevice(DeviceError):
    """The device exists, but its card is unhealthy."""

    def __init__(self, resource: str, device_id: str, card: str) -> None:
        super().__init__(f"{resource}: device {device_id!r} is on card {card}, which is unhealthy")


class UnhealthyCard(DeviceError):
    """The card that HAMi's scheduler assigned is unhealthy, whatever device the kubelet chose."""

    def __init__(self, resource: str, card: str) -> None:
        super().__init__(f"{resource}: the assigned card {card} is unhealthy")


class NotAssigned(DeviceError):
    """HAMi's scheduler has assigned nothing that fits the request, or it can't be learnt."""
