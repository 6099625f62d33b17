"""AWS Neuron."""

from hami_mock.vendors.scheduling import ConfigKeys, PodAnnotations, Scheduling
from hami_mock.vendors.vendor import Offer, Role, Vendor, core_offer

AWS_NEURON = Vendor(
    maker="awsneuron",
    title="AWS Neuron",
    model="Inferentia2",
    uuid_format="{uuid}",
    words=("AWSNeuron",),
    split=1,
    is_whole=True,
    offers=(
        Offer(Role.SLOTS, "aws.amazon.com/neuron", "awsneuron-resource-name"),
        # The scheduler divides a node's cores by its cards: 2 on Inferentia2, 4 on the first.
        core_offer("awsneuron", "aws.amazon.com/neuroncore", "N", per_card=None),
    ),
    hami=Scheduling(pods=PodAnnotations("hami.io/aws-neuron-devices-allocated")),
    config=ConfigKeys("awsneuron", cores="resourceCoreName"),
)
