"""`seesaw-cf new` and `check`, for an editor of your own, `setup`, and `list`: what there is to choose from."""

from __future__ import annotations

import ast
import importlib.util
import keyword
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import AtLeastZero, NameOrPath, OneOf, OwnFolder
from seesaw_cf.base.files import atomic_folder, cache_folder, last_use, remove, size, sweep
from seesaw_cf.base.terminal import description_list, wrap
from seesaw_cf.cli.output import say
from seesaw_cf.editors import EDITORS
from seesaw_cf.editors.control_names import CONTROLS
from seesaw_cf.editors.plugins import PAGE, editor_name

Rows = list[tuple[str, ...]]
_NAMES = ("editors", "models", "samples", "configs", "relations", "groups", "metrics")
_TEMPLATES = Path(__file__).with_name("templates") / "editor"
_FACTS = 2  # that are edited together to check an editor
_NAME = re.compile(r"[a-z][a-z0-9]*")
# Folders of the cache, each with entries that are computed, downloaded or asked again when they are gone.
_CACHES = ("mend", "models", "null_spaces", "pre", "replies", "second_moments")


def new(name: str, /, *, out: OwnFolder | None = None) -> None:
    """Write the files of an editor, which work as they are, and say what to do with them.

    Args:
        name: Small letters and digits; or NAME.py, without its .py.
        out: The new folder (default: NAME, here).
    """
    name = name.removesuffix(".py")
    taken = keyword.iskeyword(name) or name in EDITORS or name in CONTROLS
    if taken or not _NAME.fullmatch(name) or importlib.util.find_spec(name) is not None:
        raise RecordError(
            f"new: the name is {name!r}, expected small letters and digits that name no installed module, editor or "
            "word of Python, such as mine2. Choose another."
        )
    folder = out or Path(name)
    with atomic_folder(folder) as place:
        for file in sorted(_TEMPLATES.glob("*.txt")):
            text = file.read_text(encoding="utf-8").replace("MINE", name.capitalize())
            target = place / file.stem.replace("mine", name)
            target.write_text(re.sub(r"\bmine\b|(?<=test_)mine\b", name, text), encoding="utf-8")
    say(f"{folder}: " + ", ".join(sorted(file.name for file in folder.iterdir())))
    say(f"It works as it is: {folder}/README.md has the commands. Put yours in the place of what {name}.py does.")


def check(
    editor: NameOrPath,
    /,
    *,
    model: NameOrPath = "seesaw-tiny",
    data: NameOrPath = "sample",
    editor_config: Path | None = None,
    corpus: NameOrPath | None = None,
    device: str = "auto",
) -> None:
    """Check every promise that runs, reports and sharing rest on, and print it with what breaks it.

    Args:
        editor: A name of `seesaw-cf list editors`, FILE.py or package.module:Class.
        model: Model that it edits.
        data: Where the facts come from, as for audit.
        editor_config: JSON file: {"memit": {"layers": [3, 4]}, ...}.
        corpus: Texts for second moments: a file with one a line.
        device: auto, cpu, cuda:1, ...

    Raises:
        RecordError: Some promise is broken.
    """
    name = editor_name(editor)
    from seesaw_cf.editors.contract import check_contract
    from seesaw_cf.models.corpus import corpus_of
    from seesaw_cf.models.load import load_model
    from seesaw_cf.records.load import load_cases, usual_configs
    from seesaw_cf.run.make_editors import editor_settings, make_editor, settings_of

    cases = load_cases(data, usual_configs(data)[0])
    loaded, tokenizer = load_model(model, device=device)
    settings = settings_of(name, editor_settings(editor_config, (name,)))
    made = make_editor(name, loaded, settings, corpus_of(corpus, model), cases[_FACTS:])
    clauses = check_contract(made, loaded, tokenizer, [case.request for case in cases[:_FACTS]])
    for clause, fault in clauses.items():
        say(wrap(f"{'broken' if fault else 'holds '}  {clause}{f': {fault}' if fault else ''}", "        "))
    if broken := sum(map(bool, clauses.values())):
        raise RecordError(f"{name}: {broken} of {len(clauses)} clauses are broken. {PAGE} says what each is for.")


