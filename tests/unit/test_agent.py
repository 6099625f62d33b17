import logging
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from hami_mock import agent
from hami_mock.errors import StartError
from hami_mock.node.advice import dra_warnings
from hami_mock.settings.settings import load
from hami_mock.sources import configured


def announced(caplog: pytest.LogCaptureFixture, **flags: str) -> list[tuple[str, str]]:
    settings = load({name.replace("_", "-"): value for name, value in flags.items()})
    node, host = anyio.run(configured.plan, settings)
    with caplog.at_level(logging.INFO):
        agent._announce(settings, node, host.version)
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_the_start_is_logged_with_the_resources_and_the_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = announced(caplog, node_name="node-a", kubelet_version="1.36")
    assert "on node node-a: 8 cards, 8 resources" in lines[0][1]
    assert ("INFO", "nvidia.com/gpumem: 65536 x 1 MiB") in lines
    warned = [text.partition(":")[0] for level, text in lines if level == "WARNING"]
    assert warned == ["nvidia.com/gpumem", "huawei.com/Ascend910-memory"]


def test_the_start_says_what_stands_in_the_status(caplog: pytest.LogCaptureFixture) -> None:
    lines = announced(caplog, node_name="node-a", kubelet_version="1.36", units="status")
    assert ("INFO", "nvidia.com/gpu: 20 x slot") in lines
    assert ("INFO", "nvidia.com/gpumem: 65536 x 1 MiB, in the Node's status") in lines
    assert [text for level, text in lines if level == "WARNING"] == []


def test_a_node_without_cards_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    none = dict.fromkeys(("nvidia_cards", "mlu_cards", "iluvatar_cards", "ascend_cards"), "0")
    lines = announced(caplog, **none)
    assert [level for level, text in lines if "nothing will be registered" in text] == ["WARNING"]


@pytest.mark.parametrize(
    ("dra", "told"),
    [("", "a real plugin registers the resources"), ("hami", "claims get the cards through DRA")],
)
def test_without_device_plugins_it_says_who_gives_the_cards_away(
    caplog: pytest.LogCaptureFixture, dra: str, told: str
) -> None:
    lines = announced(caplog, device_plugins="off", **({"dra": dra} if dra else {}))
    assert ("INFO", f"device plugins are off: {told}") in lines


NOTHING = (
    "--dra hami does nothing on this node: there is no such driver for its cards, so no claim gets "
    "one"
)
TWICE = (
    "device plugins and DRA offer the same cards, and neither knows what the other gives out: turn "
    "device plugins off with --device-plugins off"
)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"dra": "hami"}, [TWICE]),
        ({"dra": "hami", "device_plugins": "off"}, []),
        ({"dra": "hami", "vendors": "mlu"}, [NOTHING]),
        ({"dra": "hami", "vendors": "mlu", "device_plugins": "off"}, [NOTHING]),
        ({"dra": "hami,example", "vendors": "mlu"}, [TWICE]),
        ({"dra": "hami", "vendors": "nvidia,mlu", "nvidia_cards": "0"}, [NOTHING]),
        ({"dra": "hami", "vendors": "mlu", "mlu_cards": "0"}, []),
        ({"vendors": "nvidia"}, []),
    ],
)
def test_dra_is_warned_of_where_it_offers_cards_twice_or_not_at_all(
    caplog: pytest.LogCaptureFixture, flags: dict[str, str], told: list[str]
) -> None:
    lines = announced(caplog, kubelet_version="1.35", **flags)
    # A plan says the same.
    settings = load({name.replace("_", "-"): value for name, value in flags.items()})
    node, _ = anyio.run(configured.plan, settings)
    assert dra_warnings(node, settings.dra) == told
    assert [text for level, text in lines if level == "WARNING" and "DRA" in text.upper()] == told


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"dra": "hami"}, "--dra: "),
        ({"hami": "on", "units": "status"}, "--hami on, --units status: "),
        ({"labels": "gfd", "pods": "on"}, "--labels, --pods on: "),
    ],
)
def test_without_an_api_server_the_flags_that_need_it_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: dict[str, str], told: str
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    async def connect() -> None:
        async with AsyncExitStack() as connections:
            await agent._connect(load(flags), connections)

    with pytest.raises(StartError, match=f"^{told}the API server is needed: no cluster found"):
        anyio.run(connect)


def test_an_agent_without_the_cluster_loads_nothing_of_it() -> None:
    program = (
        "import sys, hami_mock.cli.run, hami_mock.agent, hami_mock.control.server; "
        "print([m for m in sys.modules if m in ('httpcore2', 'h11', 'yaml') "
        "or m.startswith(('hami_mock.views.hami', 'hami_mock.views.labels', "
        "'hami_mock.sources.annotated')) or m.endswith(('_labels', '.label_text'))])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "[]\n"
