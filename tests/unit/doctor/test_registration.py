from collections.abc import Callable, Iterator

import pytest

from hami_mock.doctor import registration
from hami_mock.doctor.case import NodeCase, VendorCase
from hami_mock.doctor.finding import Finding, Severity
from tests.unit.doctor.patients import DCU, NVIDIA, card, case, config, node, pod, told

Check = Callable[[NodeCase, VendorCase], Iterator[Finding]]


def found(check: Check, examined: NodeCase) -> list[Finding]:
    return [finding for seen in examined.vendors for finding in check(examined, seen)]


@pytest.mark.parametrize(
    "check",
    [
        registration.register,
        registration.twins,
        registration.types,
        registration.health,
        registration.mig,
        registration.mig_rules,
        registration.cordon,
        registration.topology,
    ],
)
def test_a_node_that_is_well_has_no_findings(check: Check) -> None:
    assert found(check, case(node())) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "there is no such annotation: HAMi's scheduler sees no NVIDIA cards here"),
        ("", "it is empty"),
        ("[]", "the value lists no devices"),
        ("{", "not valid JSON"),
        (
            "GPU-1,10,32768,100,NVIDIA-V100,0,true:",
            "the value is in colon form of 7 fields, but HAMi reads JSON here",
        ),
        ('[{"id":"GPU-1","devmem":1.5}]', "device 0 (GPU-1): devmem: 1.5 must be a whole number"),
    ],
)
def test_an_annotation_that_the_scheduler_can_not_read(text: str | None, what: str) -> None:
    (finding,) = found(registration.register, case(node(annotations={NVIDIA: text})))
    assert told([finding]) == [("error", NVIDIA)]
    assert what in finding.what
    assert finding.advice


def test_a_vendor_that_only_a_pod_asks_for_must_be_registered_too() -> None:
    findings = found(registration.register, case(node(), [pod({"hygon.com/dcunum": 1})]))
    assert told(findings) == [("error", DCU)]


def test_vendors_without_an_annotation_need_none() -> None:
    bare = node(resources={"cambricon.com/vmlu": "10"})
    assert found(registration.register, case(bare)) == []


def test_two_cards_with_one_id() -> None:
    (finding,) = found(registration.twins, case(node(card("GPU-1"), card("GPU-1"))))
    assert finding.what.startswith("2 cards have the ID 'GPU-1'")


def test_a_type_without_the_word_of_the_scheduler() -> None:
    findings = found(
        registration.types, case(node(card("GPU-1", type="Tesla V100"), card("GPU-2")))
    )
    (finding,) = findings
    assert "card GPU-1 has the type 'Tesla V100'" in finding.what
    assert finding.advice == "the type should look like 'NVIDIA-Tesla V100'"


def test_the_word_counts_in_any_case() -> None:
    assert found(registration.types, case(node(card("GPU-1", type="nvidia x")))) == []


@pytest.mark.parametrize(("ill", "severity"), [(1, Severity.WARNING), (2, Severity.ERROR)])
def test_cards_that_are_ill(ill: int, severity: Severity) -> None:
    cards = [card(f"GPU-{i}", index=i, health=i >= ill) for i in range(2)]
    (finding,) = found(registration.health, case(node(*cards)))
    assert finding.severity is severity


PROFILES = [{"name": "1g.5gb", "memoryMB": 4864, "core": 14, "sliceCount": 1}]
GEOMETRY = [[{"Name": "1g.5gb", "Core": 14, "Memory": 5120, "Count": 7}]]


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"mode": "mig", "migProfiles": PROFILES}, None),
        ({"mode": "mps"}, None),
        ({"mode": "mig"}, Severity.ERROR),
        ({"mode": "mig", "migtemplate": GEOMETRY}, Severity.WARNING),
        ({"mode": "MIG"}, Severity.WARNING),
    ],
)
def test_modes_and_mig(changes: dict[str, object], severity: Severity | None) -> None:
    findings = found(registration.mig, case(node(card("GPU-1", **changes))))
    assert [finding.severity for finding in findings] == ([severity] if severity else [])


CUT = {"mode": "mig", "migProfiles": PROFILES}
RULES = (
    "nvidia: {resourceCountName: nvidia.com/gpu, "
    "migProfileAllowlist: [{models: [%s], profiles: [1g.10gb]}]}"
)


@pytest.mark.parametrize(
    ("card_type", "text", "severity"),
    [
        ("NVIDIA A100-SXM4-40GB", None, None),
        ("NVIDIA H100 80GB HBM3", None, Severity.NOTE),
        ("NVIDIA H100 80GB HBM3", RULES % "H100 80GB", None),
        ("NVIDIA A100-SXM4-40GB", RULES % "H100 80GB", Severity.WARNING),
        ("NVIDIA A30", "nvidia: {resourceCountName: nvidia.com/gpu}", Severity.WARNING),
    ],
)
def test_mig_of_a_model_that_hami_has_no_rule_for(
    card_type: str, text: str | None, severity: Severity | None
) -> None:
    cards = [card(f"GPU-{i}", index=i, type=card_type, **CUT) for i in range(2)]
    findings = found(
        registration.mig_rules, case(node(*cards), config=config(text) if text else None)
    )
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    if severity:
        whose = "the device configuration" if text else "HAMi's chart"
        assert findings[0].what.startswith(
            f"{card_type!r} is in MIG mode, but no rule in migProfileAllowlist of {whose} has a"
        )


def test_cards_that_are_not_cut_need_no_rule() -> None:
    whole = [card("GPU-1", type="NVIDIA H100 80GB HBM3"), card("GPU-2", mode="mps")]
    assert found(registration.mig_rules, case(node(*whole))) == []


def test_modes_of_other_vendors_are_their_own_business() -> None:
    text = "DCU-1,4,65520,100,DCU-K100_AI,0,true,0,mig:"
    assert found(registration.mig, case(node(annotations={DCU: text}))) == []


@pytest.mark.parametrize(
    ("cordon", "severities"),
    [
        (" , ", []),
        ("GPU-1", ["warning"]),
        (" GPU-1 ,GPU-2", ["error"]),
        ("GPU-x", ["warning"]),
        ("GPU-2,GPU-x", ["warning", "warning"]),
    ],
)
def test_cordoned_cards(cordon: str, severities: list[str]) -> None:
    findings = found(registration.cordon, case(node(annotations={"hami.io/device-cordon": cordon})))
    assert [str(finding.severity) for finding in findings] == severities
    assert all("hami.io/device-cordon-" in finding.advice for finding in findings)


@pytest.mark.parametrize(("text", "count"), [("[]", 0), ("{", 1), ('[{"score":1}]', 1)])
def test_scores_that_can_not_be_read_hide_the_cards(text: str, count: int) -> None:
    noted = case(node(annotations={"hami.io/node-nvidia-score": text}))
    assert len(found(registration.topology, noted)) == count


def test_cards_of_a_vendor_that_the_configuration_does_not_have() -> None:
    hygon = config("hygon: {resourceCountName: hygon.com/dcunum}")
    assert told(list(registration.unknown_to_config(case(node(), config=hygon)))) == [
        ("error", NVIDIA)
    ]
    assert list(registration.unknown_to_config(case(node()))) == []
