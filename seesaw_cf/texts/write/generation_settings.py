"""How passages are drawn: the published settings by name, or those of a JSON file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import one_of, whole
from seesaw_cf.base.errors import unknown_name
from seesaw_cf.base.text import read_json
from seesaw_cf.generation.types import Sampling


@dataclass(frozen=True, slots=True)
class Generation:
    """Named settings.

    Attributes:
        name: Of the preset or the file.
        samples: Texts for each prompt.
        sampling: How each is drawn.
    """

    name: str
    samples: int
    sampling: Sampling


# leme: the released program of LEME (600 tokens, penalty 1.1; top-k, top-p and temperature also in its appendix B.1).
# leme-gpt: the same for GPT-3.5 and GPT-4, at temperature 1 (appendix B.1).
# seesaw-cf: five texts of each prompt, top-k 5; the released program counts the prompt among its 100 tokens, the paper
# does not, and neither is done with a seed. short: for trying out.
GENERATIONS: dict[str, Generation] = {
    generation.name: generation
    for generation in (
        Generation("leme", 1, Sampling(600, 0.9, 50, 0.95, repetition_penalty=1.1)),
        Generation("leme-gpt", 1, Sampling(600, 1.0, 50, 0.95, repetition_penalty=1.1)),
        Generation("seesaw-cf", 5, Sampling(100, 1.0, 5, 1.0)),
        Generation("short", 1, Sampling(80, 0.9, 50, 0.95)),
    )
}


def read_generation(name: str, **changes: object) -> Generation:
    """Read settings by name or from a JSON file, with some of them changed.

    Args:
        name: Out of `GENERATIONS`, or a file with "samples" and fields of `Sampling`; what it leaves out is as in
            "leme".
        **changes: "samples" or a field of `Sampling` -> its value; None = as it is.

    Raises:
        UnknownNameError: No such settings, or the file has a field that is none of them.
        RecordError: The file is not a JSON object, or a value cannot be used.
        StorageError: The file cannot be read.
    """
    if name not in GENERATIONS and not name.endswith(".json"):
        raise unknown_name("generation settings (or JSON file)", name, GENERATIONS)
    base = GENERATIONS.get(name) or Generation(Path(name).name, 1, GENERATIONS["leme"].sampling)
    values: dict[str, Any] = {} if name in GENERATIONS else _read(Path(name))
    values |= {key: value for key, value in changes.items() if value is not None}
    samples = whole("generation settings: samples", values.pop("samples", base.samples), 1)
    if isinstance(values.get("stop"), list):
        values["stop"] = tuple(values["stop"])
    return Generation(base.name, samples, replace(base.sampling, **values))


def _read(file: Path) -> dict[str, object]:
    example = {"samples": 1} | {k: v for k, v in asdict(GENERATIONS["leme"].sampling).items() if v}
    settings: dict[str, object] = read_json(file, expected=json.dumps(example))
    names = ["samples", *(field.name for field in fields(Sampling))]
    for key in settings:
        one_of(f"setting in {file}", key, names)
    return settings
