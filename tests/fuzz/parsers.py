"""The parsers: text and bytes that come from files, annotations, people and the kubelet."""

import json
import os
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime
from functools import cache
from io import BytesIO, TextIOWrapper
from typing import Any

from hami_mock.cli.main import main
from hami_mock.control.protocol import error_line, read_answer, read_request
from hami_mock.errors import HamiMockError, StartError, UsageError
from hami_mock.faults import scenario_reader
from hami_mock.hami import go_values, register, scores
from hami_mock.hami.assignment import Assignment
from hami_mock.hami.errors import Malformed
from hami_mock.hami.handshake import Handshake
from hami_mock.hami.kinds import JSON, MIG_ALLOCATIONS
from hami_mock.hami.lock import NodeLock
from hami_mock.kit import durations, moments, strict_yaml, values
from hami_mock.kit.quantities import quantity
from hami_mock.kubelet import limits, unit_ids, wire
from hami_mock.node import load_reader
from hami_mock.node.load_shapes import KINDS, Moment
from hami_mock.node.sizing import Node
from hami_mock.settings.hami_config import device_config
from hami_mock.settings.options import OPTIONS
from hami_mock.settings.settings import Settings, load, load_all
from hami_mock.sources import load_traces, unit_record
from hami_mock.sources.annotated.derive import derive, relevant
from hami_mock.sources.configured import configured_node
from hami_mock.vendors import Vendor, nvidia_mig
from hami_mock.vendors.amd import COMPUTE_UNITS
from hami_mock.vendors.handout import Container, hand_out
from hami_mock.views import status_note
from tests.fuzz import seeds
from tests.fuzz.target import Broken, Target, folder
from tests.makers import BY_WORD, ENFLAME, METAX
from tests.unit.builders import cards

NOW = datetime(2026, 11, 15, 23, 30, tzinfo=UTC)
_NO_ERROR: tuple[type[Exception], ...] = ()


def _text(data: bytes) -> str:
    """Text as it comes from a JSON document or a file: with half surrogate pairs, but no bytes."""
    return data.decode("utf-8", errors="replace").replace("\ufffd", "\ud800")


def _of_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(_text(data))


def file_of(data: bytes, name: str = "input.yaml") -> str:
    path = folder() / name
    path.write_bytes(data)
    return str(path)


@cache
def _settings() -> Settings:
    return load({"node-name": "n1", "source": "hami"})


@cache
def _a_node() -> Node:
    return configured_node(load({"node-name": "n1"}), None)


def _config(data: bytes) -> None:
    flags = {"config": file_of(data), "node-name": "n1"}
    settings = load(flags)
    load_all(flags)
    configured_node(settings, settings.kubelet_version)


def _flags(data: bytes) -> None:
    """Take each line as a value of an option, as a flag and as `ctl set` would give it."""
    lines = _text(data).split("\n")
    chosen = {
        OPTIONS[i % len(OPTIONS)].name: line
        for i, line in zip((*data[-8:], *range(8)), lines, strict=False)
    }
    for name in ("config", "device-config-file", "scenario", "load-trace"):
        chosen.pop(name, None)  # a file of that name is another target
    load(chosen, chosen)


def _values(data: bytes) -> None:
    """Read a value, as YAML or as text, by every kind that an option may be of."""
    text = _text(data)
    try:
        found: list[object] = [text, strict_yaml.load(text)]
    except ValueError:
        found = [text]
    kinds = {id(option.kind): option.kind for option in OPTIONS}.values()
    for value in found:
        for kind in (*kinds, values.LINE, values.SPAN, values.SEED, values.SWITCH):
            try:
                kind.show(kind.read(value))
            except ValueError:
                values.not_allowed("place", value, kind.allowed)


def _yaml(text: str) -> None:
    strict_yaml.load(text)


def _device_config(text: str) -> None:
    config = device_config.parse(text, "device-config.yaml")
    for vendor in _settings().vendors:
        config.options(vendor.vendor, "n1")
        config.of(vendor.vendor)


