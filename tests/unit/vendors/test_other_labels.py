"""What other makers' own labellers write."""

import platform

import pytest

from hami_mock.vendors import VENDORS, Vendor
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
    versions = [f"iluvatar.com/ix.driver-version.{part}" for part in ("major", "minor", "revision")]
    full = ".".join(found[version] for version in versions)
    assert found["iluvatar.com/ix.driver-version.full"] == full == "4.4.0"


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
    ("name", "models", "shown"),
    [
        ("amd", "MI300X MI325X", "1002 1200_1002"),
        ("amd", "MI300X MI210 MI250X", "1002 0380_1002 1200_1002"),
        ("ascend", "Ascend910B3", "19e5 1200_19e5"),
        ("hygon", "K100-AI K100", "1d94 0b40_1d94"),
        ("hygon", "Z100L", "1d94 0380_1d94"),
        ("iluvatar", "BI-V150", "1e3e 1200_1e3e"),
        ("metax", "C500", "9999 0380_9999"),
        ("metax-gpu", "C500", "9999 0380_9999"),
        ("enflame-gcu", "S60", "1e36 1200_1e36"),
        ("mthreads", "MTT-S3000", "1ed5 0300_1ed5"),
        # Nobody tells their class.
        ("mthreads", "MTT-S4000", "1ed5"),
        ("cambricon", "MLU370-X8", "cabc"),
        ("kunlun", "P800", "1d22"),
        ("vastai", "VA16", "1ec6"),
        ("awsneuron", "Trainium1", "1d0f"),
        ("biren", "BR106", ""),
    ],
)
def test_nfd_sees_the_makers_pci_id_and_the_class(name: str, models: str, shown: str) -> None:
    found = made(BY_NAME[name], LabelSet.NFD, *models.split())
    assert found == {
        f"feature.node.kubernetes.io/pci-{each}.present": "true" for each in shown.split()
    }
