"""The look of npu-smi, which npustat, nputop and others parse."""

from dataclasses import replace

from hami_mock.vendors.smi import Processes, Tool, Values, View

_WITHOUT_HBM = ("ascend310p",)
_WIDE = "+" + "-" * 96 + "+"
_THIN = "+" + "-" * 27 + "+" + "-" * 15 + "+" + "-" * 52 + "+"
_THICK = _THIN.replace("-", "=")


def _more(values: Values) -> Values:
    """Memory is one of two kinds; a model has the other kind as nothing of nothing."""
    used, total = values["memory_used"], values["memory_total"]
    ddr, hbm = ((0, 0), (used, total))
    if values["family"] in _WITHOUT_HBM:
        ddr, hbm = hbm, ddr
    return {"ddr_used": ddr[0], "ddr_total": ddr[1], "hbm_used": hbm[0], "hbm_total": hbm[1]}


_INFO = View(
    head=(
        _WIDE,
        "| npu-smi {version:<24} Version: {version:<52} |",
        _THIN,
        "| NPU   Name                | Health        | "
        "Power(W)    Temp(C)           Hugepages-Usage(page)|",
        "| Chip                      | Bus-Id        | "
        "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |",
        _THICK,
    ),
    card=(
        "| {index:<5} {name:<19} | {health_word:<13} | "
        "{power:<11.1f} {temperature:<17.0f} 0    / 0             |",
        "| 0                         | {short_bus:<13} | {busy:<11.0f} {ddr:<17} {hbm:<20} |",
        _THICK,
    ),
    processes=Processes(
        head=(
            _THIN,
            "| NPU     Chip              | Process id    | "
            "Process name             | Process memory(MB)      |",
            _THICK,
        ),
        row="| {index:<7} 0                 | {pid:<13} | {process:<24} | {process_memory:<23} |",
        none="| No running processes found in NPU {index:<60} |",
        end=(_THICK,),
        by_card=True,
    ),
)

NPU_SMI = Tool(
    name="npu-smi",
    version="24.1.0",
    views={
        "info": _INFO,
        "info -l": View(
            head=("        Total Count                    : {count}", ""),
            card=(
                "        NPU ID                         : {index}",
                "        Chip Count                     : 1",
                "",
            ),
        ),
        "info -m": View(
            head=(f"{'NPU ID':<31}{'Chip ID':<31}{'Chip Logic ID':<31}Chip Name",),
            card=("{index:<30} 0                              {index:<30} Ascend {name}",),
        ),
        "info -t product": View(card=("        Product Type                   : {model}",)),
        "-v": View(card=(), head=("npu-smi version: {version}",)),
    },
    cells={
        "ddr": "{ddr_used:<4} / {ddr_total}",
        "hbm": "{hbm_used:<4} / {hbm_total}",
    },
    health={"healthy": "OK", "degraded": "Warning", "unhealthy": "Alarm", "lost": "Critical"},
    unknown="NA",
    more=_more,
)

_OLD_WIDE = "+" + "-" * 78 + "+"
_OLD_THIN = "+" + "-" * 19 + "+" + "-" * 17 + "+" + "-" * 40 + "+"


def _digits_alone(values: Values) -> Values:
    """npustat takes no letter in a chip's name or in a bus: the bus is written in decimals."""
    domain, bus, place = values["short_bus"].split(":")
    return {
        "number": "".join(filter(str.isdigit, values["name"].partition("-")[0]))[:3],
        "decimal_bus": f"{domain}:{int(bus, 16):02}:{place}",
    }


# The releases of 2021 had one chip a line, named by a number, and npustat reads no others.
NPU_SMI_21 = replace(
    NPU_SMI,
    name="npu-smi-21",
    version="21.0.3.1",
    more=_digits_alone,
    cells={"held": "{memory_used:<4} / {memory_total}"},
    views={
        **NPU_SMI.views,
        "info": View(
            head=(
                _OLD_WIDE,
                "| npu-smi {version:<28} Version: {version:<30} |",
                _OLD_THIN,
                "| NPU     Name      | Health          | Power(W)          Temp(C)              |",
                "| Chip    Device    | Bus-Id          | AICore(%)         Memory-Usage(MB)     |",
                _OLD_THIN.replace("-", "="),
            ),
            card=(
                "| {index:<7} {number:<9} | {health_word:<15} | "
                "{power:<17.1f} {temperature:<20.0f} |",
                "| 0       {index:<9} | {decimal_bus:<15} | {busy:<17.0f} {held:<20} |",
                _OLD_THIN,
            ),
        ),
    },
)
