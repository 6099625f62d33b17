"""GFD's labels by model, and where models are mixed. Names and forms are those of GFD 0.20."""

from typing import Any

import pytest

from hami_mock.hami.kinds import MIG
from hami_mock.vendors import catalog
from hami_mock.vendors.labelling import CardsHere, LabelSet
from tests.makers import NVIDIA
from tests.unit.vendors.labelled import cards_of

GFD_NAMES = {
    *(f"gpu.{name}" for name in (
        "product", "count", "replicas", "sharing-strategy", "memory", "machine", "mode", "family",
        "compute.major", "compute.minor",
    )),
    *(f"cuda.driver.{name}" for name in ("major", "minor", "rev")),
    *(f"cuda.driver-version.{name}" for name in ("major", "minor", "revision", "full")),
    *(f"cuda.runtime.{name}" for name in ("major", "minor")),
    *(f"cuda.runtime-version.{name}" for name in ("major", "minor", "full")),
    "mig.capable", "mps.capable", "vgpu.present", "gfd.timestamp",
}  # fmt: skip

OPERANDS = """
driver gpu-feature-discovery container-toolkit device-plugin dcgm dcgm-exporter node-status-exporter
operator-validator
"""


def made(label_set: LabelSet, *models: str, **how: Any) -> dict[str, str]:
    return NVIDIA.labels.of(
        label_set, CardsHere(cards_of("nvidia", *models), **{"driver": "580.95.05", **how})
    )


def gfd(*models: str, **how: Any) -> dict[str, str]:
    found = made(LabelSet.GFD, *models, **how)
    assert all(key.startswith("nvidia.com/") for key in found)
    return {key.removeprefix("nvidia.com/"): value for key, value in found.items()}


def test_eight_a100_have_the_labels_that_gfd_writes() -> None:
    assert gfd(*["A100-SXM4-40GB"] * 8, now=1594644571) == {
        "cuda.driver.major": "580",
        "cuda.driver.minor": "95",
        "cuda.driver.rev": "05",
        "cuda.driver-version.major": "580",
        "cuda.driver-version.minor": "95",
        "cuda.driver-version.revision": "05",
        "cuda.driver-version.full": "580.95.05",
        "cuda.runtime.major": "13",
        "cuda.runtime.minor": "0",
        "cuda.runtime-version.major": "13",
        "cuda.runtime-version.minor": "0",
        "cuda.runtime-version.full": "13.0",
        "gfd.timestamp": "1594644571",
        "gpu.compute.major": "8",
        "gpu.compute.minor": "0",
        "gpu.count": "8",
        "gpu.family": "ampere",
        "gpu.machine": "hami-mock",
        "gpu.memory": "40960",
        "gpu.mode": "compute",
        "gpu.product": "NVIDIA-A100-SXM4-40GB",
        "gpu.replicas": "1",
        "gpu.sharing-strategy": "none",
        "mig.capable": "true",
        "mps.capable": "false",
        "vgpu.present": "false",
    }


@pytest.mark.parametrize("model", catalog.models()["nvidia"])
def test_every_model_has_all_of_gfds_names(model: str) -> None:
    assert gfd(model).keys() - {"gpu.clique"} == GFD_NAMES


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("V100-SXM2-32GB", {"gpu.product": "Tesla-V100-SXM2-32GB", "gpu.family": "volta"}),
        ("T4", {"gpu.product": "Tesla-T4", "gpu.compute.minor": "5", "mig.capable": "false"}),
        ("L40S", {"gpu.family": "ada-lovelace", "gpu.compute.minor": "9", "gpu.memory": "46068"}),
        ("RTX-4090", {"gpu.product": "NVIDIA-GeForce-RTX-4090", "gpu.mode": "graphics"}),
        ("A100-PCIE-80GB", {"gpu.product": "NVIDIA-A100-80GB-PCIe"}),
        ("H100-SXM5-80GB", {"gpu.product": "NVIDIA-H100-80GB-HBM3", "gpu.compute.major": "9"}),
        ("RTX-PRO-6000", {"gpu.compute.major": "12", "mig.capable": "true"}),
        ("GB300", {"gpu.clique": "7d0a2f64-3b5e-5c1d-9e68-2a4c8f01b973.0", "mig.capable": "true"}),
    ],
)
def test_a_model_is_told_by_its_labels(model: str, told: dict[str, str]) -> None:
    found = gfd(model)
    assert {key: found[key] for key in told} == told


