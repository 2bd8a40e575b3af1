"""Pictures of a report where matplotlib is installed, and one sentence where it is not."""

from __future__ import annotations

from collections.abc import Callable

from seesaw_cf.base.errors import MissingExtraError, need


def drawn(draw: Callable[[], dict[str, str]]) -> tuple[dict[str, str], str]:
    """File name -> caption of what `draw` draws, which imports matplotlib; and why there are none, else nothing."""
    try:
        with need("matplotlib", extra="plots", what_for="pictures"):
            return draw(), ""
    except MissingExtraError as error:
        return {}, f"No pictures: {error}"
