"""Nodes and pods for the doctor: well ones, to be made ill by the tests."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hami_mock.doctor.case import NodeCase, PodCase
from hami_mock.doctor.finding import Finding
from hami_mock.doctor.pod_object import PodObject
from hami_mock.settings.hami_config import device_config
from hami_mock.settings.hami_config.device_config import DeviceConfig

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
NVIDIA = "hami.io/node-nvidia-register"
DCU = "hami.io/node-dcu-register"
HANDSHAKE = "hami.io/node-handshake"
ALLOCATED = "hami.io/vgpu-devices-allocated"
RESOURCES = {
    "nvidia.com/gpu": "20",
    "nvidia.com/gpumem": "65536",
    "nvidia.com/gpucores": "200",
    "nvidia.com/gpumem-percentage": "200",
}


def ago(**spans: float) -> datetime:
    return NOW - timedelta(**spans)


def requested(**spans: float) -> str:
    return f"Requesting_{ago(**spans):%Y-%m-%d %H:%M:%S}"


def card(card_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": card_id,
        "count": 10,
        "devmem": 32768,
        "devcore": 100,
        "type": "NVIDIA-Tesla V100",
        "mode": "hami-core",
        "health": True,
        **changes,
    }


CARDS = (card("GPU-1"), card("GPU-2", index=1))


def node(
    *cards: Mapping[str, Any],
    annotations: Mapping[str, str | None] | None = None,
    resources: Mapping[str, str | None] | None = None,
    allocatable: Mapping[str, str | None] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A node that is well, with changes; None takes something away."""
    own = {NVIDIA: json.dumps(cards or CARDS), HANDSHAKE: requested(seconds=5)}
    noted = {**own, **(annotations or {})}
    capacity = {**RESOURCES, "cpu": "8", "memory": "32Gi", **(resources or {})}
    return {
        "kind": "Node",
        "metadata": {"name": "n1", "annotations": _present(noted)},
        "spec": {},
        "status": {
            "capacity": _present(capacity),
            "allocatable": _present({**capacity, **(allocatable or {})}),
            "nodeInfo": {"kubeletVersion": "v1.35.8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
        **more,
    }


def pod(
    *limits: Mapping[str, Any],
    name: str = "p1",
    annotations: Mapping[str, str] | None = None,
    init: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod that HAMi's scheduler has yet to place; one container for each limits."""
    asked = limits or ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"},)
    return {
        "kind": "Pod",
        "metadata": {
            "namespace": "default",
            "name": name,
            "annotations": dict(annotations or {}),
            "labels": dict(labels or {}),
        },
        "spec": {
            "schedulerName": "hami-scheduler",
            "initContainers": [_container("init", init)] if init else [],
            "containers": [_container(f"c{i}", each) for i, each in enumerate(asked)],
            **spec,
        },
        "status": {"phase": "Pending", **(status or {})},
    }


def assigned(text: str = "GPU-1,NVIDIA,1000,0:;", **annotations: str) -> dict[str, str]:
    """What HAMi's scheduler writes to a pod."""
    return {
        "hami.io/vgpu-node": "n1",
        "hami.io/bind-time": str(int(ago(seconds=5).timestamp())),
        "hami.io/bind-phase": "allocating",
        ALLOCATED: text,
        **{f"hami.io/{name.replace('_', '-')}": value for name, value in annotations.items()},
    }


def case(
    document: Mapping[str, Any],
    pods: list[dict[str, Any]] | None = None,
    config: DeviceConfig | None = None,
) -> NodeCase:
    read = None if pods is None else [PodObject.read(each) for each in pods]
    return NodeCase(document, NOW, config, read)


def pod_case(
    document: Mapping[str, Any],
    on: Mapping[str, Any] | None = None,
    others: list[dict[str, Any]] | None = None,
    config: DeviceConfig | None = None,
) -> PodCase:
    around = case(on, [*(others or []), dict(document)], config) if on is not None else None
    return PodCase(PodObject.read(document), NOW, around, config)


def config(text: str) -> DeviceConfig:
    return device_config.parse(text, "config")


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(str(finding.severity), finding.where) for finding in findings]


def _container(name: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": dict(limits)}}


def _present(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
