"""Whatever anybody writes: each reader of HAMi's formats gives a result, or raises Malformed."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hami_mock.errors import NotAssigned, UsageError
from hami_mock.hami import scores
from hami_mock.hami.assignment import AssignedDevice, Assignment
from hami_mock.hami.errors import Malformed
from hami_mock.hami.go_values import LONGEST
from hami_mock.hami.handshake import Handshake
from hami_mock.hami.kinds import COLON, JSON, MIG_ALLOCATIONS, SHORT_COLON
from hami_mock.hami.lock import NodeLock
from hami_mock.hami.register import decode
from hami_mock.settings.hami_config import device_config
from hami_mock.vendors.handout import Container, hand_out, next_claim
from tests.makers import BY_WORD

LONGEST_MESSAGE = 1000

ENFLAME = BY_WORD["Enflame"]
GPU = BY_WORD["NVIDIA"]
NPU = BY_WORD["Ascend910B3"]
DRS_KEYS = (
    "assigned-containers",
    "hami.io/enflame-vgpu-devices-allocated",
    "enflame.com/gcu-assigned-index",
    "enflame.com/gcu-assigned-time",
)
DEVICE = AssignedDevice("GPU-1", "NVIDIA", 3000, 30)

OWN = {vendor.node.encoding for vendor in BY_WORD.values() if vendor.node.encoding}
ENCODINGS = sorted({JSON, COLON, SHORT_COLON} | OWN, key=lambda encoding: encoding.name)

REGISTERS = (
    '[{"id":"GPU-1","index":1,"count":10,"devmem":32768,"devcore":100,"type":"NVIDIA","numa":1,'
    '"mode":"mig","migProfiles":[{"name":"3g.20gb","memoryMB":19968,"core":43,"sliceCount":3,'
    '"placements":[{"start":0,"size":4}]}],"migtemplate":[[{"Name":"1g.5gb","Core":14,'
    '"Memory":5120,"Count":1}]],"health":true,"custominfo":{"NetworkID":1}}]',
    "GPU-1,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:",
    "DCU-TBBA1234,4,65520,100,DCU-K100_AI,0,true,0,hami:",
    '[{"uuid":"GPU-m1","model":"MXC500","totalDevCount":16,"totalCompute":100,"totalVRam":65536,'
    '"numa":1,"healthy":true,"qosPolicy":"best-effort","linkZone":1}]',
    '{"devices":[{"index":"0","minor":"0","capacity":6}],"profiles":{"1g.6gb":"0","6g.40gb":"2"}}',
)
SLICES = '{"a":{"allocated":false,"request":3,"profileID":"0","profileName":"3g.8gb"}}'
INSTANCES = (
    '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-1","profile":"1g.5gb",'
    '"placement":{"start":4,"size":1}}]'
)
CONFIG = json.dumps(
    {
        "nvidia": {
            "resourceCountName": "nvidia.com/gpu",
            "deviceSplitCount": 10,
            "deviceMemoryScaling": 1.5,
            "memoryFactor": 1,
            "knownMigGeometries": [
                {"models": ["A30"], "allowedGeometries": [[{"name": "1g.6gb", "memory": 6144}]]}
            ],
            "migProfileAllowlist": [{"models": ["A30"], "profiles": ["1g.6gb"]}],
        },
        "nodeconfig": [{"name": "n1", "filterdevices": {"uuid": ["GPU-1"], "index": [0]}}],
        "vnpus": {
            "hamiVnpuCore": True,
            "configs": [
                {
                    "chipName": 910,
                    "commonWord": "Ascend910A",
                    "resourceName": "huawei.com/Ascend910A",
                    "memoryAllocatable": 32768,
                    "templates": [{"name": "vir02", "memory": 2184, "aiCore": 2}],
                }
            ],
        },
        "iluvatars": [{"commonWord": "MR-V100", "resourceCountName": "iluvatar.ai/MR-V100-vgpu"}],
    }
)


def slices(annotations: Mapping[str, str]) -> None:
    """Read what is left of a pod with slices, and hand it out until nothing is."""
    claim = next_claim(ENFLAME, annotations, 3)
    while claim is not None:
        hand_out(Container(ENFLAME, annotations, claim.position, claim.devices, ("1",), "x"))
        annotations = {**annotations, **claim.taken}
        claim = next_claim(ENFLAME, annotations, 3)


def instances(text: str) -> None:
    hand_out(Container(GPU, {MIG_ALLOCATIONS: text}, 0, (DEVICE,), ("1",), "x", mode="mig"))


# Each reader, and what is really written for it.
READERS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "register": (decode, REGISTERS),
    **{
        f"register in {each.name}": (partial(decode, encoding=each, node_name="n1"), REGISTERS)
        for each in ENCODINGS
    },
    "assignment": (
        lambda text: Assignment.parse(text).pop()[1].encode(),
        ("GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,1000,0:;;GPU-2,NVIDIA,1000,0:;",),
    ),
    "handshake": (
        Handshake.parse,
        ("Requesting_2026-11-15 23:25:11", "Reported 2026-11-15 23:25:11.123 +0800 CST m=+1.2"),
    ),
    "lock": (
        lambda text: NodeLock.parse(text).encode(),
        ("2026-11-15T23:25:11Z,default,p1", "2026-11-15T23:25:11.5+08:00"),
    ),
    "scores": (scores.decode, ('[{"uuid":"a","score":{"b":20}},{"uuid":"b","score":{"a":20}}]',)),
    "templates": (
        lambda text: hand_out(
            Container(NPU, {"huawei.com/Ascend910B3": text}, 0, (DEVICE,), ("1",), "x")
        ),
        ('[{"UUID":"GPU-1","temp":"vir05_1c_16g","memory":16384}]',),
    ),
    "instances": (instances, (INSTANCES,)),
    "slices": (lambda text: slices({"assigned-containers": text}), (SLICES,)),
    "what is left": (
        lambda text: next_claim(GPU, {GPU.pods.to_allocate: text}, 1),
        ("GPU-1,NVIDIA,3000,30:;",),
    ),
    "device configuration": (lambda text: device_config.parse(text, "x.yaml"), (CONFIG,)),
}

# What has broken readers before: other digits, too many of them, halves of pairs, no numbers.
ODD = (
    "٣", "²", "9" * 5000, "-1", "1e999", "NaN", "\ud800", '"\\ud800"', "\n", "\x00", "null", "{}",
    "[" * 1200, '{"a":' * 1200, "1_0", "+", "true", ":" * 5000, ";" * 5000, "," * 5000,
)  # fmt: skip

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
KEYS = st.sampled_from(sorted(set(re.findall(r'"(\w+)":', "".join((*REGISTERS, SLICES, CONFIG))))))
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
).map(json.dumps)


@st.composite
def mutated(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    """What is really written, with some of it replaced."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        new = draw(st.sampled_from(ODD) | scalars.map(json.dumps) | st.text(max_size=5))
        text = text[:start] + new + text[end:]
    return text


