"""Our nvidia-smi -q -x: what programs read that want everything."""

import xml.etree.ElementTree as ET

import pytest

from tests.driver.smi import Smi, details
from tests.driver.state_file import StateFile, card_uuid, cut, live


def parsed(smi: Smi, *arguments: str) -> ET.Element:
    return ET.fromstring(smi.ask("-q", "-x", *arguments))


def test_every_card(smi: Smi, state: StateFile) -> None:
    log = parsed(smi)
    assert (log.tag, log.findtext("driver_version")) == ("nvidia_smi_log", "580.65.06")
    cards = log.findall("gpu")
    assert [each.findtext("uuid") for each in cards] == [card_uuid(i) for i in range(8)]
    assert log.findtext("attached_gpus") == "8"
    third = cards[2]
    assert third.get("id") == third.findtext("pci/pci_bus_id") == "00000000:1D:00.0"
    assert third.findtext("pci/pci_bus") == "1D"
    assert third.findtext("utilization/gpu_util") == "42 %"
    assert third.findtext("fb_memory_usage/used") == "1002 MiB"
    assert third.findtext("gpu_power_readings/instant_power_draw") == "250.00 W"
    names = [each.findtext("process_name") for each in third.findall("processes/process_info")]
    assert names == ["train-0", "train-1"]


def test_it_says_what_the_text_says(smi: Smi, state: StateFile) -> None:
    log, (text,) = parsed(smi, "-i", "0"), details(smi.ask("-q", "-i", "0"))
    leaves = [each.text for each in log.iter() if not len(each)]
    # All but the bus ID, which heads the text; XML has some more.
    lacking = [value for label, value in text.items() if label and value not in leaves]
    assert [value for value in lacking if not value.startswith("0x")] == []


def test_mig_devices(smi: Smi, state: StateFile) -> None:
    state.set(1, cut(1))
    whole, cut_card = parsed(smi, "-i", "0,1").findall("gpu")
    assert (whole.findtext("mig_devices") or "").strip() == "None"
    devices = cut_card.findall("mig_devices/mig_device")
    assert [each.findtext("gpu_instance_id") for each in devices] == ["7", "2"]
    assert devices[1].findtext("device_attributes/shared/multiprocessor_count") == "28"


def test_newer_cards_have_other_tags(smi: Smi, state: StateFile) -> None:
    state.replaced(1, unlike={"architecture": 9}).close()
    (temperature,) = parsed(smi).findall("gpu/temperature")
    assert temperature.findtext("gpu_temp_slow_tlimit_threshold") == "-4 C"
    assert temperature.find("gpu_temp_slow_threshold") is None


def test_names_that_are_markup(smi: Smi, state: StateFile) -> None:
    process = {"pid": 7, "type": 1, "name": "<a> & </b>"}
    state.set(0, live(0) | {"process_count": 1, "processes": [process]})
    (name,) = parsed(smi, "-i", "0").findall("gpu/processes/process_info/process_name")
    assert name.text == process["name"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-x"], "Specify -q/--query and -x/--xml-format to run an XML query."),
        (["-q", "-x", "-d", "MEMORY"], "can not be combined with -x/--xml-format"),
    ],
)
def test_what_it_refuses(smi: Smi, state: StateFile, arguments: list[str], said: str) -> None:
    code, told = smi.run(*arguments)
    assert (code, said in told) == (2, True), told
