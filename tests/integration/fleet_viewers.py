"""A fleet with a page, over real sockets, without an API server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.page.feed import Feed
from hami_mock.fleet.page.routes import page_routes
from hami_mock.views.http.server import serve_http


class ShownFleet:
    """A fleet whose page is served, and where."""

    def __init__(self, portal: BlockingPortal, fleet: Fleet, feed: Feed, address: str) -> None:
        self._portal = portal
        self.fleet = fleet
        self.feed = feed
        host, _, port = address.rpartition(":")
        self.address = host, int(port)
        self.url = f"http://{address}"

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function where the fleet lives."""
        return self._portal.call(lambda: function(*arguments, **named))

    def act(self, verb: str, *words: str, **parameters: Any) -> None:
        self.call(lambda: self.fleet.act(verb, self.fleet.find(words), parameters))

    @property
    def viewers(self) -> int:
        return int(self.call(self.feed.status)["viewers"])


@contextmanager
def shown_fleet(fleet: Fleet, address: str = "127.0.0.1:0") -> Iterator[ShownFleet]:
    feed = Feed(fleet)

    async def run(*, task_status: TaskStatus[str]) -> None:
        async with (
            serve_http(address, page_routes(feed, fleet)) as found,
            anyio.create_task_group() as tasks,
        ):
            await tasks.start(feed.run)
            task_status.started(found)
            await anyio.sleep_forever()

    with start_blocking_portal() as portal:
        task, found = portal.start_task(run)
        try:
            yield ShownFleet(portal, fleet, feed, found)
        finally:
            task.cancel()
