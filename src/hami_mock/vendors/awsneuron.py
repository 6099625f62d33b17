"""AWS Neuron."""

from collections.abc import Mapping

from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import CardsHere, Labelling, LabelSet
from hami_mock.vendors.scheduling import ConfigSection, PodAnnotations, Scheduling
from hami_mock.vendors.vendor import Vendor, core_offer, slot_offer


def _labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    from hami_mock.vendors import awsneuron_labels

    return awsneuron_labels.labels(wanted, here)


AWS_NEURON = Vendor(
    maker="awsneuron",
    title="AWS Neuron",
    model="Inferentia2",
    uuid_format="{uuid}",
    words=("AWSNeuron",),
    split=1,
    is_whole=True,
    offers=(
        slot_offer("awsneuron", "aws.amazon.com/neuron"),
        # The scheduler divides a node's cores by its cards: 2 on Inferentia2, 4 on the first.
        core_offer("awsneuron", "aws.amazon.com/neuroncore", "N", per_card=None),
    ),
    hami=Scheduling(
        pods=PodAnnotations("hami.io/aws-neuron-devices-allocated"),
        asking=Asking(selectors=selectors("aws.amazon.com", "neuron-uuid"), no_memory=True),
    ),
    labels=Labelling(pci="1d0f", make=_labels),
    config=ConfigSection("awsneuron"),
)