def setup(*, prune: AtLeastZero | None = None) -> None:
    """Register the metrics and keep the sample where `datasets` finds it; or prune the cache of this package.

    Args:
        prune: Delete from the cache instead what nobody used for so many days.
    """
    if prune is not None:
        say(prune_cache(cache_folder(), prune))
        return
    from seesaw_cf.metrics.register import METRICS, register
    from seesaw_cf.records.load import configs, load

    register()
    for name in configs():
        load(name)
    say(wrap(f"From any folder: load_dataset('seesaw_cf', CONFIG) with HF_HUB_OFFLINE=1, for {', '.join(configs())}."))
    say(wrap(f"evaluate.load(NAME), with HF_EVALUATE_OFFLINE=1 at once, for {', '.join(METRICS)}."))
    say("Run this command again after the package was updated.")


def prune_cache(cache: Path, days: float) -> str:
    """Delete entries of the cache that were not used for so many days, and say what that freed."""
    freed = left = 0
    for folder in (cache / name for name in _CACHES if (cache / name).is_dir()):
        sweep(folder)
        for entry in sorted(folder.iterdir()):
            n_bytes = sum(file.stat().st_size for file in (entry, *entry.rglob("*")) if file.is_file())
            old = time.time() - last_use(entry) > days * 86_400
            freed, left = (freed + n_bytes, left) if old else (freed, left + n_bytes)
            if old:
                remove(entry)
    return f"{cache}: {size(freed)} deleted, unused for {days:g} days; {size(left)} left"


def list_names(lists: tuple[Annotated[str, OneOf(_NAMES)], ...] = (), /) -> None:
    """Print what there is to choose from.

    Args:
        lists: Which lists: editors, models, samples, configs, relations, groups, metrics (default: all of them).
    """
    for name in lists or _NAMES:
        say(f"{name}:\n{description_list(LISTS[name](), indent='  ')}\n")


def _editors() -> Rows:
    from seesaw_cf.editors import EDITORS
    from seesaw_cf.editors.plugins import is_own

    return [
        (name, _first_line(*str(place).split(":")) if is_own(name) else f"{place}, of another package")
        for name, place in EDITORS.items()
    ]


def _first_line(module: str, name: str) -> str:
    """Return the first sentence about a class, read from the source: importing it takes seconds."""
    spec = importlib.util.find_spec(module)
    source = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
    kind = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name)
    return (ast.get_docstring(kind) or "").split("\n")[0]


def _models() -> Rows:
    from seesaw_cf.models.names import EMBEDDED

    return [
        *((name, "comes with the package") for name in EMBEDDED),
        ("FOLDER", "any transformers causal language model"),
        ("FILE.gguf", "the same in a GGUF file; needs gguf and accelerate"),
        ("ORG/NAME", "the same, from the Hub"),
    ]


def _samples() -> Rows:
    import pyarrow.parquet as pq

    from seesaw_cf.records.load import SAMPLE, configs, path

    files = (path() / "data" / "demographics").glob("*.parquet")
    ids = [id for file in files for id in pq.ParquetFile(file).read(["id"])["id"].to_pylist()]
    with_qid = sum(id.startswith("Q") for id in ids)
    return [(SAMPLE, f"{len(ids)} people, {with_qid} with a Wikidata QID", ", ".join(configs()))]


def _configs() -> Rows:
    import pyarrow.parquet as pq

    from seesaw_cf.records import CASES
    from seesaw_cf.records.load import CASE_CONFIGS, configs, path

    rows: Rows = []
    for name in configs():
        files = [pq.ParquetFile(file) for file in (path() / "data" / name).glob("*.parquet")]
        runs = all(set(CASES.names) <= set(file.schema_arrow.names) for file in files)
        use = "cases, for `audit --config`" if runs else "a table beside the cases"
        use = "cases, for `texts write --config`" if name in CASE_CONFIGS and not runs else use
        rows.append((name, f"{sum(file.metadata.num_rows for file in files):,} rows", use))
    return rows


def _relations() -> Rows:
    from seesaw_cf.records.relations import RELATIONS, templates

    return [
        (row.id, row.name, row.label, f"{len(templates(row.id, 'cloze'))} cloze templates")
        for row in RELATIONS.values()
    ]


def _groups() -> Rows:
    from seesaw_cf.records.groups import AXES

    return [(axis, ", ".join((*names, "unknown"))) for axis, names in AXES.items()]


def _metrics() -> Rows:
    from seesaw_cf.metrics.register import METRICS

    return [(name, f'evaluate.load("{name}") after `seesaw-cf setup`') for name in METRICS]


LISTS: dict[str, Callable[[], Rows]] = {
    "editors": _editors,
    "models": _models,
    "samples": _samples,
    "configs": _configs,
    "relations": _relations,
    "groups": _groups,
    "metrics": _metrics,
}
