import pytest

from hami_mock.kit import terminal
from hami_mock.kit.terminal import Style, bar, is_fancy, paint, table


@pytest.fixture
def in_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_pipe_is_plain() -> None:
    assert not is_fancy()
    assert paint("text", Style.BOLD, Style.RED) == "text"


@pytest.mark.usefixtures("in_terminal")
def test_a_terminal_has_colour() -> None:
    assert is_fancy()
    assert paint("text", Style.BOLD, Style.RED) == "\x1b[1;31mtext\x1b[0m"
    assert paint("text") == "text"


@pytest.mark.usefixtures("in_terminal")
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", ""), ("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_no_colour_is_plain(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert not is_fancy()


def test_a_table_lines_its_columns_up() -> None:
    assert table(("NAME", "N", "X"), [("a", 1, "y"), ("longer", 100, "")], " r") == [
        "NAME      N  X",
        "a         1  y",
        "longer  100",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    assert table(("A", "B"), []) == ["A  B"]


@pytest.mark.usefixtures("in_terminal")
def test_the_header_alone_is_bold_in_a_terminal() -> None:
    header, row = table(("A",), [("x",)])
    assert header == "\x1b[1mA\x1b[0m"
    assert row == "x"


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, "...."), (0.5, "##.."), (1, "####"), (-1, "...."), (7, "####"), (0.3, "#...")],
)
def test_a_bar_is_filled_to_its_share(share: float, expected: str) -> None:
    assert bar(share, width=4) == expected


@pytest.mark.usefixtures("in_terminal")
def test_a_bar_is_of_blocks_in_a_terminal() -> None:
    assert terminal.bar(0.5, width=4) == "██░░"


@pytest.fixture
def narrow(in_terminal: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("NO_COLOR", "1")


HEADER = ("NAME", "ZERO", "NUMBER", "TEXT")
ROW = ("nvidia.com/gpumem-percentage", 0, 123456, "unhealthy: no power at all")


def test_a_table_that_is_piped_is_as_wide_as_it_must_be() -> None:
    assert max(map(len, table(HEADER, [ROW], " Rr"))) > 60


@pytest.mark.usefixtures("narrow")
def test_a_table_fits_the_terminal_and_leaves_numbers_whole() -> None:
    assert table(HEADER, [ROW], " Rr") == [
        "NAME        NUMBER  TEXT",
        "nvidi…tage  123456  unhealthy:",
        "                    no power",
        "                    at all",
    ]


@pytest.mark.usefixtures("narrow")
@pytest.mark.usefixtures("narrow")
def test_a_column_that_names_things_stays_whole() -> None:
    rows = [["iluvatar/10/and/more", "a name of many words that gives way"]]
    assert rows[0][0] in table(["CARD", "NAME"], rows, "k")[1]
    assert rows[0][0] not in "".join(table(["CARD", "NAME"], [[rows[0][0], "x" * 60]]))


def test_a_column_that_says_something_is_never_left_out() -> None:
    header, *_ = table(HEADER, [ROW, ("a", 1, 2, "b")], " Rr")
    assert header.split() == list(HEADER)


@pytest.mark.usefixtures("in_terminal")
def test_colours_take_no_room_and_stay_when_a_cell_is_wrapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "14")
    _, first, second = table(("A", "B"), [(paint("red words", Style.RED), "last one")])
    assert first == "\x1b[31mred\x1b[0m     last"
    assert second == "\x1b[31mwords\x1b[0m   one"


@pytest.mark.parametrize("columns", [1, 5, 10, 20])
def test_what_is_too_long_is_shortened_to_the_columns(columns: int) -> None:
    text = terminal.shorten("GPU-bfc34048-c24a", columns)
    assert len(text) == min(columns, 17)
    assert ("…" in text) == (columns < 17)


@pytest.mark.parametrize(("columns", "found"), [("80", 80), ("300", 100), ("5", 30), ("", 100)])
def test_prose_is_as_wide_as_columns_says_but_not_wider_than_people_read(
    monkeypatch: pytest.MonkeyPatch, columns: str, found: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("os.get_terminal_size", _no_terminal)
    assert terminal.prose_width() == found


def _no_terminal(_: int) -> None:
    raise OSError("not a terminal")
