"""What a version of NVIDIA's driver says: the newest CUDA that it runs."""

_CUDA = {525: "12.0", 535: "12.2", 550: "12.4", 560: "12.6", 570: "12.8", 575: "12.9", 580: "13.0"}


def cuda(driver: str) -> str:
    """Return the version of CUDA: that of the newest branch that isn't newer than the driver."""
    major = int(driver.partition(".")[0])
    return _CUDA[max((each for each in _CUDA if each <= major), default=min(_CUDA))]
