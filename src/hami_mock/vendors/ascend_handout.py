"""What Ascend's plugin gives a container: a vNPU by a template, or what HAMi's library allows."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hami_mock.hami.errors import Malformed
from hami_mock.hami.go_values import INT32, INT64, Fields, json_list
from hami_mock.hami.kinds import HAMI_CORE
from hami_mock.vendors.handout import Container, Given, environment

_POD_MODE = "huawei.com/vnpu-mode"
_SOFT = (
    ("NPU_MEM_QUOTA", "{quota}"),
    ("NPU_PRIORITY", "{priority}"),
    ("NPU_GLOBAL_SHM_PATH", "/hami-shared-region/{first}_global_registry"),
    ("NPU_LOCAL_SHM_PATH", "/hami-vnpu-shmem/vnpu_local_shmem"),
)
_TEMPLATE = (("ASCEND_VNPU_SPECS", "{template}"),)


class _Part(NamedTuple):
    """What a pod gets of a card. What is empty or 0 the scheduler doesn't write."""

    template: str
    memory: int
    cores: int


def hand_out(container: Container) -> Given:
    """Read what the scheduler has written by card: of a card in two containers the last counts.

    Raises Malformed for what the plugin refuses.
    """
    annotation = f"huawei.com/{container.hami.word}"
    if annotation not in container.annotations:
        raise Malformed(f"the annotation {annotation} is missing: HAMi's scheduler writes it")
    parts = _parts(container.annotations[annotation])
    own = [parts[device.id] for device in container.devices if device.id in parts]
    if container.annotations.get(_POD_MODE) != HAMI_CORE:
        return Given(environment(container, _TEMPLATE, template=_first(p.template for p in own)))
    words = {
        "quota": _first(part.memory for part in own),
        "priority": _first(part.cores for part in own),
        "first": container.visible[0],
    }
    return Given(environment(container, _SOFT, **words))


def _parts(text: str) -> Mapping[str, _Part]:
    rows = [Fields(row, f"device {i}") for i, row in enumerate(json_list(text))]
    return {
        row.get("UUID", str): _Part(
            row.get("temp", str), row.get("memory", INT64), row.get("core", INT32)
        )
        for row in rows
    }


def _first(values: Iterable[object]) -> str:
    """Return the first that there is; "": none."""
    return str(next(filter(None, values), ""))
