"""Everything that can go wrong on purpose, and who must act.

::

    HamiMockError
    ├── UsageError          the user: a flag, a variable or a file is wrong (exit code 2)
    ├── StartError          the operator: this machine can't give what we need (exit code 1)
    ├── KubeletError        nobody: the lifecycle tries again and says so in the log and /readyz
    │   ├── KubeletAbsent   the kubelet isn't listening (yet)
    │   └── Refused         the kubelet answered and said no
    ├── ClusterError        nobody: what the API server didn't do is tried again, and logged
    │   ├── NotThere        there is no such object
    │   ├── Conflict        the object was changed in between
    │   ├── Away            no answer, or a server that isn't well
    │   └── NotAllowed      the operator: a rule is missing in the agent's role
    └── DeviceError         the kubelet: it asked for a device that can't be given (a gRPC error)
        ├── UnknownDevice
        ├── UnhealthyDevice
        └── NotAssigned     HAMi has assigned nothing that fits, or it can't be learnt
"""

from collections.abc import Iterable


class HamiMockError(Exception):
    """The root of all errors that this program raises itself."""


class UsageError(HamiMockError):
    """The input is wrong; `problems` has one line for each mistake found."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class StartError(HamiMockError):
    """The input is right, but this machine can't serve it (a port in use, say)."""


class KubeletError(HamiMockError):
    """The kubelet didn't take the registration; it is tried again."""


class KubeletAbsent(KubeletError):
    """Nobody listens on the kubelet's socket."""


class Refused(KubeletError):
    """The kubelet listens and refused, or dropped what it had accepted."""


class ClusterError(HamiMockError):
    """The API server didn't do what it was asked for."""


class NotThere(ClusterError):
    """The object doesn't exist (any more)."""


class Conflict(ClusterError):
    """The object isn't the one that was read: somebody changed it in between."""


class Away(ClusterError):
    """The API server can't be reached, is overloaded, or has an error of its own."""


class NotAllowed(ClusterError):
    """The API server knows us too little for that; the text says which rule is missing."""


class DeviceError(HamiMockError):
    """A request names a device that can't be given."""


class UnknownDevice(DeviceError):
    """The ID belongs to no device of the resource."""

    def __init__(self, resource: str, device_id: str) -> None:
        super().__init__(f"{resource}: there is no device {device_id!r}")


class UnhealthyDevice(DeviceError):
    """The device exists, but its card is unhealthy."""

    def __init__(self, resource: str, device_id: str, card: str) -> None:
        super().__init__(f"{resource}: device {device_id!r} is on card {card}, which is unhealthy")


class NotAssigned(DeviceError):
    """HAMi's scheduler has assigned no devices that the kubelet's request could be for."""