def test_shared_cards_say_so() -> None:
    found = gfd("T4", "T4", slots=10)
    assert found["gpu.product"] == "Tesla-T4-SHARED"
    assert (found["gpu.replicas"], found["gpu.count"]) == ("10", "2")
    assert found["gpu.sharing-strategy"] == "time-slicing"


@pytest.mark.parametrize(
    ("models", "product", "count"),
    [
        (("T4", "L40S", "T4"), "Tesla-T4", "2"),
        (("L40S", "T4", "T4", "L40S"), "NVIDIA-L40S", "2"),
        (("T4", "L40S"), "NVIDIA-L40S", "1"),
    ],
)
def test_of_several_models_the_most_frequent_wins_then_the_first_by_name(
    models: tuple[str, ...], product: str, count: str
) -> None:
    for order in (models, models[::-1]):
        found = gfd(*order)
        assert (found["gpu.product"], found["gpu.count"]) == (product, count)


def test_what_is_true_of_any_card_or_of_all_is_not_left_to_the_winner() -> None:
    found = gfd("T4", "T4", "A30", "RTX-4090")
    assert found["mig.capable"] == "true"
    assert found["gpu.mode"] == "unknown"


def test_cards_that_are_cut_have_labels_for_each_profile() -> None:
    found = gfd("A100-SXM4-40GB", "A100-SXM4-40GB", slots=7, mode=MIG)
    assert found["mig.strategy"] == "mixed"
    assert found["gpu.product"] == "NVIDIA-A100-SXM4-40GB"
    assert (found["gpu.count"], found["gpu.replicas"]) == ("2", "0")
    assert {key: value for key, value in found.items() if key.startswith("mig-1g.5gb.")} == {
        "mig-1g.5gb.count": "14",
        "mig-1g.5gb.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        "mig-1g.5gb.replicas": "1",
        "mig-1g.5gb.sharing-strategy": "none",
        "mig-1g.5gb.memory": "4864",
        "mig-1g.5gb.multiprocessors": "14",
        "mig-1g.5gb.slices.gi": "1",
        "mig-1g.5gb.slices.ci": "1",
        "mig-1g.5gb.engines.copy": "1",
        "mig-1g.5gb.engines.decoder": "0",
        "mig-1g.5gb.engines.encoder": "0",
        "mig-1g.5gb.engines.jpeg": "0",
        "mig-1g.5gb.engines.ofa": "0",
    }
    assert found["mig-7g.40gb.count"] == "2"
    assert found["mig-3g.20gb.multiprocessors"] == "42"


def test_every_profile_of_every_model_has_its_parts() -> None:
    for model in catalog.models()["nvidia"]:
        found = gfd(model, mode=MIG)
        profiles = {key.partition(".count")[0] for key in found if key.endswith("gb.count")}
        for profile in profiles:
            assert int(found[f"{profile}.multiprocessors"]) > 0


@pytest.mark.parametrize(
    ("model", "profile", "parts"),
    [
        # multiprocessors; copy, decoder, encoder, jpeg, ofa
        ("A30", "1g.6gb", "14 1 1 0 0 0"),
        ("A100-SXM4-80GB", "2g.20gb", "28 2 1 0 0 0"),
        ("H100-SXM5-80GB", "3g.40gb", "60 3 3 0 3 0"),
        ("H100-PCIE-80GB", "1g.10gb", "14 1 1 0 1 0"),
        ("H100-PCIE-80GB", "7g.80gb", "114 8 7 0 7 1"),
        ("H20", "3g.48gb", "32 3 3 0 3 0"),
        ("GH200", "2g.24gb", "32 2 2 0 2 0"),
        ("B200", "2g.45gb", "36 4 2 0 2 0"),
        ("RTX-PRO-6000", "2g.48gb", "94 2 2 2 2 0"),
    ],
)
def test_an_instance_has_the_engines_that_nvidia_lists(
    model: str, profile: str, parts: str
) -> None:
    found = gfd(model, mode=MIG)
    engines = [f"engines.{name}" for name in ("copy", "decoder", "encoder", "jpeg", "ofa")]
    told = [found[f"mig-{profile}.{name}"] for name in ("multiprocessors", *engines)]
    assert " ".join(told) == parts


