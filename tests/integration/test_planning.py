"""A plan for the companion of a real plugin, with the node from an API server."""

from pathlib import Path

import anyio
import pytest

from hami_mock.errors import UsageError
from hami_mock.sources.planning import plan
from tests.integration.fake_api_server import api_server
from tests.unit.sources.annotated.nodes import card, cards, node, numbers, settings


def test_the_api_server_is_asked_for_the_node(tmp_path: Path) -> None:
    async def run() -> None:
        with anyio.fail_after(60):
            async with api_server(tmp_path) as server:
                with pytest.raises(UsageError) as caught:
                    await plan(settings(source="hami"))
                assert str(caught.value).startswith("--node-name: ")
                server.put("nodes", node(cards(card("GPU-1", devmem=10))))
                planned = await plan(settings(source="hami"))
                assert numbers(planned.node)["nvidia.com/gpumem"] == 10
                assert (planned.version, planned.missing) == ((1, 35), ())

    anyio.run(run)
