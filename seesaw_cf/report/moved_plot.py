"""A picture of where a changed model was changed: block by block, how far each kind of weights moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from seesaw_cf.base.terminal import printable
from seesaw_cf.report.canvas import new_figure, save_picture
from seesaw_cf.report.moved import block_of, moved_table
from seesaw_cf.report.results import Results


def draw_moved(results: Results, folder: Path) -> dict[str, str]:
    """Draw `moved.png`; return file name -> description, nothing where no model moved weights of two blocks."""
    table = moved_table(results.manifest)
    if table.empty:
        return {}
    places = table["name"].map(block_of)
    table = table.assign(block=[place[0] for place in places], part=[place[1] for place in places])
    table = table[table["block"].notna() & table["relative"].notna()]
    if table["block"].nunique() < 2:
        return {}
    models = list(dict.fromkeys(table["model"]))
    parts = list(dict.fromkeys(table["part"]))
    figure, panels = new_figure(1.2 + len(models) * (0.6 + 0.3 * len(parts)), len(models), 1)
    blocks = int(table["block"].max()) + 1
    for panel, model in zip(panels, models):
        own = table[table["model"] == model]
        sizes = np.full((len(parts), blocks), np.nan)
        for row in own.to_dict("records"):
            sizes[parts.index(row["part"]), int(row["block"])] = row["relative"]
        image = panel.imshow(sizes, aspect="auto", cmap="viridis", vmin=0)
        panel.set_yticks(range(len(parts)), [printable(part)[:28] for part in parts])
        panel.set_xlabel("block")
        panel.set_title(f"{printable(model)[:40]}: size of the change over that of the weights", loc="left")
        figure.colorbar(image, ax=panel)
    save_picture(figure, folder / "moved.png")
    return {"moved.png": "How far each block's weights moved, over their own size; a description, not a detection"}
