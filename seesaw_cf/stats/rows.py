"""Arrays that describe the same rows."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from seesaw_cf.errors import RecordError


def check_rows(where: str, codes: Collection[str] = (), **arrays: NDArray[np.generic]) -> None:
    """Refuse arrays that cannot describe the same rows.

    Args:
        where: For the message.
        codes: Names of those that count clusters from 0.
        **arrays: Name -> (n, ...) array.

    Raises:
        RecordError: Unequal lengths, or a code below 0.
    """
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise RecordError(f"{where}: lengths {lengths}; expected one entry per row in each.")
    for name in codes:
        if arrays[name].size and arrays[name].min() < 0:
            raise RecordError(f"{where}: {name} has {arrays[name].min()}, expected codes that count from 0.")
