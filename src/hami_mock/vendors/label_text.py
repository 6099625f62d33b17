"""What Kubernetes takes for a label, and names made into values. Pure."""

import re

LONGEST = 63
"""Of a value, and of a name without its domain."""

# Whoever may write the annotation that says which labels are ours could let us remove any other.
_OURS = re.compile(
    r"(gpu|ascend|dcu|mlu|accelerator|accelerator-type|host-arch|servertype)"
    r"|(nvidia\.com|amd\.com|beta\.amd\.com|iluvatar\.com|metax-tech\.com|mind-cluster"
    r"|run\.ai|karpenter\.k8s\.aws)/.+"
    r"|feature\.node\.kubernetes\.io/pci-.+|node\.kubernetes\.io/npu\..+"
    r"|cloud\.google\.com/gke-(accelerator|gpu|max-shared).*"
    r"|k8s\.amazonaws\.com/accelerator|eks\.amazonaws\.com/instance-(gpu|accelerator)-.+"
    r"|kubernetes\.azure\.com/accelerator"
)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
)
_NOT_IN_VALUES = re.compile(r"[^A-Za-z0-9_. -]")


def may_be_ours(key: str) -> bool:
    """Tell whether a label is one that some set has."""
    return len(key) <= 317 and _OURS.fullmatch(key) is not None and is_label(key, "")


def is_label(key: str, value: str) -> bool:
    """Tell whether the API server takes a label."""
    domain, slash, name = key.rpartition("/")
    return (
        _NAME.fullmatch(name) is not None
        and (not slash or _DOMAIN.fullmatch(domain) is not None)
        and (not value or _NAME.fullmatch(value) is not None)
    )


def label_value(text: str, *ends: str, longest: int = LONGEST) -> str:
    """Make a value of a name, as GFD does: what isn't allowed goes, spaces become dashes.

    The ends are joined to it with dashes, and stay whole where it is too long.
    """
    end = "".join(f"-{part}" for part in ends)
    clean = "-".join(_NOT_IN_VALUES.sub("", text).split())
    return f"{clean[: longest - len(end)]}{end}".strip("-_.")