@st.composite
def revalued(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    """What is really written, with one of its JSON values replaced by another."""
    text = draw(st.sampled_from(texts))
    try:
        document = json.loads(text)
    except ValueError:
        return text
    holder, key = draw(st.sampled_from(list(places(document))))
    holder[key] = draw(scalars | st.sampled_from(ODD) | st.lists(scalars, max_size=2))
    return json.dumps(document)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where each value of a document stands."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def refusals(read: Callable[[str], object], text: str) -> Sequence[str]:
    """What is wrong with a text; nothing if it can be read."""
    try:
        read(text)
    except UsageError as error:
        return error.problems  # what is wrong with the user's own file
    except (Malformed, NotAssigned) as error:
        return [str(error)]
    return []


def check(read: Callable[[str], object], text: str) -> None:
    for problem in refusals(read, text):
        assert 0 < len(problem) < LONGEST_MESSAGE
        assert problem.isprintable()


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_anything_is_read_or_refused_in_short(name: str, data: st.DataObject) -> None:
    read, real = READERS[name]
    texts = st.text() | documents | st.sampled_from(ODD) | mutated(real) | revalued(real)
    check(read, data.draw(texts))


@pytest.mark.parametrize("name", READERS)
def test_each_part_may_be_anything(name: str) -> None:
    read, real = READERS[name]
    for text in real:
        for part in re.finditer(r"[^\W_]+", text):
            for odd in ODD:
                check(read, text[: part.start()] + odd + text[part.end() :])


@pytest.mark.parametrize("name", READERS)
def test_each_value_may_be_anything(name: str) -> None:
    read, real = READERS[name]
    values: tuple[Any, ...] = (
        *ODD,
        -1,
        2**63,
        10**400,
        1.5,
        True,
        None,
        [],
        {},
        [[]],
        ["\ud800"],
        {"\n": "\n"},
    )
    for text in (text for text in real if text.startswith(("[", "{"))):
        document = json.loads(text)
        for holder, key in list(places(document)):
            old = holder[key]
            for value in values:
                holder[key] = value
                check(read, json.dumps(document))
            holder[key] = old


@pytest.mark.parametrize("name", READERS)
def test_what_is_really_written_is_read_or_of_another_encoding(name: str) -> None:
    """Else the others would show nothing."""
    other = ("but HAMi reads", "must be a list")  # the latter of a vendor's own JSON
    read, real = READERS[name]
    found = [refusals(read, text) for text in real]
    assert [] in found
    assert all(any(each in problem for each in other) for problem in chain(*found))


@pytest.mark.parametrize(
    "piece", ["x", "é", "\ud800", "[", '{"a":', ":", ";", ",", "9", "a,b,1,1:"]
)
@pytest.mark.parametrize("name", [name for name in READERS if name != "device configuration"])
def test_what_is_too_large_is_refused_in_short(name: str, piece: str) -> None:
    read, real = READERS[name]
    for text in (piece * (LONGEST // len(piece)), real[0] + piece * LONGEST):
        check(read, text)


@given(st.dictionaries(st.sampled_from(DRS_KEYS), st.sampled_from((*ODD, SLICES, "0")) | documents))
@settings(max_examples=200, deadline=None)
def test_all_that_a_pod_with_slices_says_is_read_or_refused(annotations: dict[str, str]) -> None:
    check(lambda _: slices(annotations), "")
