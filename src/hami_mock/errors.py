"""Everything that can go wrong on purpose, and who must act.

::

    HamiMockError
    ├── UsageError          the user: a flag, a variable or a file is wrong (exit code 2)
    ├── StartError          the operator: this machine can't give what we need (exit code 1)
    ├── KubeletError        nobody: the lifecycle tries again and says so in the log and /readyz
    │   ├── KubeletAbsent   the kubelet isn't listening (yet)
    │   └── Refused         the kubelet answered and said no
    └── DeviceError         the kubelet: it asked for a device that can't be given (a gRPC error)
        ├── UnknownDevice
        └── UnhealthyDevice
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
