"""What `seesaw-cf tune` may try: settings and values for each editor, and layers by their depth in the model."""

from __future__ import annotations

from collections.abc import Mapping

Space = dict[str, tuple[object, ...]]

_DEPTHS = (1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2, 2 / 3)
"""Of the last edited block, as a share of all; published settings lie between 1/8 and 2/3."""

_LOCATE: Space = {
    "learning_rate": (0.1, 0.3, 0.5, 1.0),
    "clamp": (0.75, 2.0, 4.0, 8.0),
    "weight_decay": (1e-3, 0.5),
    "steps": (20, 30),
}

_TRAINED: Space = {"relative": (True,), "steps": (25, 60), "stop_below": (1e-2, 0.3, 1.2)}
_MEMIT: Space = {**_LOCATE, "moment_weight": (1_500.0, 5_000.0, 15_000.0)}

# Editor -> (how many neighbouring blocks are edited, settings and values).
SPACES: Mapping[str, tuple[tuple[int, ...], Space]] = {
    "ft": (
        (1,),
        {
            **_TRAINED,
            "learning_rate": (5e-4, 2e-3, 5e-3, 2.5e-2),
            "norm_constraint": (5e-3, 1.2e-2, 3e-2, 0.1),
            "objective": ("last_token", "teacher_forced"),
        },
    ),
    "rome": ((1,), _LOCATE),
    "memit": ((1, 5), _MEMIT),
    "emmet": ((1,), {**_LOCATE, "moment_weight": (1e3, 1e4, 1e5)}),
    "alphaedit": ((1, 5), {**_LOCATE, "norm_weight": (0.1, 1.0, 10.0)}),
    "lora": (
        (1, 5),
        {**_TRAINED, "learning_rate": (5e-4, 1e-3, 2e-3, 5e-3), "rank": (1, 4, 8), "alpha": (22.0, 44.0, 176.0)},
    ),
}


def search_space(editor: str, n_layers: int) -> Space:
    """Return the declared search space of an editor on a model.

    Args:
        editor: Any name; editors without an entry in `SPACES` have an empty space.
        n_layers: Blocks of the model.

    Returns:
        Setting -> values. `layers` are runs of neighbouring blocks that end at the depths that published settings have.
    """
    if editor not in SPACES:
        return {}
    widths, values = SPACES[editor]
    top = max(n_layers - 2, 0)  # a block above reads the change
    tops = dict.fromkeys(min(max(round(share * n_layers), 0), top) for share in _DEPTHS)
    layers = dict.fromkeys(tuple(range(max(last - width + 1, 0), last + 1)) for last in tops for width in widths)
    return {"layers": tuple(layers), **values}