def test_the_whole_of_a_large_a100_has_nvidias_name() -> None:
    found = gfd("A100-SXM4-80GB", mode=MIG)
    assert found["mig-7g.80gb.product"] == "NVIDIA-A100-SXM4-80GB-MIG-7g.80gb"
    assert not any("7g.79gb" in key for key in found)


def test_a_card_that_can_not_be_cut_is_shared_whatever_the_mode() -> None:
    found = gfd("T4", slots=10, mode=MIG)
    assert found["gpu.product"] == "Tesla-T4-SHARED"
    assert not any(key.startswith("mig-") for key in found)


def test_the_other_sets_have_what_their_owners_write() -> None:
    assert made(LabelSet.OPERATOR, "T4") == {"nvidia.com/gpu.present": "true"}
    deployed = {f"nvidia.com/gpu.deploy.{operand}": "true" for operand in OPERANDS.split()}
    assert made(LabelSet.OPERATOR_DEPLOY, "T4") == deployed
    cut = {"nvidia.com/gpu.deploy.mig-manager": "true"}
    assert made(LabelSet.OPERATOR_DEPLOY, "T4", "A30") == {**deployed, **cut}
    assert made(LabelSet.HAMI, "T4") == {"gpu": "on"}
    assert made(LabelSet.NFD, "T4", "RTX-4090") == {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "feature.node.kubernetes.io/pci-0300_10de.present": "true",
        "feature.node.kubernetes.io/pci-0302_10de.present": "true",
    }
    assert made(LabelSet.FAKE_GPU_OPERATOR, "T4", "T4", slots=10) == {
        "nvidia.com/gpu.product": "Tesla-T4",
        "nvidia.com/gpu.memory": "15360",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/mig.strategy": "none",
        "run.ai/fake.gpu": "true",
    }
    assert made(LabelSet.VENDORS, "T4") == {}


@pytest.mark.parametrize(
    ("cloud", "model", "labels"),
    [
        (LabelSet.GKE, "L4", {
            "cloud.google.com/gke-accelerator": "nvidia-l4",
            "cloud.google.com/gke-accelerator-count": "2",
        }),
        (LabelSet.GKE, "RTX-3090", {}),
        (LabelSet.EKS, "T4", {
            "k8s.amazonaws.com/accelerator": "nvidia-tesla-t4",
            "eks.amazonaws.com/instance-gpu-name": "t4",
            "eks.amazonaws.com/instance-gpu-manufacturer": "nvidia",
            "eks.amazonaws.com/instance-gpu-count": "2",
            "eks.amazonaws.com/instance-gpu-memory": "16384",
        }),
        (LabelSet.KARPENTER, "A10G", {
            "karpenter.k8s.aws/instance-gpu-name": "a10g",
            "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia",
            "karpenter.k8s.aws/instance-gpu-count": "2",
            "karpenter.k8s.aws/instance-gpu-memory": "22888",
        }),
        (LabelSet.KARPENTER, "A40", {}),
        (LabelSet.AKS, "T4", {
            "kubernetes.azure.com/accelerator": "nvidia", "accelerator": "nvidia",
        }),
        (LabelSet.AKS, "L20", {}),
    ],
)  # fmt: skip
def test_a_cloud_has_labels_for_the_models_that_it_has(
    cloud: LabelSet, model: str, labels: dict[str, str]
) -> None:
    assert made(cloud, model, model) == labels


def test_gke_tells_how_many_may_share_a_card() -> None:
    found = made(LabelSet.GKE, "L4", slots=10)
    assert found["cloud.google.com/gke-gpu-sharing-strategy"] == "time-sharing"
    assert found["cloud.google.com/gke-max-shared-clients-per-gpu"] == "10"


@pytest.mark.parametrize(
    ("driver", "cuda", "parts"),
    [
        ("550.163.01", "12.4", ("550", "163", "01")),
        ("999.1", "13.0", ("999", "1", "")),
        ("470.82.1.7", "11.4", ("470", "82", "1")),
        ("460.106.00", "11.2", ("460", "106", "00")),
        ("545.23.08", "12.3", ("545", "23", "08")),
    ],
)
def test_versions_are_those_of_the_driver_that_was_asked_for(
    driver: str, cuda: str, parts: tuple[str, ...]
) -> None:
    found = gfd("T4", driver=driver)
    assert found["cuda.driver-version.full"] == driver
    assert found["cuda.runtime-version.full"] == cuda
    names = ("major", "minor", "revision")
    assert tuple(found[f"cuda.driver-version.{name}"] for name in names) == parts
