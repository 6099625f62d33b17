from hami_mock.doctor.finding import Finding, Severity, error, warning
from hami_mock.doctor.report import Examined, lines, rows

WELL = Finding(Severity.OK, "NVIDIA", "2 cards")


def test_findings_have_their_advice_under_them() -> None:
    long = "a word " * 20
    report = list(lines([Examined("Node n1", [WELL, error("here", long.strip(), "do it")])]))
    assert report == [
        "Node n1",
        "ok       NVIDIA: 2 cards",
        "error    here",
        "         " + ("a word " * 12).strip() + " a",
        "         word" + " a word" * 7,
        "         → do it",
        "",
        "1 error found.",
    ]


def test_the_last_line_sums_up() -> None:
    bad, odd = error("a", "b", "c"), warning("a", "b", "c")
    assert list(lines([Examined("Node n1", [WELL])]))[-1] == "No problems found."
    assert list(lines([Examined("Pod a/b", [])]))[-1] == "No problems found."
    assert list(lines([Examined("Node n1", [odd])]))[-1] == "1 warning found."
    several = [Examined("Node n1", [bad, odd]), Examined("Pod a/b", [bad])]
    assert list(lines(several))[-1] == "2 errors and 1 warning found."


def test_rows_are_for_scripts() -> None:
    assert rows([Examined("Node n1", [error("a", "b", "c")])]) == [
        {"subject": "Node n1", "severity": "error", "where": "a", "what": "b", "advice": "c"}
    ]
