"""numpy, and what its arrays are called here: the one place that knows that it may not be there."""

from hami_mock.errors import UsageError

try:
    import numpy as np
    from numpy.typing import NDArray
except ModuleNotFoundError as error:
    raise UsageError(
        "what-if needs numpy, which isn't installed: pip install 'hami-mock[whatif]'"
    ) from error

Whole = NDArray[np.int64]
Truth = NDArray[np.bool_]

__all__ = ["NDArray", "Truth", "Whole", "np"]
