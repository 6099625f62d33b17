"""What other makers' own labellers write."""

import platform

import pytest

from hami_mock.vendors import VENDORS, Vendor, catalog
from hami_mock.vendors.labelling import CardsHere, LabelSet
from tests.makers import AMD, ASCEND, AWS_NEURON, BY_NAME, ILUVATAR
from tests.unit.vendors.labelled import cards_of


def made(vendor: Vendor, label_set: LabelSet, *models: str, now: int = 0) -> dict[str, str]:
    return vendor.labels.of(label_set, CardsHere(cards_of(vendor.maker, *models), now=now))


def test_amd_counts_the_cards_of_each_value_and_tells_the_only_one() -> None:
    assert made(AMD, LabelSet.VENDORS, *["MI300X"] * 8) == {
        "amd.com/gpu.cu-count": "304",
        "amd.com/gpu.device-id": "74a1",
        "amd.com/gpu.family": "AI",
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X",
        "amd.com/gpu.simd-count": "1216",
        "amd.com/gpu.vram": "192G",
        "beta.amd.com/gpu.cu-count": "304",
        "beta.amd.com/gpu.cu-count.304": "8",
        "beta.amd.com/gpu.device-id": "74a1",
        "beta.amd.com/gpu.device-id.74a1": "8",
        "beta.amd.com/gpu.family": "AI",
        "beta.amd.com/gpu.family.AI": "8",
        "beta.amd.com/gpu.product-name": "AMD_Instinct_MI300X",
        "beta.amd.com/gpu.product-name.AMD_Instinct_MI300X": "8",
        "beta.amd.com/gpu.simd-count": "1216",
        "beta.amd.com/gpu.simd-count.1216": "8",
        "beta.amd.com/gpu.vram": "192G",
        "beta.amd.com/gpu.vram.192G": "8",
    }


def test_of_amds_mixed_cards_only_the_counts_are_told() -> None:
    found = made(AMD, LabelSet.VENDORS, "MI300X", "MI210", "MI210")
    assert found["beta.amd.com/gpu.vram.192G"] == found["amd.com/gpu.vram.192G"] == "1"
    assert found["amd.com/gpu.vram.64G"] == "2"
    assert "amd.com/gpu.vram" not in found
    assert found["amd.com/gpu.family"] == "AI"


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("Ascend910A", "huawei-Ascend910 module Ascend910-30 910A 32G"),
        ("Ascend910B3", "huawei-Ascend910 module-910b-8 Ascend910B-20 910B3 64G"),
        ("Ascend910C", "huawei-Ascend910 module-a3-16 Ascend910A3-20 Ascend910 64G"),
        ("Ascend310P", "huawei-Ascend310P card Ascend310P-8 310P3"),
    ],
)
def test_ascend_has_mindclusters_labels(model: str, told: str) -> None:
    found = made(ASCEND, LabelSet.VENDORS, model)
    assert found.pop("host-arch") in ("huawei-arm", "huawei-x86")
    assert " ".join(found.values()) == told
    assert (
        list(found)
        == [
            "accelerator",
            "accelerator-type",
            "servertype",
            "node.kubernetes.io/npu.chip.name",
            "mind-cluster/npu-chip-memory",
        ][: len(found)]
    )


def test_ascend_tells_an_arm_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert made(ASCEND, LabelSet.VENDORS, "Ascend910B3")["host-arch"] == "huawei-arm"


def test_iluvatar_has_those_of_its_own_discovery() -> None:
    found = made(ILUVATAR, LabelSet.VENDORS, "MR-V100", "BI-V150", "BI-V150", now=1731665058)
    told = {key: value for key, value in found.items() if "version" not in key}
    assert told == {
        "iluvatar.com/gpu.present": "true",
        "iluvatar.com/gpu.count": "2",
        "iluvatar.com/gpu.product": "BI-V150",
        "iluvatar.com/gpu.memory": "65536",
        "iluvatar.com/gpu.machine": "hami-mock",
        "iluvatar.com/ix.timestamp": "1731665058",
    }
    assert found["iluvatar.com/ix.driver-version.full"] == "4.2.0"


def test_aws_calls_its_own_accelerators_by_name() -> None:
    assert made(AWS_NEURON, LabelSet.KARPENTER, "Trainium1", "Trainium1") == {
        "karpenter.k8s.aws/instance-accelerator-name": "trainium",
        "karpenter.k8s.aws/instance-accelerator-manufacturer": "aws",
        "karpenter.k8s.aws/instance-accelerator-count": "2",
    }
    assert made(AWS_NEURON, LabelSet.GKE, "Trainium1") == {}


def test_hami_selects_the_nodes_of_five_makers() -> None:
    found = {vendor.name: made(vendor, LabelSet.HAMI, vendor.model) for vendor in VENDORS}
    assert {name: labels for name, labels in found.items() if labels} == {
        "nvidia": {"gpu": "on"},
        "cambricon": {"mlu": "on"},
        "ascend": {"ascend": "on"},
        "hygon": {"dcu": "on"},
        "metax": {"metax-tech.com/gpu.installed": "true"},
        "metax-gpu": {"metax-tech.com/gpu.installed": "true"},
    }


@pytest.mark.parametrize(
    ("name", "pci"),
    [("amd", "1002"), ("ascend", "19e5"), ("hygon", "1d94"), ("mthreads", "1ed5"),
     ("enflame-gcu", "1e36"), ("kunlun", "1d22"), ("awsneuron", "1d0f")],
)  # fmt: skip
def test_nfd_sees_the_makers_pci_id(name: str, pci: str) -> None:
    vendor = BY_NAME[name]
    first = next(iter(catalog.models()[vendor.maker]))
    found = made(vendor, LabelSet.NFD, first)
    assert found == {f"feature.node.kubernetes.io/pci-{pci}.present": "true"}
