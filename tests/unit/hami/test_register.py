from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import COLON, JSON, SHORT_COLON, Encoding
from hami_mock.hami.mig import MigPlacement, MigProfile, MigTemplate
from hami_mock.hami.register import RegisteredDevice, decode, encode, recognise

INT32 = st.integers(-(2**31), 2**31 - 1)
UINT32 = st.integers(0, 2**32 - 1)
WORDS = st.text("ABCxyz019-_./ ö\"'\\", max_size=12)

V100 = RegisteredDevice(
    id="GPU-00552014-5c87-89ac-b1a6-7b53aa24b0ec",
    count=10,
    memory=32768,
    cores=100,
    type="NVIDIA-Tesla V100-PCIE-32GB",
    mode="hami-core",
)

# As the plugin of HAMi 2.10 writes it: index 0, NUMA node 0 and ill health are left out.
NVIDIA_JSON = (
    '[{"id":"GPU-1","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100-PCIE-32GB",'
    '"mode":"hami-core","health":true},'
    '{"id":"GPU-2","index":1,"count":10,"devmem":32768,"devcore":100,'
    '"type":"NVIDIA-Tesla V100-PCIE-32GB","numa":1,"mode":"hami-core"}]'
)
MIG_JSON = (
    '[{"id":"GPU-1","count":7,"devmem":40960,"devcore":100,"type":"NVIDIA A100-SXM4-40GB",'
    '"mode":"mig","migProfiles":[{"name":"3g.20gb","memoryMB":19968,"core":43,"sliceCount":3,'
    '"placements":[{"start":0,"size":4},{"start":4,"size":4}]}],"health":true}]'
)
OLD_MIG_JSON = (
    '[{"id":"GPU-1","count":7,"devmem":40960,"devcore":100,"type":"NVIDIA A100-SXM4-40GB",'
    '"mode":"mig","migtemplate":[[{"Name":"1g.5gb","Core":14,"Memory":5120,"Count":1},'
    '{"Name":"2g.10gb","Core":28,"Memory":10240,"Count":3}]],"health":true}]'
)
ASCEND_JSON = (
    '[{"id":"0E3A8B1C-20304050-11223344-55667788-99AABBCC","index":4,"count":4,"devmem":65536,'
    '"devcore":20,"type":"Ascend910B3","health":true,"custominfo":{"NetworkID":1}}]'
)
OLD_NVIDIA = (
    "GPU-00552014-5c87-89ac-b1a6-7b53aa24b0ec,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:"
    "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,1,false:"
)
DCU = (
    "DCU-TBBA1234,4,65520,100,DCU-K100_AI,0,true,0,hami:"
    "DCU-TBBA1235,4,65520,100,DCU-K100_AI,0,true,1,hami:"
)


def registered(**changes: Any) -> st.SearchStrategy[RegisteredDevice]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "id": WORDS,
        "count": INT32,
        "memory": INT32,
        "cores": INT32,
        "type": WORDS,
        "index": st.integers(0, 2**63 - 1),
        "numa": st.integers(-(2**63), 2**63 - 1),
        "mode": WORDS,
        "healthy": st.booleans(),
    }
    return st.builds(RegisteredDevice, **(fields | changes))


profiles = st.builds(
    MigProfile,
    name=WORDS,
    memory=INT32,
    cores=INT32,
    slices=UINT32,
    placements=st.lists(st.builds(MigPlacement, UINT32, UINT32), max_size=2).map(tuple),
)
geometries = st.lists(st.builds(MigTemplate, WORDS, INT32, INT32, INT32), max_size=2).map(tuple)
customs = st.dictionaries(WORDS, st.integers(0, 9) | WORDS | st.lists(st.none()), max_size=2)
json_devices = registered(
    mig_profiles=st.lists(profiles, max_size=2).map(tuple),
    mig_geometries=st.lists(geometries, max_size=2).map(tuple),
    custom=customs,
)


def some(devices: st.SearchStrategy[RegisteredDevice]) -> st.SearchStrategy[list[RegisteredDevice]]:
    return st.lists(devices, min_size=1, max_size=3)


@given(some(json_devices))
def test_json_carries_everything(devices: list[RegisteredDevice]) -> None:
    assert decode(encode(JSON, devices), JSON) == tuple(devices)


