"""Serves an exporter's metrics on a port of its own, where monitoring expects it."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings
from hami_mock.views.exporters.dcgm_extras import SAMPLE_SECONDS, Window
from hami_mock.views.exporters.hami_monitor import LastWork
from hami_mock.views.exporters.pages import (
    DCGM_OPTION,
    VENDOR_OPTION,
    DcgmPage,
    MonitorPage,
    VendorPages,
)
from hami_mock.views.http.scrapes import Scrapes
from hami_mock.views.http.server import Answer, Routes, serve_http

_MONITOR_OPTION = "hami-monitor-listen"
_HOSTNAME = "Hostname"

_log = logging.getLogger(__name__)
_Follow = Callable[[], Awaitable[None]]


class ExporterView:
    """Answers scrapes; `follow`, if given, keeps up with the state meanwhile."""

    def __init__(
        self,
        name: str,
        option: str,
        address: str,
        pages: Mapping[str, Callable[[], bytes]],
        follow: _Follow = anyio.sleep_forever,
    ) -> None:
        self.name = name
        self._option = option
        self._address = address
        self._follow = follow
        self._routes: Routes = {
            **{path: Scrapes(render).answer for path, render in pages.items()},
            "/health": lambda: Answer(b"OK\n"),
        }

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Answer until cancelled. Raises StartError if the address can't be had."""
        async with serve_http(self._address, self._routes, self._option) as self._address:
            _log.info("%s: metrics at %s", self.name, self._address)
            task_status.started()
            await self._follow()

    def status(self) -> dict[str, Any]:
        # With the port that was found if any would do.
        return {"address": self._address}


def exporter_views(settings: Settings, state: NodeState) -> Iterator[tuple[str, ExporterView]]:
    """Yield the exporters that the settings want, by name."""
    if settings.dcgm_listen:
        yield "dcgm", _dcgm(settings, state)
    if settings.hami_monitor_listen:
        yield "hami monitor", _monitor(settings, state)
    if settings.vendor_metrics_listen:
        yield "vendor metrics", _vendors(settings, state)


def _dcgm(settings: Settings, state: NodeState) -> ExporterView:
    window = Window(state) if settings.dcgm_extras else None

    async def sample() -> None:
        while window:
            await anyio.sleep(SAMPLE_SECONDS)
            window.take()
        await anyio.sleep_forever()

    page = DcgmPage(
        state,
        settings.driver_version,
        label_names={_HOSTNAME: settings.dcgm_hostname_label},
        shares=settings.dcgm_sharing,
        window=window,
    )
    pages = {"/metrics": page.render}
    return ExporterView("dcgm", DCGM_OPTION, settings.dcgm_listen, pages, sample)


def _monitor(settings: Settings, state: NodeState) -> ExporterView:
    work = LastWork()

    async def follow() -> None:
        while True:
            changed = state.load_changes.next()
            work.note(state.loads)
            await changed.wait()

    page = MonitorPage(state, work, has_legacy=settings.hami_monitor_legacy)
    address, pages = settings.hami_monitor_listen, {"/metrics": page.render}
    return ExporterView("hami monitor", _MONITOR_OPTION, address, pages, follow)


def _vendors(settings: Settings, state: NodeState) -> ExporterView:
    own = VendorPages(state)
    pages: dict[str, Callable[[], bytes]] = {"/metrics": own.render}
    pages |= {f"/metrics/{maker}": own.page(maker) for maker in own.makers}
    return ExporterView("vendor metrics", VENDOR_OPTION, settings.vendor_metrics_listen, pages)
