"""What each exporter serves: rows of the state, written by its exposition."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from hami_mock import vendors
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.vendors.exporter import Exporter, Per
from hami_mock.views.exporters.dcgm_extras import Window, extras_text
from hami_mock.views.exporters.exposition import Exposition
from hami_mock.views.exporters.hami_monitor import BUILD_INFO, LastWork, monitor
from hami_mock.views.exporters.row_texts import Rows
from hami_mock.views.exporters.rows import (
    Row,
    Seen,
    card_rows,
    container_rows,
    exporter_of,
    instance_rows,
    observe,
    shared_rows,
)

DCGM_OPTION = "dcgm-listen"
VENDOR_OPTION = "vendor-metrics-listen"


class DcgmPage:
    """dcgm-exporter's metrics: a row for each card, each part of one that is cut, or each holder.

    `label_names` has other names for labels, `window` what the extra metrics count in, if wanted.
    """

    def __init__(
        self,
        state: NodeState,
        driver: str,
        *,
        label_names: Mapping[str, str] | None = None,
        shares: bool = False,
        window: Window | None = None,
    ) -> None:
        self._state = state
        self._shares = shares
        self._window = window
        self._pages = []
        for own in _exporters(DCGM_OPTION).values():
            more = (("vgpu", "{number}"),) if shares else ()
            exporter = replace(own, container_labels=(*own.container_labels, *more))
            page = Exposition(exporter.renamed(label_names or {}), state.node.name, driver)
            self._pages.append((own, page))

    def render(self) -> bytes:
        seen = observe(self._state)
        return b"".join(self._render(page, _of(exporter, seen)) for exporter, page in self._pages)

    def _render(self, page: Exposition, seen: list[Seen]) -> bytes:
        rows_of = shared_rows if self._shares else card_rows
        text = page.render(
            {
                Per.CARD: [*rows_of([each for each in seen if not each.instances])],
                Per.INSTANCE: instance_rows(seen),
            }
        )
        if self._window is None:
            return text
        rows = [*rows_of(seen)]
        labeled = [*zip(rows, page.card_labels(rows), strict=True)]
        return text + extras_text(labeled, self._window).encode()


class MonitorPage:
    """HAMi's monitor: rows for its cards, and for each container on each of them."""

    def __init__(self, state: NodeState, work: LastWork, *, has_legacy: bool = False) -> None:
        self._state = state
        self._work = work
        self._page = Exposition(monitor(has_legacy=has_legacy), state.node.name)

    def render(self) -> bytes:
        seen = [each for each in observe(self._state) if _is_monitored(each)]
        idle = self._work.idle()
        rows = {
            Per.CARD: card_rows(seen),
            Per.CONTAINER: container_rows(seen, self._state.pods, idle),
            Per.INSTANCE: [row for row in instance_rows(seen) if row.usage],
        }
        return self._page.render(rows, BUILD_INFO.encode())


class VendorPages:
    """The other makers' exporters."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._pages = {
            maker: (exporter, Exposition(exporter, state.node.name))
            for maker, exporter in _exporters(VENDOR_OPTION).items()
        }

    @property
    def makers(self) -> Iterable[str]:
        return self._pages

    def render(self, *makers: str) -> bytes:
        """Return the metrics of some makers, or of all."""
        seen = observe(self._state)
        return b"".join(self._render(maker, seen) for maker in makers or self._pages)

    def page(self, maker: str) -> "partial[bytes]":
        return partial(self.render, maker)

    def _render(self, maker: str, all_seen: list[Seen]) -> bytes:
        exporter, page = self._pages[maker]
        seen = _of(exporter, all_seen)
        rows = container_rows(seen, self._state.pods)
        return page.render(
            {Per.CARD: card_rows(seen), Per.CONTAINER: rows, Per.SLICE: [*filter(_is_sliced, rows)]}
        )


def fleet_exporters() -> list[Exporter]:
    """Return all makers' exporters; rows of each say of which node they are."""
    found = {**_exporters(DCGM_OPTION), **_exporters(VENDOR_OPTION)}
    return [
        each
        if any("{node}" in text for _, text in each.card_labels)
        else replace(
            each,
            card_labels=(*each.card_labels, ("Hostname", "{node}")),
            instance_labels=(*each.instance_labels, ("Hostname", "{node}")),
        )
        for each in found.values()
    ]


def rows_of(
    exporter: Exporter, all_seen: Iterable[Seen], pods: Mapping[tuple[str, str], Pod]
) -> Rows:
    """Return the rows that an exporter has of a node's cards."""
    seen = [each for each in all_seen if _is_of(exporter, each)]
    containers = container_rows(seen, pods)
    return {
        Per.CARD: card_rows(
            [each for each in seen if not each.instances or not exporter.has_parts]
        ),
        Per.INSTANCE: instance_rows(seen) if exporter.has_parts else [],
        Per.CONTAINER: containers,
        Per.SLICE: [*filter(_is_sliced, containers)],
    }


def _is_of(exporter: Exporter, seen: Seen) -> bool:
    own = exporter_of(seen.card)
    return own is not None and own.metrics is exporter.metrics


def _exporters(option: str) -> dict[str, Exporter]:
    """Return the makers' exporters that are served where an option says."""
    found = {v.maker: v.exporter() for v in vendors.VENDORS if v.exporter}
    return {maker: exporter for maker, exporter in found.items() if exporter.option == option}


def _of(exporter: Exporter, seen: list[Seen]) -> list[Seen]:
    return [each for each in seen if exporter_of(each.card) is exporter]


def _is_monitored(seen: Seen) -> bool:
    exporter = exporter_of(seen.card)
    return exporter is not None and bool(exporter.monitored_as)


def _is_sliced(row: Row) -> bool:
    return not row.card.vendor.is_whole
