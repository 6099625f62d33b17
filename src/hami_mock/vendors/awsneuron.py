"""AWS Neuron."""

from hami_mock.vendors.scheduling import ConfigSection, PodAnnotations, Scheduling
from hami_mock.vendors.vendor import Vendor, core_offer, slot_offer

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
    hami=Scheduling(pods=PodAnnotations("hami.io/aws-neuron-devices-allocated")),
    config=ConfigSection("awsneuron"),
)
