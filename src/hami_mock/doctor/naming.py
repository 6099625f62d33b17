"""Are the names the ones that HAMi looks for?"""

from collections.abc import Iterable, Iterator
from itertools import islice

from hami_mock.doctor.case import NodeCase, names_of, vendors_of
from hami_mock.doctor.finding import Finding, error, warning
from hami_mock.doctor.pod_object import PodObject
from hami_mock.kit.similar import similar
from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.vendors import VENDORS

# What the plugins of some vendors register that HAMi doesn't look at, but its mock does.
_OF_OTHER_PLUGINS = frozenset(vendor.counted.source for vendor in VENDORS if vendor.counted)
# Below it, other resources of the same vendor look alike: nvidia.com/gpu and nvidia.com/gpu.shared.
_SIMILARITY = 0.85
# Nobody has more of them, and each is compared with all that are known.
_MOST = 200


def node_names(case: NodeCase) -> Iterator[Finding]:
    """The node's resources have the names of the device configuration."""
    # A name with nothing behind it was left there by an earlier configuration.
    names = [name for name, amount in case.node.capacity.items() if amount]
    for name, known in _strangers(names, case.config):
        yield warning(
            name,
            "the node has this resource, but HAMi doesn't know the name",
            f"did you mean {known}? Give the plugin that registers it the names from the device "
            "configuration"
            if known
            else "give its plugin the names from the device configuration (--device-config-file)",
        )


def pod_names(pod: PodObject, config: DeviceConfig | None) -> Iterator[Finding]:
    """The pod asks for resources that HAMi knows."""
    for container in pod.containers:
        for name, known in _strangers(container.asks, config):
            told = f"it asks for {name}, a name that HAMi doesn't know"
            other = (
                f"did you mean {known}?" if known else "use the names from the device configuration"
            )
            yield error(f"container {container.name}", told, other)


def _strangers(names: Iterable[str], config: DeviceConfig | None) -> Iterator[tuple[str, str]]:
    """Yield names that look like HAMi's but aren't, with what they may have been meant to be.

    Most resources of a node are nobody's business here. Strange is what is almost a known name, or
    is one that this configuration has renamed.
    """
    known = _known(config)
    ours = known | _OF_OTHER_PLUGINS
    renamed = _known(None) | {offer.name for vendor in VENDORS for offer in vendor.offers}
    unknown = (each for each in names if "/" in each and each not in ours)
    for name in islice(unknown, _MOST):
        close = next(iter(similar(name, sorted(known), cutoff=_SIMILARITY)), "")
        if config is not None if name in renamed else close:
            yield name, close


def _known(config: DeviceConfig | None) -> set[str]:
    return {name for vendor in vendors_of(config) for name in names_of(vendor)}