def _register(vendor: Vendor) -> Callable[[bytes], object]:
    """Read the cards of a vendor's annotation, as a companion does; it has its own encoding."""

    def read(text: str) -> None:
        found = register.decode(text, vendor.hami.node.encoding, "n1", or_another=True)
        for device in found:
            with suppress(Malformed):
                register.encode(JSON, [device])

    return _of_text(read)


def _assignment(text: str) -> None:
    found = Assignment.parse(text)
    if Assignment.parse(found.encode()) != found:
        raise Broken("an assignment reads otherwise after it was written")


def _handshake(text: str) -> None:
    found = Handshake.parse(text)
    if found is not None:
        found.drops_node(NOW, 0)


def _lock(text: str) -> None:
    found = NodeLock.parse(text)
    found.expired(NOW)
    if NodeLock.parse(found.encode()).time != found.time.replace(microsecond=0):
        raise Broken("a lock has another time after it was written")


def _status_note(text: str) -> None:
    found = status_note.read({status_note.ANNOTATION: text})
    amounts = {name: count or 0 for name, count in found.items()}
    confirmed = {name for name, count in found.items() if count is not None}
    again = status_note.write(amounts, confirmed)
    if status_note.read({status_note.ANNOTATION: again or "{}"}) != found:
        raise Broken("a note of units reads otherwise after it was written")


def _mig(text: str) -> None:
    """Let a container have the instances that the annotation reserves for it."""
    devices = Assignment.parse("GPU-1,NVIDIA,1,1:;").containers[0]
    own = {MIG_ALLOCATIONS: text}
    nvidia_mig.made(text)
    nvidia_mig.hand_out(Container(BY_WORD["NVIDIA"], own, 0, devices, ("GPU-1",), "x"))


def _templates(text: str) -> None:
    """Let a container have the template that the annotation names."""
    devices = Assignment.parse("0E3A8B1C,Ascend910B3,1,1:;").containers[0]
    own = {"huawei.com/Ascend910B3": text}
    hand_out(Container(BY_WORD["Ascend910B3"], own, 0, devices, ("0",), "x"))


def _compute_units(text: str) -> None:
    """Let a container have what the annotations of its own and of another pod leave."""
    amd = BY_WORD["AMD"]
    own = cards(1, amd.vendor)
    text = text.replace("GPU-1", own[0].uuid)
    devices = Assignment.parse(f"{own[0].uuid},AMD,1,1:;").containers[0]
    for annotations, others in (({COMPUTE_UNITS: text}, ()), ({}, (text,))):
        hand_out(Container(amd, annotations, 0, devices, ("0",), "x", cards=own, shared=others))


def _json(text: str) -> None:
    for element in go_values.json_list(text):
        fields = go_values.Fields(element, "x")
        for name in list(fields.given):
            for kind in (str, bool, dict, list):
                with suppress(Malformed):
                    fields.get(name, kind)
            with suppress(Malformed):
                fields.get(name, go_values.INT32)


