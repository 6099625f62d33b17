"""What Karpenter and EKS call AWS' own accelerators."""

from collections.abc import Mapping

from hami_mock.vendors.labelling import CardsHere, LabelSet

_NAMES = {
    "Inferentia1": "inferentia",
    "Inferentia2": "inferentia2",
    "Trainium1": "trainium",
    "Trainium2": "trainium2",
}
_PREFIXES = {LabelSet.EKS: "eks.amazonaws.com", LabelSet.KARPENTER: "karpenter.k8s.aws"}


def labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    prefix, name = _PREFIXES.get(wanted), _NAMES.get(here.cards[0].model.name)
    if not (prefix and name):
        return {}
    return {
        f"{prefix}/instance-accelerator-name": name,
        f"{prefix}/instance-accelerator-manufacturer": "aws",
        f"{prefix}/instance-accelerator-count": str(len(here.cards)),
    }
