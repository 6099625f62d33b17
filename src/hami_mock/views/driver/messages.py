"""What setters send to the agent and get back. See `layout` for the file that shows it then.

A setter connects to SETTER_SOCKET, a stream socket, writes one REQUEST and reads one REPLY. The
agent answers when the state file shows what was set. Who asks is what SO_PEERCRED says. Where
nobody listens, the library answers NVML_ERROR_NO_PERMISSION, as a driver answers who isn't root.
"""

from typing import Final

from hami_mock.views.driver.record import Field as F  # noqa: N817
from hami_mock.views.driver.record import Record

SETTER_SOCKET: Final = "../run/setters.sock"
"""Seen from the state folder."""

# A request's `operation`; what it needs of the other fields stands behind it.
OPERATIONS: Final = {
    "SET_MIG_MODE": 1,  # values[0]: 0 or 1
    "CREATE_GPU_INSTANCE": 2,  # profile, start, size (NO_INSTANCE: wherever it fits)
    "DESTROY_GPU_INSTANCE": 3,  # gpu_instance
    "CREATE_COMPUTE_INSTANCE": 4,  # gpu_instance, profile, start, size (NO_INSTANCE: as above)
    "DESTROY_COMPUTE_INSTANCE": 5,  # gpu_instance, compute_instance
    "SET_POWER_LIMIT": 10,  # values[0]: mW
    "SET_PERSISTENCE_MODE": 11,  # values[0]: 0 or 1
    "SET_COMPUTE_MODE": 12,  # values[0]: 0 default, 2 prohibited, 3 exclusive process
    "SET_ECC_MODE": 13,  # values[0]: 0 or 1, from the next reset on
    "CLEAR_ECC_ERRORS": 14,  # values[0]: 0 volatile, 1 aggregate
    "SET_GPU_LOCKED_CLOCKS": 15,  # values: MHz at least, at most; both 0: not locked any more
    "SET_MEMORY_LOCKED_CLOCKS": 16,  # likewise
    "SET_APPLICATION_CLOCKS": 17,  # values: MHz of memory, of graphics; both 0: the default ones
    "SET_ACCOUNTING_MODE": 18,  # values[0]: 0 or 1
}

REQUEST = Record(
    "request",
    "What a setter asks of the agent.",
    [
        F("magic", "u64", "MAGIC"),
        F("version", "u32", "VERSION"),
        F("operation", "u32", "SET_MIG_MODE, …"),
        F("generation", "u64", "of the file that the asker sees; the agent refuses another"),
        F("card", "u32", "which card of the file"),
        F("gpu_instance", "u32", ""),
        F("compute_instance", "u32", ""),
        F("profile", "u32", "a GPU instance profile's id, or a compute instance profile's"),
        F("start", "u32", ""),
        F("size", "u32", ""),
        F("values", "u64", "", 2),
    ],
)

REPLY = Record(
    "reply",
    "What the agent answers.",
    [
        F("magic", "u64", "MAGIC"),
        F("result", "u32", "NVML's code; 0: done"),
        F("activation", "u32", "of SET_MIG_MODE: NVML's code of what came of it"),
        F("gpu_instance", "u32", "the ID of the one that was made"),
        F("compute_instance", "u32", "the ID of the one that was made"),
    ],
)
