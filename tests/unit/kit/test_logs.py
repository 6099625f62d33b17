import json
import logging
import re

import pytest

from hami_mock.kit import logs

Captured = pytest.CaptureFixture[str]
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def log_one_failure(logger: logging.Logger) -> None:
    try:
        raise ZeroDivisionError("of no avail")
    except ZeroDivisionError:
        logger.exception("it failed")


def test_a_line_of_text_has_time_level_and_message(capsys: Captured) -> None:
    logs.set_up("info", "text")
    logging.getLogger("hami_mock.x").info("%d of %s", 3, "them")
    assert re.fullmatch(rf"{TIME} INFO    3 of them\n", capsys.readouterr().err)


@pytest.mark.parametrize(("level", "shown"), [("info", "no more\n"), ("error", "")])
def test_libraries_warn_unless_the_user_wants_errors_only(
    capsys: Captured, level: str, shown: str
) -> None:
    logs.set_up(level, "text")
    logging.getLogger("asyncio").info("at work")
    logging.getLogger("asyncio").warning("no more")
    assert capsys.readouterr().err.rpartition("WARNING ")[2] == shown


def test_the_time_is_utc_to_the_millisecond() -> None:
    record = logging.makeLogRecord({"created": 1_700_000_000.042, "msecs": 42.9})
    assert logs._timestamp(record) == "2023-11-14T22:13:20.042Z"


def test_a_line_of_json_is_an_object(capsys: Captured) -> None:
    logs.set_up("info", "json")
    logging.getLogger("hami_mock.x").warning('a "quoted"\nmessage with é')
    out = capsys.readouterr().err
    assert out.count("\n") == 1
    record = json.loads(out)
    assert re.fullmatch(TIME, record.pop("time"))
    assert record == {
        "level": "warning",
        "logger": "hami_mock.x",
        "message": 'a "quoted"\nmessage with é',
    }


def test_an_exception_is_in_the_text(capsys: Captured) -> None:
    logs.set_up("info", "text")
    log_one_failure(logging.getLogger("hami_mock.x"))
    assert "ERROR   it failed\nTraceback" in (err := capsys.readouterr().err)
    assert "ZeroDivisionError: of no avail" in err


def test_an_exception_is_in_the_json(capsys: Captured) -> None:
    logs.set_up("info", "json")
    log_one_failure(logging.getLogger("hami_mock.x"))
    assert "ZeroDivisionError: of no avail" in json.loads(capsys.readouterr().err)["exception"]


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_a_level_leaves_out_what_is_below_it(level: str, seen: list[str], capsys: Captured) -> None:
    logs.set_up(level, "json")
    for name in ("debug", "info", "warning", "error"):
        logging.getLogger("hami_mock.x").log(logging.getLevelNamesMapping()[name.upper()], "m")
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["level"] for line in lines] == seen


def test_the_libraries_say_only_what_matters_even_at_debug(capsys: Captured) -> None:
    logs.set_up("debug", "text")
    logging.getLogger("grpclib.server").info("chatter")
    logging.getLogger("hpack").debug("chatter")
    logging.getLogger("asyncio").warning("this matters")
    err = capsys.readouterr().err
    assert "chatter" not in err
    assert "this matters" in err


def test_warnings_from_before_come_first(capsys: Captured) -> None:
    logs.set_up("info", "text", ["HAMI_MOCK_IMAGE: there is no such variable"])
    assert capsys.readouterr().err.endswith(" WARNING HAMI_MOCK_IMAGE: there is no such variable\n")


def test_the_last_set_up_counts(capsys: Captured) -> None:
    logs.set_up("info", "text")
    logs.set_up("info", "json")
    logging.getLogger("hami_mock.x").info("once")
    assert len(capsys.readouterr().err.splitlines()) == 1


HOSTILE = "first\n2026-11-18T00:00:00.000Z ERROR   forged\r\x1b[31mred\x85\u2028\ud800"


def test_nothing_that_is_logged_forges_a_second_line(capsys: Captured) -> None:
    logs.set_up("info", "text", [HOSTILE])
    logging.getLogger("hami_mock.x").error("it is %s", HOSTILE)
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 2
    assert all(line.isprintable() for line in err.splitlines())
    assert "first\\n2026" in err


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_message_has_an_end(capsys: Captured, log_format: str) -> None:
    logs.set_up("info", log_format)
    logging.getLogger("hami_mock.x").error("x" * 1_000_000)
    assert len(capsys.readouterr().err) < 2 * logs.LONGEST


def test_an_exception_with_an_odd_text_is_a_traceback_after_one_line(capsys: Captured) -> None:
    logs.set_up("info", "text")
    try:
        raise ValueError(HOSTILE + "x" * 1_000_000)
    except ValueError:
        logging.getLogger("hami_mock.x").exception("it failed: %s", HOSTILE)
    first, *others = capsys.readouterr().err.split("\n")
    assert first.isprintable()
    assert others[0].startswith("Traceback")
    assert all(line.isprintable() and len(line) < 2 * logs.LONGEST for line in others)
