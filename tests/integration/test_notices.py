"""Without the kubelet's pod-resources socket: a notice, once, and everything else works."""

import json
import logging
from pathlib import Path
from types import ModuleType

import pytest

from hami_mock.cli.ctl import screens
from hami_mock.sources import holders
from tests.integration.agents import agent_thread, get
from tests.integration.test_evil_kubelet import FEW, good_kubelet
from tests.pod_resources import listing, pod_resources

POD = ("default", "a", "main")


def test_who_holds_what_is_not_known_until_it_is(
    socket_folder: Path,
    google_messages: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(holders, "_AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(holders, "_SETTLE_SECONDS", 0.05)
    path = socket_folder / "pods.sock"
    flags = {"http_listen": "127.0.0.1:0", "pod_resources_socket": str(path), **FEW}
    with (
        caplog.at_level(logging.WARNING, "hami_mock"),
        agent_thread(socket_folder, **flags) as agent,
        good_kubelet(socket_folder, google_messages) as kubelet,
    ):
        state = agent.agent.state
        url = f"http://{agent.agent.views[0].status()['address']}"

        def body() -> dict[str, object]:
            found: dict[str, object] = json.loads(get(f"{url}/readyz")[1])
            return found

        kubelet.wait_until(lambda: body()["ready"] is True)
        reason = f"it isn't known who holds what: there is no {path}"
        kubelet.wait_until(lambda: body()["notices"] == {"holders": reason})
        assert get(f"{url}/readyz")[0] == 200
        shown = [*screens.status(agent.call(agent.agent.status))]
        assert shown[-1] == f"It isn't known who holds what: there is no {path}"
        assert state.holdings() == {}
        told = [text for text in caplog.messages if "who holds which device" in text]
        assert told == [f"can't ask the kubelet who holds which device: there is no {path}"]

        card = agent.agent.node.cards[1]
        with pod_resources(path) as pods:
            pods.payload = listing({POD: {"nvidia.com/gpu": [f"{card.uuid}-0"]}})
            kubelet.wait_until(lambda: body()["notices"] == {})
            assert [usage.container for usage in agent.call(state.usages, card)] == [POD]
            shown = [*screens.status(agent.call(agent.agent.status))]
            assert shown[-1].split()[:3] == ["nvidia/1", "default/a", "main"]
            pods.payload = listing({})
            # The pod has ended, and nobody has asked.
            kubelet.wait_until(lambda: not agent.call(state.usages, card))
