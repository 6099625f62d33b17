import itertools

import pytest

from hami_mock.settings.options import BY_NAME, ENV_PREFIX, GROUP_OPTIONS, OPTIONS, Option
from hami_mock.vendors import VENDORS, Vendor

NAMES_IN_THE_ISSUE = [
    *(f"nvidia-{key}" for key in ("cards", "model", "memory", "split", "memory-scaling",
                                  "core-scaling", "memory-factor")),
    *(f"mlu-{key}" for key in ("cards", "model", "split")),
    *(f"iluvatar-{key}" for key in ("cards", "model", "split", "core-scaling")),
    *(f"ascend-{key}" for key in ("cards", "model", "memory", "memory-scaling", "memory-factor")),
    "resource-name", "resource-cores", "resource-mem", "resource-mem-percentage",
    "mlu-resource-name", "iluvatar-resource-name", "iluvatar-core-name",
    "mlu-resource-memory-name", "ascend-resource-memory-name",
    "config", "node-name", "socket-dir", "http-listen", "kubelet-version", "log-level",
    "log-format",
    "hami", "device-config-file", "nvidia-mode", "ascend-mode",
    *(f"hygon-{key}" for key in ("cards", "model", "memory", "memory-scaling", "memory-factor",
                                 "core-scaling", "split", "resource-name", "resource-memory-name",
                                 "resource-core-name")),
    *(f"metax-gpu-{key}" for key in ("cards", "model", "resource-name")),
    "mlu-memory-name", "mlu-core-name", "iluvatar-memory-name", "ascend-split",
    "ascend-resource-name", "ascend-resource-core-name",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES_IN_THE_ISSUE)
def test_every_option_of_the_issue_is_there(name: str) -> None:
    assert name in BY_NAME


def test_what_is_given_out_whole_has_no_split() -> None:
    assert "metax-split" in BY_NAME
    assert not {"metax-gpu-split", "awsneuron-split"} & set(BY_NAME)


def test_a_vendor_has_no_options_for_what_it_does_not_count() -> None:
    assert not {"vastai-memory", "vastai-core-scaling", "kunlun-core-scaling"} & set(BY_NAME)


def test_help_says_what_a_unit_is_and_what_hami_calls_it() -> None:
    assert "256 MiB" in BY_NAME["mlu-memory-factor"].help
    assert "huawei.com/CHIP-memory" in BY_NAME["ascend-resource-memory-name"].help
    assert "registered only if you name it" in BY_NAME["ascend-resource-name"].help
    assert "--hami" not in BY_NAME["resource-name"].help


def test_no_name_or_alias_means_two_options() -> None:
    names = list(itertools.chain.from_iterable((o.name, *o.aliases) for o in OPTIONS))
    assert len(set(names)) == len(names) == len(BY_NAME)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_and_its_aliases_are_variables(option: Option) -> None:
    names = (option.name, *option.aliases)
    assert all(name == name.lower() for name in names)
    expected = [ENV_PREFIX + name.replace("-", "_").upper() for name in names]
    assert list(option.variables) == expected


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_says_what_it_does_and_what_is_allowed(option: Option) -> None:
    assert option.help
    assert option.kind.allowed
    assert option.kind.metavar


@pytest.mark.parametrize(
    "option", [o for o in OPTIONS if o.default is not None], ids=lambda option: option.name
)
def test_a_default_is_allowed_itself(option: Option) -> None:
    assert option.kind.read(option.shown_default) == option.default


ALLOWED: dict[str, list[object]] = {
    "nvidia-cards": ["0", "128", 2],
    "nvidia-memory": ["1", "16777216"],
    "nvidia-split": ["1", "1024"],
    "nvidia-memory-scaling": ["0.01", "100", "1", 1],
    "nvidia-memory-factor": ["1", "1048576", "auto", "3"],
    "kubelet-version": ["1.36"],
    "http-listen": ["", ":0", ":65535", "127.0.0.1:80", "localhost:80", "[::1]:9396"],
    "socket-dir": ["/", "/a b"],
    "resource-name": ["a/b", "gpumem", "x" * 253],
    "node-name": ["a", "node-1.example.com"],
    "log-level": ["debug", "info", "warning", "error"],
    "log-format": ["text", "json"],
    "nvidia-mode": ["hami-core", "mig"],
}

NOT_ALLOWED: dict[str, list[object]] = {
    "nvidia-cards": ["-1", "129", "", "x", "1.5", "nan", "0x2", True, None, [1], "1e3"],
    "nvidia-memory": ["0", "-1", "16777217", "32GB"],
    "nvidia-split": ["0", "1025", False],
    "nvidia-memory-scaling": ["0", "-1", "100.1", "nan", "inf", "-inf", "1e400", "x", True],
    "nvidia-memory-factor": ["0", "1048577", "AUTO", "1.5", "", True, "-8"],
    "kubelet-version": ["", "1", "one", "1.", "x1.36", "1.36x"],
    "http-listen": ["80", "a b:80", ":x", "127.0.0.1", ":123456", "::1:80", ":80\n", ":65536"],
    "socket-dir": ["", "relative", "./x", "~/x", "/a\nb"],
    "resource-name": ["", "a b", "x" * 254, "a\n", "\ta"],
    "node-name": ["", " ", "a b", "x" * 254],
    "log-level": ["", "INFO", "trace"],
    "log-format": ["", "xml"],
    "nvidia-mode": ["", "mix"],
    "hami": ["maybe", "", 2, None],
    "vendors": ["", "nvidea", "nvidia,", [], 3],
    "ignored-xids": ["x", "13;31", "123456", [True]],
}


def pairs(table: dict[str, list[object]]) -> list[tuple[str, object]]:
    return [(name, value) for name, values in table.items() for value in values]


@pytest.mark.parametrize(("name", "value"), pairs(ALLOWED))
def test_values_that_are_allowed(name: str, value: object) -> None:
    kind = BY_NAME[name].kind
    assert kind.show(kind.read(value)) in (str(value), f"{value}.0")


@pytest.mark.parametrize("text", ["v1.36.4", "1.36.8+k3s1", "1.36.0-rc.1"])
def test_a_version_may_have_a_tail(text: str) -> None:
    assert BY_NAME["kubelet-version"].kind.read(text) == (1, 36)


@pytest.mark.parametrize("value", ["13,31", " 13 , 31", [13, 31], ["31", "13"]])
def test_xids_are_a_list_or_a_text_with_commas(value: object) -> None:
    assert BY_NAME["ignored-xids"].kind.read(value) == {13, 31}


@pytest.mark.parametrize("value", ["nvidia,mlu", ["nvidia", "mlu"]])
def test_vendors_are_a_list_or_a_text_with_commas(value: object) -> None:
    assert BY_NAME["vendors"].kind.read(value) == ("nvidia", "mlu")


@pytest.mark.parametrize(("name", "value"), pairs(NOT_ALLOWED))
def test_values_that_are_not_allowed(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        BY_NAME[name].kind.read(value)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.prefix)
def test_groups_are_of_the_file_only(vendor: Vendor) -> None:
    name = f"{vendor.prefix}-groups"
    assert GROUP_OPTIONS[name].section == vendor.title
    assert name not in BY_NAME
