"""Pools of a node's devices, and claims of them as the API server has them."""

from typing import Any

from hami_mock.node.state import NodeState
from hami_mock.vendors.dra import DraDriver, Profile, driver_of
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.slices import contents, spec
from tests.unit.builders import NODE, laid_out

DRIVER_VERSION = "580.95.05"
HAMI, NVIDIA, EXAMPLE = Profile.HAMI, Profile.NVIDIA, Profile.EXAMPLE
ONLY_NVIDIA = {"mlu_cards": 0, "iluvatar_cards": 0, "ascend_cards": 0}


def state_of(model: str = "A100-SXM4-80GB", cards: int = 2, **flags: Any) -> NodeState:
    own: dict[str, Any] = {
        "nvidia_cards": cards,
        "nvidia_model": model,
        "nvidia_memory_factor": 1024,
    }
    return NodeState(laid_out(**{**ONLY_NVIDIA, **own, **flags}))


def pool_of(state: NodeState, profile: Profile = HAMI) -> Pool:
    """The pool of the node's first card."""
    driver = driver_of(state.node.cards[0].vendor, profile)
    assert driver is not None
    return Pool(driver, profile, state, DRIVER_VERSION)


def specs(pool: Pool, generation: int = 1, **options: Any) -> list[dict[str, Any]]:
    made = contents(pool.driver, pool.devices.values(), **options)
    return [spec(pool.driver, pool.name, each, generation, len(made)) for each in made]


def devices(pool: Pool, **options: Any) -> dict[str, dict[str, Any]]:
    """All devices of all slices, by name."""
    found = [each for one in specs(pool, **options) for each in one.get("devices", [])]
    return {each["name"]: each for each in found}


def result(driver: DraDriver, device: str, request: str = "gpu", **more: Any) -> dict[str, Any]:
    """What the scheduler writes of a device that it has chosen."""
    return {"request": request, "driver": driver.name, "pool": NODE, "device": device, **more}


def claim(*results: dict[str, Any], name: str = "c", uid: str = "u-1") -> dict[str, Any]:
    allocation = {"devices": {"results": [*results]}}
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {}, "status": {"allocation": allocation}}
