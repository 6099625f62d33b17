"""Print what nvitop's own objects see."""

from nvitop import Device

for card in Device.all():
    with card.oneshot():
        found = (
            card.index,
            card.uuid(),
            card.name(),
            card.memory_total(),
            card.memory_used(),
            card.gpu_utilization(),
            card.power_usage(),
            card.temperature(),
        )
    print(*found, sep="\t")
