"""The picture of the house and the table of its rooms, from the layers in setup.cfg and the packages' docstrings."""

from __future__ import annotations

import ast
import configparser
from pathlib import Path

__all__ = ["floors", "house_picture", "rooms_table"]

ROOT = Path(__file__).resolve().parents[2]
WIDTH, ROOM, GAP, SIDE, ROOF = 640, 40, 8, 24, 70
MARGIN = 3  # letters beside a room's name
# Who uses a room, by the first letter of its colour's class in docs/assets/site.css.
USES = {
    "command": ("__main__", "cli"),
    "study": ("study", "texts", "logs", "harnesses", "builder_scripts", "sharing", "report", "run"),
    "model": ("editors", "generation", "scoring", "models"),
    "number": ("metrics", "effects", "records", "stats"),
}


def floors() -> list[list[str]]:
    """Rooms of each floor, from the top: what stands on a floor imports only from lower ones."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = setup["importlinter:contract:layers"]["layers"].strip().splitlines()
    return [[room.strip() for room in line.split("|")] for line in layers]


def house_picture() -> str:
    """An SVG that takes its colours from the page's style sheet, so that it fits light and dark pages."""
    rows = floors()
    height = ROOF + len(rows) * (ROOM + GAP) + GAP
    parts = [
        f'<div><svg class="house" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="house-title">',
        '<title id="house-title">The rooms of the package on their floors; imports go down only</title>',
        f'<path class="roof" d="M {WIDTH // 2} 4 L {WIDTH - 4} {ROOF - 4} L 4 {ROOF - 4} Z"/>',
        f'<text x="{WIDTH // 2}" y="{ROOF - 18}">imports go down only</text>',
    ]
    for number, rooms in enumerate(rows):
        letter = (WIDTH - 2 * SIDE - GAP * (len(rooms) - 1)) / sum(len(room) + MARGIN for room in rooms)
        top, left = ROOF + number * (ROOM + GAP), float(SIDE)
        for room in rooms:
            width = letter * (len(room) + MARGIN)
            parts.append(f'<g class="room {_use(room)}">')
            parts.append(f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROOM}" rx="4"/>')
            parts.append(f'<text x="{left + width / 2:.1f}" y="{top + ROOM / 2 + 6:.0f}">{room}</text></g>')
            left += width + GAP
    return "\n".join([*parts, "</svg></div>"])


def rooms_table() -> str:
    """Markdown: every room with the first sentence of its docstring, from the top floor."""
    lines = ["| room | what is in it |", "|---|---|"]
    for rooms in floors():
        lines += [f"| `{_path(room)}` | {_sentence(room)} |" for room in rooms]
    return "\n".join(lines)


def _use(room: str) -> str:
    return next((use for use, rooms in USES.items() if room in rooms), "base")


def _path(room: str) -> str:
    """As it stands in a checkout: `editors/`, `seesaw_cf/run/`, `seesaw_cf/base/types.py`."""
    folder = ROOT / "seesaw_cf" / room
    if folder.is_symlink():
        return f"{room}/"
    return f"seesaw_cf/{room}/" if folder.is_dir() else f"seesaw_cf/{room}.py"


def _sentence(room: str) -> str:
    file = ROOT / _path(room)
    text = (file / "__init__.py" if file.is_dir() else file).read_text(encoding="utf-8")
    first = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].replace("\n", " ")
    return first.replace("|", r"\|")
