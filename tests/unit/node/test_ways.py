import pytest

from hami_mock.kubelet.limits import Version
from hami_mock.node.ways import NO_PERMISSION, Permission, Units, Which, needed, policy

ALLOWED = Permission(is_allowed=True)
REFUSED = Permission(refusal="the role needs the verb patch for nodes/status")


@pytest.mark.parametrize("permission", [ALLOWED, REFUSED, NO_PERMISSION])
@pytest.mark.parametrize("hami", [True, False])
def test_who_has_chosen_gets_that_wherever_it_is(permission: Permission, hami: bool) -> None:
    chosen = policy(Units.PLUGIN, permission, hami=hami)
    assert (chosen.which, chosen.why) == (Which.NONE, "you chose --units plugin")
    chosen = policy(Units.STATUS, permission, hami=hami)
    assert (chosen.which, chosen.why) == (Which.ALL, "you chose --units status")


@pytest.mark.parametrize("hami", [True, False])
def test_where_the_status_may_not_be_written_auto_says_why(hami: bool) -> None:
    assert policy(Units.AUTO, REFUSED, hami=hami).which is Which.NONE
    assert policy(Units.AUTO, REFUSED, hami=hami).why == REFUSED.refusal
    assert policy(Units.AUTO, NO_PERMISSION, hami=hami).why == "", "nobody was asked"


@pytest.mark.parametrize("hami", [True, False])
def test_where_nobody_knows_what_stood_there_is_kept(hami: bool) -> None:
    away = Permission(refusal="can't reach the API server", is_known=False)
    found = policy(Units.AUTO, away, hami=hami)
    assert (found.which, found.why) == (Which.KEPT, away.refusal)


def test_auto_puts_all_of_hamis_units_into_the_status_and_else_what_needs_it() -> None:
    with_hami = policy(Units.AUTO, ALLOWED, hami=True)
    assert with_hami.which is Which.ALL
    assert "its scheduler decides" in with_hami.why
    assert policy(Units.AUTO, ALLOWED, hami=False).which is Which.NEEDED


COUNTS = {"a/mem": 300_000, "b/mem": 5, "c/cores": 100}


@pytest.mark.parametrize(("version", "name"), [((1, 36), "1.36"), (None, "1.36 or newer")])
def test_where_the_kubelet_lists_devices_all_units_go(version: Version | None, name: str) -> None:
    found = needed(COUNTS, {"a/mem": 4_800_000}, version)
    why = f"kubelet {name} writes every device that a pod holds into the pod's status"
    assert found == dict.fromkeys(COUNTS, why)


def test_an_older_kubelet_has_only_what_does_not_fit_in_the_status() -> None:
    found = needed(COUNTS, {"a/mem": 4_800_000}, (1, 35))
    assert found == {
        "a/mem": "300000 devices would need a list of at least 4800000 bytes, more than the "
        "kubelet takes"
    }
    assert needed(COUNTS, {}, (1, 35)) == {}
