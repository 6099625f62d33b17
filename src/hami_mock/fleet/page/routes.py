"""What the fleet's process serves for its page."""

import json
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from hami_mock.fleet.details import details
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.page.feed import Feed
from hami_mock.views.http.messages import Answer, Named, Routes
from hami_mock.views.page.routes import page

FILE = Path(__file__).with_name("page.html")
_FRESH = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def page_routes(feed: Feed, fleet: Fleet) -> Routes:
    """Return the page, its events, and what there is to know of one node."""
    return {
        "/": partial(page, FILE),
        "/events": feed.stream,
        "/nodes/": Named(partial(_node, fleet)),
    }


def _node(fleet: Fleet, name: str) -> Answer:
    member = fleet.members.get(name)
    if member is None:
        return _json({"error": "there is no such node"}, HTTPStatus.NOT_FOUND)
    return _json(details(fleet, member), HTTPStatus.OK)


def _json(data: Mapping[str, Any], status: HTTPStatus) -> Answer:
    return Answer(json.dumps(data).encode(), status, "application/json", _FRESH)