@given(some(registered()))
def test_the_colon_form_carries_nine_fields(devices: list[RegisteredDevice]) -> None:
    text = encode(COLON, devices)
    assert decode(text) == decode(text, SHORT_COLON) == tuple(devices)


@given(some(registered(index=st.just(0), mode=st.just("hami-core"))))
def test_the_short_colon_form_carries_seven_fields(devices: list[RegisteredDevice]) -> None:
    assert decode(encode(SHORT_COLON, devices)) == tuple(devices)


def test_nvidia_json_of_today() -> None:
    one, two = decode(NVIDIA_JSON)
    assert one == replace(V100, id="GPU-1")
    assert two == replace(V100, id="GPU-2", index=1, numa=1, healthy=False)


def test_ascend_json_has_custom_info() -> None:
    (device,) = decode(ASCEND_JSON)
    assert (device.custom, device.mode, device.index) == ({"NetworkID": 1}, "", 4)


def test_mig_has_profiles_since_2_10_and_geometries_before() -> None:
    (new,), (old,) = decode(MIG_JSON), decode(OLD_MIG_JSON)
    placements = (MigPlacement(0, 4), MigPlacement(4, 4))
    assert new.mig_profiles == (MigProfile("3g.20gb", 19968, 43, 3, placements),)
    assert old.mig_geometries == (
        (MigTemplate("1g.5gb", 5120, 14, 1), MigTemplate("2g.10gb", 10240, 28, 3)),
    )


def test_null_is_empty_in_mig_too() -> None:
    (device,) = decode('[{"migProfiles":[null],"migtemplate":[null,[null]]}]')
    assert device.mig_profiles == (MigProfile("", 0, 0, 0),)
    assert device.mig_geometries == ((), (MigTemplate("", 0, 0, 0),))


def test_the_colon_form_of_old_nvidia_plugins() -> None:
    one, two = decode(OLD_NVIDIA)
    assert one == V100
    assert (two.numa, two.healthy, two.index) == (1, False, 0)


def test_the_colon_form_of_hygon() -> None:
    one, two = decode(DCU)
    assert one == RegisteredDevice("DCU-TBBA1234", 4, 65520, 100, "DCU-K100_AI", mode="hami")
    assert two.index == 1


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (JSON, NVIDIA_JSON),
        (JSON, MIG_JSON),
        (JSON, OLD_MIG_JSON),
        (JSON, ASCEND_JSON),
        (COLON, DCU),
        (SHORT_COLON, OLD_NVIDIA),
    ],
)
def test_what_a_real_plugin_wrote_is_written_the_same(encoding: Encoding, text: str) -> None:
    assert recognise(text) == encoding
    assert encode(encoding, decode(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        '[{"ID":"GPU-1","Count":10,"DEVMEM":1,"Health":true}]',  # keys in any case
        '[{"id":"GPU-1","count":10,"devmem":1,"health":true,"numa":null,"custominfo":null}]',
        '[{"id":"GPU-1","count":10,"devmem":1,"health":true,"added_in_2_11":[1]}]',
        ' [{"id":"GPU-1","count":3,"devmem":1,"health":true,"count":10,"uuid":"x"}]',
        '[{"id":"GPU-1","count":10,"devmem":1,"health":true,"ID":null,"devicevendor":"amd"}]',
    ],
)
def test_json_is_read_as_go_reads_it(text: str) -> None:
    assert decode(text) == (RegisteredDevice("GPU-1", 10, 1, 0, "", healthy=True),)


