import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import COLON, JSON
from hami_mock.hami.register import RegisteredDevice, decode, encode, recognise
from hami_mock.vendors.metax import ENCODING
from tests.unit.hami.test_register import INT32, NVIDIA_JSON, WORDS, registered, some

TEXT = (
    '[{"uuid":"GPU-m1","bdf":"0000:1b:00.0","model":"MXC500","totalDevCount":16,'
    '"totalCompute":100,"totalVRam":65536,"availableVRam":1024,"numa":1,"healthy":true,'
    '"qosPolicy":"best-effort","linkZone":1},{"uuid":"GPU-m2","totalDevCount":16}]'
)

devices = registered(
    id=WORDS.filter(bool),  # an empty one is left out, and then nothing says that it is Metax's
    type=st.just("Metax-SGPU"),
    numa=INT32,
    mode=st.just(""),
    custom=st.fixed_dictionaries({"QosPolicy": WORDS, "Model": WORDS, "LinkZone": INT32}),
)


@given(some(devices))
def test_it_carries_its_own_fields(devices: list[RegisteredDevice]) -> None:
    numbered = [replace(device, index=i) for i, device in enumerate(devices)]
    assert decode(encode(ENCODING, numbered), ENCODING) == tuple(numbered)


def test_the_plugins_own_text() -> None:
    one, two = decode(TEXT, ENCODING)
    custom = {"QosPolicy": "best-effort", "Model": "MXC500", "LinkZone": 1}
    assert one == RegisteredDevice("GPU-m1", 16, 65536, 100, "Metax-SGPU", numa=1, custom=custom)
    assert two.index == 1
    assert not two.healthy


def test_it_is_written_without_what_the_scheduler_does_not_read() -> None:
    written = json.loads(encode(ENCODING, decode(TEXT, ENCODING)))
    assert written == [
        {key: value for key, value in row.items() if key not in ("bdf", "availableVRam")}
        for row in json.loads(TEXT)
    ]


def test_it_is_known_only_where_it_is_expected() -> None:
    assert recognise(TEXT, ENCODING) == ENCODING
    assert recognise(TEXT) == recognise(TEXT, COLON) == recognise(NVIDIA_JSON, ENCODING) == JSON


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"uuid":"m","totalVRam":"64Gi"}]', "device 0 (m): totalVRam: '64Gi' must be a whole"),
        ('[{"uuid":"m"},null]', "device 1: None must be an object"),
        (NVIDIA_JSON, "the value is in JSON, but HAMi reads Metax's JSON here"),
        ("[]", "the value is in JSON, but HAMi reads Metax's JSON here"),
        ("m,1,1,1,T,0,true:", "is in colon form of 7 fields, but HAMi reads Metax's JSON here"),
    ],
)
def test_what_the_scheduler_refuses_is_refused(text: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        decode(text, ENCODING)
    assert message in str(caught.value)


def test_another_encoding_can_be_asked_for_too() -> None:
    assert decode(NVIDIA_JSON, ENCODING, or_another=True) == decode(NVIDIA_JSON)


def test_numbers_that_hami_cannot_hold_are_not_written() -> None:
    (one, _) = decode(TEXT, ENCODING)
    with pytest.raises(Malformed, match="count: '2147483648' must be a whole number"):
        encode(ENCODING, [replace(one, count=2**31)])
