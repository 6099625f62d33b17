import pytest

from hami_mock.settings.settings import load
from hami_mock.vendors.labelling import LabelSet
from tests.unit.builders import problems_of


def test_there_are_none_unless_asked_for() -> None:
    settings = load({"node-name": "n1"})
    assert settings.labels == ()
    assert not settings.labels_remove
    assert not settings.needs_cluster


@pytest.mark.parametrize("text", ["hami,gfd", "gfd, hami", "gfd,hami,gfd"])
def test_sets_are_listed_once_and_in_their_own_order(text: str) -> None:
    settings = load({"node-name": "n1", "labels": text})
    assert settings.labels == (LabelSet.GFD, LabelSet.HAMI)
    assert settings.needs_cluster


def test_all_leaves_out_what_must_be_asked_for() -> None:
    usual = load({"node-name": "n1", "labels": "all"}).labels
    assert set(LabelSet) - set(usual) == {
        LabelSet.OPERATOR_DEPLOY,
        LabelSet.GKE,
        LabelSet.EKS,
        LabelSet.AKS,
        LabelSet.KARPENTER,
    }
    assert set(load({"node-name": "n1", "labels": "all,gke"}).labels) == {*usual, LabelSet.GKE}


def test_an_unknown_set_is_refused_with_all_that_there_are() -> None:
    (line,) = problems_of(lambda: load({"node-name": "n1", "labels": "gdf"}))
    allowed = "it must be one or more of gfd, operator"
    assert line.startswith(f"--labels: 'gdf' is not allowed: {allowed}")