def _document(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return {}


def _command(*words: str) -> None:
    """Run the program as people do; it must say what is wrong, and never that it is at fault."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        main(words)
    err.seek(0)
    if found := re.search(r"internal error, please report it: (\w+)", err.read()):
        raise Broken(f"internal error {found[1]} in {words[0]}")


def _doctor(data: bytes) -> None:
    """Examine what a file has."""
    _command("doctor", "-f", file_of(data, "object.json"), "-o", "json")


def _doctor_with(right: bytes) -> Callable[[bytes], None]:
    """Examine what a file has beside what is right."""

    def run(data: bytes) -> None:
        other = file_of(right, "right.json")
        _command("doctor", "-f", file_of(data, "object.json"), "-f", other)

    return run


def _annotated(data: bytes) -> None:
    document = _document(data)
    if isinstance(document, dict):
        derive(document, _settings())
        relevant(document, _settings())


def _unit_record(data: bytes) -> None:
    (folder() / unit_record.FILE).write_bytes(data)
    unit_record.read(folder(), load({"node-name": "n1"}))


def _unit_ids(text: str) -> None:
    for heads in ("0123", "{ab", "{" + "z"):
        ids = unit_ids.UnitIds(heads)
        number = ids.decode(text)
        if number is not None and ids.encode(number) != text:
            raise Broken("a unit has another ID than it was found by")


def _scenario(text: str) -> None:
    scenario_reader.parse(text, "scenario.yaml", _a_node())


def _load(text: str) -> None:
    """Read a load as an annotation has it, and ask how busy that is."""
    shape = load_reader.read(text, "x")
    for elapsed in (0.0, 59.5, 1e6):
        moment = Moment(elapsed, NOW.timestamp(), 7)
        if not 0 <= shape.value(moment) <= 100 or not 0 <= shape.memory_part(moment) <= 100:
            raise Broken("a load that is no percentage")


def _load_trace(data: bytes) -> None:
    trace = load_traces.read([file_of(data, "trace.csv")])
    if series := trace.find(("default", "a", "main"), 7):
        for elapsed in (0.0, 59.5, 1e6):
            busy = trace.at(series, elapsed).busy
            if busy is not None and not 0 <= busy <= 100:
                raise Broken("a trace that is no percentage")


def _request(data: bytes) -> None:
    try:
        read_request(data)
    except HamiMockError as error:
        error_line(error)
        raise


def _answer(data: bytes) -> None:
    with suppress(UsageError, StartError):  # an error that is as long as the agent made it
        read_answer(data)


def _wire(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        found = read(data)
        if not isinstance(found, list):
            list(found)  # type: ignore[call-overload]

    return run


def _moment(text: str) -> None:
    moments.show(moments.parse(text, NOW.timestamp()))


def _encoded(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


_ALLOCATE = [
    wire.allocate_request([["abc", "abd", "abe"], ["GPU-1-0"]]),
    wire.allocate_request([[f"{i:04d}" for i in range(300)]]),
]
_POD_RESOURCES = [
    wire.pod_resources({"p1": {"nvidia.com/gpumem": [f"{i:03d}" for i in range(40)]}}),
    wire.pod_resources({"p1": {"a/b": ["1"]}, "p2": {"c/d": ["é", "x" * 200]}}),
]
_LISTS = [wire.device("GPU-1-0", wire.HEALTHY, 1) + wire.device("x", wire.UNKNOWN)]
_CONFIGS = seeds.files("overlays/**/fleet.yaml", "overlays/**/config*.yaml") or [b"nvidia-cards: 2"]
_OPTION_WORDS = [option.name.encode() + b": " for option in OPTIONS]
_KEYS = _encoded(
    *("id", "count", "devmem", "devcore", "type", "index", "numa", "mode", "health", "uuid"),
    *("migProfiles", "migtemplate", "placements", "start", "size", "custominfo", "profiles"),
    *("devices", "capacity", "containerIndex", "deviceIndex", "gpuUUID", "profile", "placement"),
)
_SCENARIO_WORDS = _encoded(
    *("steps: ", "loop: ", "every: ", "for: ", "at: ", "until: ", "times: ", "choose: 50%"),
    *("jitter: ", "repeat: forever", "fail: nvidia/0", "xid: ", "slow: ", "length: ", "seed: "),
)

TARGETS = (
    Target("yaml", _of_text(_yaml), (ValueError,), [*_CONFIGS, b"a: &a [1]\nb: *a\n<<: {c: 1}"]),
    Target("config-file", _config, (UsageError,), _CONFIGS, _OPTION_WORDS),
    Target("options", _flags, (UsageError,), _encoded("3", "on", "1,2", "auto", "a=2,b=3", "1.36")),
    Target("values", _values, _NO_ERROR, _encoded("3", "on", "1s", "1e6", "[1, 2]", "{a: 1}")),
    Target(
        "device-config",
        _of_text(_device_config),
        (UsageError,),
        seeds.files("tests/e2e/hami-device-config.yaml"),
        _encoded("nvidia:", "resourceCountName: ", "commonWord: ", "chipName: ", "templates: "),
    ),
    Target(
        "scenario",
        _of_text(_scenario),
        (UsageError,),
        seeds.files("examples/scenarios/*.yaml"),
        _SCENARIO_WORDS,
    ),
    Target(
        "load",
        _of_text(_load),
        (UsageError,),
        _encoded(*seeds.LOADS),
        _encoded(*KINDS, "memory=", "part=", "period=", "time: ", "utilization: ", "repeat: "),
    ),
    Target("load-trace", _load_trace, (UsageError,), _encoded(*seeds.TRACES), _encoded("NA", ",")),
    Target("durations", _of_text(durations.parse), (ValueError,), _encoded(*seeds.DURATIONS)),
    Target("moments", _of_text(_moment), (ValueError,), _encoded(*seeds.MOMENTS)),
    Target("versions", _of_text(limits.parse_version), (ValueError,), _encoded("v1.36.4", "1.35")),
    Target("quantities", _of_text(quantity), _NO_ERROR, _encoded("20", "1k", "4Gi", "1e3", "0.5m")),
    Target("register", _register(METAX), (Malformed,), _encoded(*seeds.REGISTERS), _KEYS),
    Target("drs", _register(ENFLAME), (Malformed,), _encoded(*seeds.DRS), _KEYS),
    Target("assignment", _of_text(_assignment), (Malformed,), _encoded(*seeds.ASSIGNMENTS)),
    Target("templates", _of_text(_templates), (Malformed,), _encoded(*seeds.TEMPLATES), _KEYS),
    Target(
        "compute-units",
        _of_text(_compute_units),
        (Malformed, HamiMockError),
        _encoded(*seeds.COMPUTE_UNITS),
    ),
    Target("handshake", _of_text(_handshake), _NO_ERROR, _encoded(*seeds.HANDSHAKES)),
    Target("lock", _of_text(_lock), (Malformed,), _encoded(*seeds.LOCKS)),
    Target("status-note", _of_text(_status_note), _NO_ERROR, _encoded(*seeds.STATUS_NOTES)),
    Target("scores", _of_text(scores.decode), (Malformed,), _encoded(*seeds.SCORES), _KEYS),
    Target("mig", _of_text(_mig), (Malformed, HamiMockError), _encoded(*seeds.MIG), _KEYS),
    Target("go-values", _of_text(_json), (Malformed,), _encoded(*seeds.REGISTERS, "[{}]"), _KEYS),
    Target("doctor", _doctor, _NO_ERROR, seeds.OBJECTS),
    Target("doctor-node", _doctor_with(seeds.PODS[0]), _NO_ERROR, seeds.NODES, _KEYS),
    Target("doctor-pod", _doctor_with(seeds.NODES[0]), _NO_ERROR, seeds.PODS, _KEYS),
    Target("annotated", _annotated, _NO_ERROR, seeds.NODES, _KEYS),
    Target("unit-record", _unit_record, _NO_ERROR, _encoded(*seeds.UNIT_RECORDS)),
    Target("unit-ids", _of_text(_unit_ids), _NO_ERROR, _encoded("0000", "{a00", "3zz", "{zzz}")),
    # What calls these takes both errors for a message that is none.
    Target("allocate", _wire(wire.read_allocate_request), (ValueError, IndexError), _ALLOCATE),
    Target(
        "pod-resources", _wire(wire.read_pod_resources), (ValueError, IndexError), _POD_RESOURCES
    ),
    Target("list", _wire(wire.read_devices), (ValueError, IndexError), _LISTS),
    Target("request", _request, (UsageError,), _encoded(*seeds.REQUESTS)),
    Target("answer", _answer, _NO_ERROR, [b'{"result": 1}', b'{"error": ["x"], "code": 2}']),
)

# What the developer's own environment says is no part of an input.
for _name in list(os.environ):
    if _name.startswith("HAMI_MOCK_") or _name == "NODE_NAME":
        del os.environ[_name]
