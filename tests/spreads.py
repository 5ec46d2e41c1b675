"""How far two measurements of the same queries may be apart, told from how they vary between queries."""

import numpy as np

from genm.explain.worth import NEGLIGIBLE_LOSS

ERRORS = 3.0
"""Standard errors that chance may add; of a thousand comparisons of equals it adds more in three."""


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether the means differ by what `genm explain` counts as nothing, as far as queries can tell."""
    apart = np.asarray(one) - np.asarray(other)
    error = float(apart.std(ddof=1)) / np.sqrt(len(apart))
    return abs(float(apart.mean())) <= NEGLIGIBLE_LOSS + ERRORS * error
