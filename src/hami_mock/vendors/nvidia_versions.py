"""What a version of NVIDIA's driver says: the newest CUDA that it runs."""

_CUDA = {
    450: "11.0", 455: "11.1", 460: "11.2", 465: "11.3", 470: "11.4", 495: "11.5", 510: "11.6",
    515: "11.7", 520: "11.8", 525: "12.0", 530: "12.1", 535: "12.2", 545: "12.3", 550: "12.4",
    555: "12.5", 560: "12.6", 565: "12.7", 570: "12.8", 575: "12.9", 580: "13.0",
}  # fmt: skip
OLDEST = min(_CUDA)
"""The oldest branch that is known."""


def cuda(driver: str) -> str:
    """Return the version of CUDA: that of the newest branch that isn't newer than the driver."""
    major = int(driver.partition(".")[0])
    return _CUDA[max((each for each in _CUDA if each <= major), default=OLDEST)]
