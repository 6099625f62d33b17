"""What an agent answers over HTTP: probes and metrics."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.sources.configuration import Configuration
from hami_mock.views.http.metrics import NodeCollector, render
from hami_mock.views.http.scrapes import Scrapes
from hami_mock.views.http.server import Answer, Routes, serve_http
from hami_mock.views.offering import Offering

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_log = logging.getLogger(__name__)


class HttpView:
    """Answers probes and scrapes."""

    name = "http"

    def __init__(self, address: str, routes: Routes) -> None:
        self._address = address
        self._routes = routes

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Answer until cancelled. Raises StartError if the address can't be had."""
        async with serve_http(self._address, self._routes) as self._address:
            _log.info("HTTP at %s", self._address)
            task_status.started()
            await anyio.sleep_forever()

    def status(self) -> dict[str, Any]:
        # With the port that was found if any would do.
        return {"address": self._address}


def agent_routes(
    shown: NodeCollector, notices: Callable[[], Mapping[str, str]] = lambda: _NOTHING
) -> dict[str, Callable[[], Answer]]:
    def ready() -> Answer:
        return readiness(shown.offerings(), shown.configuration, shown.failures(), notices())

    return {
        "/healthz": lambda: Answer(b"ok\n"),
        "/readyz": ready,
        "/metrics": Scrapes(lambda: render(shown)).answer,
    }


def readiness(
    offerings: Sequence[Offering],
    configuration: Configuration,
    failures: Mapping[str, str] = _NOTHING,
    notices: Mapping[str, str] = _NOTHING,
) -> Answer:
    """Return 200 if the node offers every resource and no part of the agent fails, else 503.

    The body says what is missing, and what isn't known, which doesn't count.

    A new configuration with an error doesn't count: the old one still serves. The body has it. What
    a companion lacks does: there is nothing old that it could go on with.
    """
    are_offered = all(each.is_offered for each in offerings)
    ready = are_offered and not configuration.missing and not failures
    resources = {o.resource.name: {"phase": o.phase, "reason": o.reason} for o in offerings}
    told = {
        "ready": ready,
        "resources": resources,
        "configuration": configuration.as_data(),
        "failures": dict(failures),
        "notices": dict(notices),
    }
    status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(f"{json.dumps(told, indent=2)}\n".encode(), status, "application/json")
