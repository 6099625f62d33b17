"""How a line of the log looks."""

import json
import logging
import sys
import time
from collections.abc import Iterable
from typing import Any

from hami_mock.kit.text import cut

LONGEST = 20_000
"""More characters of a message nobody reads; all problems of a configuration have room."""

_log = logging.getLogger(__name__)

# What these say below a warning is about their own workings.
_CHATTY = ("grpclib", "hpack", "h2", "asyncio", "httpcore2")


def set_up(level: str, log_format: str, warnings: Iterable[str] = ()) -> None:
    """Log to stderr at a level, as text or as JSON; begin with what there was to warn of before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    for warning in warnings:
        _log.warning("%s", warning)


def _timestamp(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return time, level and message, and the traceback of an error that nobody foresaw.

        A message is one line, whatever it repeats.
        """
        message = cut(record.getMessage(), LONGEST)
        traceback = self.formatException(record.exc_info) if record.exc_info else ""
        lines = (cut(line, LONGEST) for line in traceback.splitlines())
        return "\n".join([f"{_timestamp(record)} {record.levelname:<7} {message}", *lines])


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:LONGEST],
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)[-LONGEST:]
        return json.dumps(fields)
