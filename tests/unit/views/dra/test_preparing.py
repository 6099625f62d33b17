"""Claims: what they get, what they are refused, what containers see of them, and what is kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from hami_mock.faults.actions import Action, perform
from hami_mock.node.claims import PreparedClaim
from hami_mock.views.dra.cdi import CdiError, CdiFolder, cdi_spec, device_id
from hami_mock.views.dra.checkpoint import NAME, Checkpoint
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.preparing import ClaimError, prepare
from tests.unit.views.dra.rig import EXAMPLE, NVIDIA, claim, pool_of, result, state_of


def share(pool: Pool, device: str, memory: str = "30Gi", cores: str = "30") -> dict[str, Any]:
    consumed = {"memory": memory, pool.driver.cores: cores}
    return result(pool.driver, device, shareID=f"s-{device}", consumedCapacity=consumed)


def prepared(pool: Pool, *results: dict[str, Any], uid: str = "u-1") -> PreparedClaim:
    return prepare(claim(*results, uid=uid), uid, pool)


def environment(pool: Pool, made: PreparedClaim) -> list[dict[str, str]]:
    """The variables of each request."""
    spec = cdi_spec(pool, made)
    return [
        dict(pair.split("=", 1) for pair in device["containerEdits"]["env"])
        for device in spec["devices"]
    ]


def test_a_claim_gets_its_part_of_a_card() -> None:
    pool = pool_of(state_of())
    made = prepared(pool, share(pool, "hami-gpu-1"))
    (device,) = made.devices
    assert (device.memory, device.cores, device.share) == (30720, 30, "s-hami-gpu-1")
    assert device.card == pool.state.node.cards[1].uuid
    assert made.key == ("hami-core-gpu.project-hami.io", "default/c")


def test_a_claim_without_capacities_gets_the_card() -> None:
    pool = pool_of(state_of(), NVIDIA)
    (device,) = prepared(pool, result(pool.driver, "gpu-0")).devices
    assert (device.memory, device.cores, device.share) == (81920, 100, "")


def test_a_claim_of_an_instance_gets_its_memory_and_cores() -> None:
    pool = pool_of(state_of(nvidia_mig=""), NVIDIA)
    (device,) = prepared(pool, result(pool.driver, "gpu-0-mig-3g40gb-9-4")).devices
    assert device.instance is not None
    assert (device.instance.profile, device.instance.start) == ("3g.40gb", 4)
    assert device.instance.gpu_instance == 2
    assert (device.memory, device.cores) == (device.instance.memory, 43)


def test_other_drivers_devices_in_a_claim_are_passed_over() -> None:
    pool = pool_of(state_of(), NVIDIA)
    other = {"request": "nic", "driver": "nic.example.com", "pool": "x", "device": "y"}
    made = prepared(pool, other, result(pool.driver, "gpu-1"))
    assert [each.name for each in made.devices] == ["gpu-1"]


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (claim(uid="other"), "its UID is other now, not u-1: it was deleted and made again"),
        ({"metadata": {"uid": "u-1"}}, "the scheduler has allocated nothing to it"),
        (claim(), "nothing in it is allocated by gpu.nvidia.com"),
        (claim({"driver": "gpu.nvidia.com", "pool": "x", "device": "gpu-0"}), "in the pool x"),
        (
            claim({"driver": "gpu.nvidia.com", "pool": "node-a", "device": "gpu-9"}),
            "there is no device gpu-9 any more",
        ),
        ({"metadata": {"uid": "u-1"}, "status": {"allocation": {"devices": 5}}}, "nothing in it"),
    ],
)
def test_a_claim_that_cant_be_met_says_why(thing: dict[str, Any], reason: str) -> None:
    with pytest.raises(ClaimError, match=reason):
        prepare(thing, "u-1", pool_of(state_of(), NVIDIA))


def test_a_lost_card_is_refused_and_an_unhealthy_one_is_not() -> None:
    state = state_of()
    pool = pool_of(state, NVIDIA)
    perform(Action("fail", ("nvidia/0",)), state)
    assert prepared(pool, result(pool.driver, "gpu-0")).devices
    perform(Action("lose", ("nvidia/0",)), state)
    with pytest.raises(ClaimError, match="the card of gpu-0 is lost"):
        prepared(pool, result(pool.driver, "gpu-0"))


def test_instances_of_two_claims_never_overlap() -> None:
    pool = pool_of(state_of(nvidia_mig=""), NVIDIA)
    first = prepared(pool, result(pool.driver, "gpu-0-mig-3g40gb-9-4"))
    beside = claim(result(pool.driver, "gpu-0-mig-3g40gb-9-0"), uid="u-2")
    assert prepare(beside, "u-2", pool, [first]).devices
    within = claim(result(pool.driver, "gpu-0-mig-1g10gb-19-6"), uid="u-2")
    with pytest.raises(ClaimError, match="overlaps an instance that another claim has"):
        prepare(within, "u-2", pool, [first])
    # The same claim again is no other one.
    own = claim(result(pool.driver, "gpu-0-mig-3g40gb-9-4"))
    assert prepare(own, "u-1", pool, [first]) == first


def test_hamis_limits_are_in_the_environment() -> None:
    pool = pool_of(state_of())
    made = prepared(
        pool, share(pool, "hami-gpu-0"), {**share(pool, "hami-gpu-1", "4Gi"), "request": "more"}
    )
    first, second = (card.uuid for card in pool.state.node.cards)
    gpu, more = environment(pool, made)
    assert gpu["NVIDIA_VISIBLE_DEVICES"] == first
    assert gpu["CUDA_DEVICE_MEMORY_LIMIT_0"] == "30720m"
    assert gpu["CUDA_DEVICE_SM_LIMIT_0"] == "30"
    # Of the one card that a container with this request sees, whatever else the claim has.
    assert more["NVIDIA_VISIBLE_DEVICES"] == second
    assert more["CUDA_DEVICE_MEMORY_LIMIT_0"] == "4096m"
    assert "CUDA_DEVICE_MEMORY_LIMIT_1" not in more


def test_hamis_limits_are_in_the_order_of_the_cards_that_are_visible() -> None:
    pool = pool_of(state_of())
    first, second = (card.uuid for card in pool.state.node.cards)
    parts = [share(pool, f"hami-gpu-{card}", size) for card, size in ((1, "4Gi"), (0, "1Gi"))]
    again = share(pool, "hami-gpu-1", "2Gi", "80") | {"shareID": "another"}
    (variables,) = environment(pool, prepared(pool, *parts, again))
    assert variables["NVIDIA_VISIBLE_DEVICES"] == f"{second},{first}"
    limits = {name[12:]: value for name, value in variables.items() if "_LIMIT_" in name}
    assert limits == {
        "MEMORY_LIMIT_0": "6144m",
        "SM_LIMIT_0": "100",
        "MEMORY_LIMIT_1": "1024m",
        "SM_LIMIT_1": "30",
    }


def test_all_cards_of_a_request_are_visible() -> None:
    pool = pool_of(state_of(), NVIDIA)
    made = prepared(pool, result(pool.driver, "gpu-0"), result(pool.driver, "gpu-1"))
    (variables,) = environment(pool, made)
    uuids = [card.uuid for card in pool.state.node.cards]
    assert variables == {"NVIDIA_VISIBLE_DEVICES": ",".join(uuids)}
    assert {device_id(pool.driver, made, each) for each in made.devices} == {
        "k8s.gpu.nvidia.com/claim=u-1-gpu"
    }


def test_a_request_goes_by_its_own_name_whichever_alternative_was_had() -> None:
    pool = pool_of(state_of(), NVIDIA)
    made = prepared(pool, result(pool.driver, "gpu-0", "gpu/large"))
    (device,) = made.devices
    assert device.request == "gpu"
    assert device_id(pool.driver, made, device) == "k8s.gpu.nvidia.com/claim=u-1-gpu"
    assert [each["name"] for each in cdi_spec(pool, made)["devices"]] == ["u-1-gpu"]


def test_an_instance_is_visible_by_its_own_name() -> None:
    pool = pool_of(state_of(nvidia_mig=""), NVIDIA)
    made = prepared(pool, result(pool.driver, "gpu-0-mig-1g10gb-19-0"))
    (variables,) = environment(pool, made)
    assert made.devices[0].instance is not None
    assert variables == {"NVIDIA_VISIBLE_DEVICES": made.devices[0].instance.uuid}


def test_ascends_quota_is_set_where_a_chip_is_shared() -> None:
    chips: dict[str, Any] = {"nvidia_cards": 0, "ascend_cards": 2}
    pool = pool_of(state_of(**chips, ascend_mode="hami-core"))
    (variables,) = environment(pool, prepared(pool, share(pool, "npu-1-0", "8Gi", "25")))
    assert variables["ASCEND_VISIBLE_DEVICES"] == "1"
    assert variables["NPU_MEM_QUOTA"] == "8192"
    assert variables["NPU_PRIORITY"] == "25"
    whole = pool_of(state_of(**chips))
    (variables,) = environment(whole, prepared(whole, result(whole.driver, "npu-1-0")))
    assert variables == {"ASCEND_VISIBLE_DEVICES": "1"}


def test_the_examples_variables() -> None:
    pool = pool_of(state_of(), EXAMPLE)
    (variables,) = environment(pool, prepared(pool, share(pool, "gpu-1", "2Gi", "20")))
    assert variables["GPU_DEVICE_1"] == "gpu-1"
    assert variables["GPU_DEVICE_1_MEMORY"] == "2Gi"
    assert variables["GPU_DEVICE_1_COMPUTE"] == "20"
    assert variables["GPU_DEVICE_GPU_1_RESOURCE_CLAIM"] == "u-1"
    assert variables["KUBERNETES_NODE_NAME"] == "node-a"
    assert variables["DRA_ADMIN_ACCESS"] == "false"


def test_what_the_driver_gives_is_in_the_spec() -> None:
    pool = pool_of(state_of(), NVIDIA)
    made = prepared(pool, result(pool.driver, "gpu-1"))
    seen = []

    def gives(cards: Any) -> Any:
        seen.append([card.name for card in cards])
        return [("/host/lib.so", "/lib.so")], [("/host/dev/nvidia1", "/dev/nvidia1")]

    spec = cdi_spec(pool, made, gives)
    edits = spec["devices"][0]["containerEdits"]
    assert seen == [["nvidia/1"]]
    assert edits["mounts"][0]["hostPath"] == "/host/lib.so"
    assert edits["deviceNodes"] == [
        {"path": "/dev/nvidia1", "hostPath": "/host/dev/nvidia1", "permissions": "rw"}
    ]


def test_specs_come_and_go_in_the_runtimes_folder(tmp_path: Path) -> None:
    pool = pool_of(state_of(), NVIDIA)
    folder = CdiFolder(str(tmp_path / "cdi"))
    made = prepared(pool, result(pool.driver, "gpu-1"))
    folder.write(pool.driver, "u-1", cdi_spec(pool, made))
    (file,) = (tmp_path / "cdi").iterdir()
    assert file.name == "k8s.gpu.nvidia.com-claim_u-1.json"
    assert json.loads(file.read_text())["kind"] == "k8s.gpu.nvidia.com/claim"
    folder.remove(pool.driver, "u-1")
    folder.remove(pool.driver, "u-1")
    assert not [*(tmp_path / "cdi").iterdir()]


def test_a_folder_that_cant_be_written_names_the_flag(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("")
    pool = pool_of(state_of(), NVIDIA)
    with pytest.raises(CdiError, match=r"--cdi-dir: .* can't be written"):
        CdiFolder(str(tmp_path / "cdi")).write(pool.driver, "u-1", {})


def test_without_a_folder_nothing_is_written() -> None:
    folder = CdiFolder("")
    assert not folder
    folder.write(pool_of(state_of()).driver, "u-1", {})
    folder.remove(pool_of(state_of()).driver, "u-1")


def test_prepared_claims_survive_in_a_file(tmp_path: Path) -> None:
    pool = pool_of(state_of(nvidia_mig=""), NVIDIA)
    parts = result(pool.driver, "gpu-0-mig-3g40gb-9-4"), result(pool.driver, "gpu-1")
    made = prepared(pool, *parts)
    Checkpoint(tmp_path).write([made])
    assert Checkpoint(tmp_path).read() == (made,)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 9}', '{"version": 1, "claims": [{"key": 1}]}']
)
def test_a_file_that_cant_be_understood_is_passed_over(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAME).write_text(text)
    assert Checkpoint(tmp_path).read() == ()
    assert "who holds its claims" in caplog.text


def test_no_file_is_no_mistake(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert Checkpoint(tmp_path).read() == ()
    assert not caplog.text
