"""What a setter is answered: NVML's codes."""

from typing import Final

RESULTS: Final = {
    "DONE": 0,
    "INVALID_ARGUMENT": 2,
    "NOT_SUPPORTED": 3,
    "NO_PERMISSION": 4,
    "NOT_FOUND": 6,
    "GPU_IS_LOST": 15,
    "IN_USE": 19,
    "INSUFFICIENT_RESOURCES": 23,
}
