"""--dra: which profiles go together, and what they need."""

import pytest

from hami_mock.settings.settings import load
from hami_mock.vendors.dra import Profile
from tests.unit.builders import problems_of


def test_it_is_off_unless_asked_for() -> None:
    settings = load({})
    assert settings.dra == ()
    assert not settings.needs_cluster


def test_it_needs_the_api_server() -> None:
    settings = load({"dra": "hami"})
    assert settings.dra == (Profile.HAMI,)
    assert settings.needs_cluster


def test_the_folders_are_the_kubelets_and_the_runtimes() -> None:
    settings = load({"dra": "hami"})
    assert settings.dra_plugins_dir == "/var/lib/kubelet/plugins"
    assert settings.dra_registry_dir == "/var/lib/kubelet/plugins_registry"
    assert settings.cdi_dir == "/var/run/cdi"
    assert load({"cdi-dir": ""}).cdi_dir == ""


@pytest.mark.parametrize(
    ("profiles", "others", "maker"),
    [
        ("hami,nvidia", {"ascend-cards": "0"}, "NVIDIA"),
        ("hami,example", {"nvidia-cards": "0", "mlu-cards": "0"}, "Ascend"),
        ("nvidia,example", {}, "NVIDIA"),
    ],
)
def test_no_card_is_offered_twice(profiles: str, others: dict[str, str], maker: str) -> None:
    (problem,) = problems_of(lambda: load({"dra": profiles, **others}))
    first, second = profiles.split(",")
    assert problem == (
        f"--dra: {first} and {second} would both offer the cards of {maker}, and neither knows "
        "what the other gives out: choose one"
    )


def test_profiles_of_different_cards_go_together() -> None:
    settings = load({"dra": "nvidia,hami", "nvidia-cards": "0"})
    assert settings.dra == (Profile.HAMI, Profile.NVIDIA)


def test_a_profile_that_there_isnt_is_refused() -> None:
    (problem,) = problems_of(lambda: load({"dra": "amd"}))
    assert problem.startswith("--dra: 'amd' is not allowed: it must be one or more of hami, nvidia")


def test_a_real_plugins_cards_are_its_own() -> None:
    (problem,) = problems_of(lambda: load({"dra": "hami", "source": "hami"}))
    assert "the cards of a real plugin can't be published through DRA too" in problem
