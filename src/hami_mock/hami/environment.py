"""The environment variables that a vendor's plugin gives to a container, from data."""

from collections.abc import Iterable, Sequence

from hami_mock.hami.assignment import AssignedDevice


def variables(
    templates: Iterable[tuple[str, str]], devices: Sequence[AssignedDevice], **words: str
) -> dict[str, str]:
    """Fill in pairs of name and value with the first device's {memory} (MiB) and {cores}.

    A name with {i} is set for each device. A variable that would be empty isn't set.
    """
    found: dict[str, str] = {}
    for name, value in templates:
        for i, device in enumerate(devices if "{i}" in name else devices[:1]):
            found[name.format(i=i)] = value.format(
                memory=device.memory, cores=device.cores, **words
            )
    return {name: value for name, value in found.items() if value}
