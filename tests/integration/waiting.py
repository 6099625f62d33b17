"""To wait for what is asserted, and not for something that happens about then."""

from collections.abc import Callable

import anyio


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what an agent knows after it has heard the API server's answer."""
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - the agent tells nobody else
            await anyio.sleep(0.005)