@pytest.mark.parametrize("healthy", ["1", "t", "T", "TRUE", "true", "True"])
def test_the_colon_form_is_read_as_go_reads_it(healthy: str) -> None:
    (device,) = decode(f"::GPU-1,+10,-1,007,a b,-1,{healthy}::")
    assert device == RegisteredDevice("GPU-1", 10, -1, 7, "a b", numa=-1, mode="hami-core")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "the value: '' must be JSON, or fields separated by commas with a colon after each "
            "card",
        ),
        ("GPU-1,1,1,1,T,0,true", "a colon after each card"),
        ("GPU-1:", "device 0 (GPU-1): 'GPU-1' must be 7 or 9 fields separated by commas, not 1"),
        ("G,1,1,1,T,0,true,0:", "device 0 (G): 'G,1,1,1,T,0,true,0' must be 7 or 9 fields"),
        ("G,1,1,1,T,0,true:H,1.5,1,1,T,0,true:", "device 1 (H): count: '1.5' must be a whole"),
        ("G,1,2147483648,1,T,0,true:", "memory: '2147483648' must be a whole number"),
        ("G,1,1, 1,T,0,true:", "cores: ' 1' must be a whole number"),
        ("G,1,1,1_0,T,0,true:", "cores: '1_0' must be a whole number"),
        ("G,1,1,٣,T,0,true:", "cores: '٣' must be a whole number"),
        (f"G,{'1' * 5000},1,1,T,0,true:", f"count: '{'1' * 79}... must be a whole number"),
        ("G,1,1,1,T,,true:", "numa: '' must be a whole number"),
        ("G,1,1,1,T,0,yes:", "health: 'yes' must be true or false"),
        ("G,1,1,1,T,0,true,-1,hami-core:", "index: '-1' must be a whole number from 0"),
        (":", "no devices"),
        ("[]", "no devices"),
        ("null", "no devices"),
        ("{}", "the value: {} must be a list"),
        ("[{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('[{"devmem":NaN}]', "not valid JSON: NaN"),
        ("[null]", "device 0: None must be an object"),
        ('[{"id":7}]', "device 0: id: 7 must be a string"),
        ('[{"id":"a"},{"id":"b","devmem":"3"}]', "device 1 (b): devmem: '3' must be a whole"),
        ('[{"devmem":1.0}]', "device 0: devmem: 1.0 must be a whole number"),
        ('[{"count":true}]', "count: True must be a whole number"),
        ('[{"devcore":2147483648}]', "devcore: 2147483648 must be a whole number from -2147483648"),
        ('[{"index":-1}]', "index: -1 must be a whole number from 0"),
        ('[{"health":"true"}]', "health: 'true' must be true or false"),
        ('[{"health":1}]', "health: 1 must be true or false"),
        ('[{"devicevendor":1}]', "devicevendor: 1 must be a string"),
        ('[{"custominfo":[]}]', "custominfo: [] must be an object"),
        ('[{"migProfiles":{}}]', "migProfiles: {} must be a list"),
        ('[{"migProfiles":[{"name":1}]}]', "device 0: migProfiles[0]: name: 1 must be a string"),
        (
            '[{"id":"G","migProfiles":[{"placements":[{"start":-1}]}]}]',
            "device 0 (G): migProfiles[0]: placements[0]: start: -1 must be a whole number from 0",
        ),
        ('[{"migtemplate":[{}]}]', "migtemplate[0]: {} must be a list"),
        ('[{"migtemplate":[[{"count":"x"}]]}]', "migtemplate[0][0]: count: 'x' must be a whole"),
    ],
)
def test_what_the_scheduler_refuses_is_refused(text: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        decode(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "encoding", "message"),
    [
        (OLD_NVIDIA, JSON, "is in colon form of 7 fields, but HAMi reads JSON here"),
        (NVIDIA_JSON, COLON, "is in JSON, but HAMi reads colon form of 9 fields here"),
    ],
)
def test_another_encoding_than_the_vendors_is_refused(
    text: str, encoding: Encoding, message: str
) -> None:
    with pytest.raises(Malformed, match=message):
        decode(text, encoding)


@pytest.mark.parametrize(
    ("change", "encoding", "message"),
    [
        ({"id": "a:b"}, COLON, "device 0 (a:b): id: 'a:b' must be without comma"),
        ({"type": "a,b"}, SHORT_COLON, "type: 'a,b' must be without comma and colon"),
        ({"mode": "a,b"}, COLON, "mode: 'a,b' must be without comma and colon"),
        ({"memory": 2**31}, JSON, "memory: '2147483648' must be a whole number"),
    ],
)
def test_what_an_encoding_cannot_carry_is_not_written(
    change: Mapping[str, Any], encoding: Encoding, message: str
) -> None:
    with pytest.raises(Malformed) as caught:
        encode(encoding, [replace(V100, **change)])
    assert message in str(caught.value)


@given(st.text('[]{}:,"0129.-truefalsnidcovmxp ;G', max_size=40))
def test_anything_is_read_or_refused(text: str) -> None:
    try:
        devices = decode(text)
    except Malformed:
        return
    assert devices


def test_devices_can_be_kept_in_sets() -> None:
    assert len({*decode(ASCEND_JSON), *decode(ASCEND_JSON)}) == 1
