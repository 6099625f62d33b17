import itertools

from hami_mock.vendors import CAMBRICON, NVIDIA, VENDORS, Role

OFFERS = [offer for vendor in VENDORS for offer in vendor.offers]


def test_units_have_heads_and_slots_have_none() -> None:
    assert {offer.role for offer in OFFERS if not offer.heads} == {Role.SLOTS}
    assert Role.SLOTS not in {offer.role for offer in OFFERS if offer.heads}


def test_no_name_flag_or_alias_is_there_twice() -> None:
    names = [offer.name for offer in OFFERS]
    flags = list(itertools.chain.from_iterable((o.flag, *o.flag_aliases) for o in OFFERS))
    assert len(set(names)) == len(names) == 8
    assert len(set(flags)) == len(flags)


def test_no_vendor_has_two_resources_of_one_role() -> None:
    for vendor in VENDORS:
        roles = [offer.role for offer in vendor.offers]
        assert len(set(roles)) == len(roles)


def test_a_vendor_knows_what_its_cards_offer() -> None:
    assert NVIDIA.offers_role(Role.MEMORY)
    assert not CAMBRICON.offers_role(Role.MEMORY)
