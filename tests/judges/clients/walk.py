"""Call each getter of nvidia-ml-py that needs no more than a card: a line with what came of it.

With the word mig, the first MIG device of the first card is asked instead of the card.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pynvml as nvml


def getters() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, function in inspect.getmembers(nvml, inspect.isfunction):
        if not name.startswith("nvmlDeviceGet") or "GetHandleBy" in name:
            continue
        parameters = inspect.signature(function).parameters.values()
        if sum(each.default is each.empty for each in parameters) == 1:
            yield name, function


nvml.nvmlInit()
card = nvml.nvmlDeviceGetHandleByIndex(0)
if sys.argv[1:] == ["mig"]:
    card = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
for name, function in getters():
    try:
        function(card)
    except nvml.NVMLError as error:
        print(name, error, sep="\t")
    else:
        print(name, "answered", sep="\t")
nvml.nvmlShutdown()
