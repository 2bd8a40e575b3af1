"""Do edits take on real models? Every editor with its presets on edits that were not used to choose them.

    python -m benchmarks.real_model smollm2-135m-q4
    python -m benchmarks.editors_real --model smollm2-135m-q4 --model FILE.gguf --corpus texts.txt --runs /tmp/runs

The edits are those of benchmarks/people/measured.json, about people whom no released file names. With `--cases FOLDER`
they are released ones, drawn with a seed, as many of each relation, about people who are not in the embedded sample, on
which settings were chosen. The released files have neither paraphrases nor neighbours for these edits:
paraphrases are the package's templates of the relation, neighbours other subjects of the same file with the same true
target (at most five). Numbers are those of `seesaw_cf.effects.success`. Refused edits and edits without effect are
counted, and a refused edit counts as one that does not take. Rows of an earlier call with the same cases stay unless
`--again` is given. A table as in docs/editors.md is printed.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from benchmarks.editors_common import RESULTS, machine
from benchmarks.words import estimate, markdown_table
from builder_scripts.cases import paraphrases
from seesaw_cf.base.files import write_text
from seesaw_cf.base.retrying import Bar
from seesaw_cf.effects import prompt_effects
from seesaw_cf.effects.success import success_of_scores
from seesaw_cf.records import cases_to_table, read_cases
from seesaw_cf.records.load import load_cases
from seesaw_cf.records.relations import RELATIONS, TEMPLATES
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import editor_settings
from seesaw_cf.run.workers import run_job
from seesaw_cf.stats.plain import plain
from seesaw_cf.stats.simple import case_estimate, proportion
from seesaw_cf.types import Case

LABELS = {
    "rome": "ROME",
    "memit": "MEMIT",
    "emmet": "EMMET",
    "alphaedit": "AlphaEdit",
    "lora": "LoRA",
    "ft": "FT",
    "mend": "MEND",
}
EDITORS = tuple(LABELS)
FILES = {"P21": "P21_P101", "P101": "P101_eff", "P27": "P27_P101", "P19": "P19_P101", "P103": "P103_eff"}
NEIGHBOURS = 5
MODELS = ("smollm2-135m-q4",)
MEASURED = Path(__file__).parent / "people" / "measured.json"


def drawn(folder: Path, edits: int, seed: int) -> list[Case]:
    """As many edits of each relation, all about different people, with paraphrases and neighbours."""
    known = {
        case.request.subject for config in ("cross_subject", "cross_property") for case in load_cases("sample", config)
    }
    rng = np.random.default_rng(seed)
    found: list[Case] = []
    for relation_id in RELATIONS:
        cases = read_cases(folder / f"seesaw_cf_{FILES[relation_id]}.json")
        free = [cases[i] for i in rng.permutation(len(cases)) if cases[i].request.subject not in known]
        kept = free[: edits // len(RELATIONS)]
        known |= {case.request.subject for case in kept}
        found += [asked(case, cases, rng) for case in kept]
    return [replace(case, case_id=number) for number, case in enumerate(found)]


def asked(case: Case, cases: Sequence[Case], rng: np.random.Generator) -> Case:
    """The case with its paraphrases and neighbours in place of all its other questions."""
    request = case.request
    said = next((row for row in TEMPLATES if request.prompt in (row.present, row.past)), TEMPLATES[0])
    past = request.prompt == said.past
    others = {
        other.request.text: None
        for other in cases
        if other.request.target_true.id == request.target_true.id and other.request.subject != request.subject
    }
    chosen = [list(others)[i] for i in rng.permutation(len(others))[:NEIGHBOURS]]
    others_said = paraphrases(request.relation_id, said)
    return Case(
        case_id=case.case_id,
        request=request,
        effect_relation_id=case.effect_relation_id,
        paraphrase_prompts=tuple(row.fill(request.subject, living=not past) for row in others_said),
        neighborhood_prompts=tuple(chosen),
    )


def shares(scores: Path, edits: pd.DataFrame) -> dict[str, Any]:
    """Efficacy among all edits, paraphrases and neighbours among those made, by relation, and what became of edits."""
    table = pq.read_table(scores)
    (success,) = success_of_scores(table).values()
    numbers = success.numbers["counterfact"]
    took = edits["new_post"] > edits["true_post"]
    efficacy = proportion(int(took.sum()), len(edits))
    measured: dict[str, Any] = {
        "efficacy": efficacy.columns("value", "low", "high") | {"n": len(edits)},
        "before": float((edits["new_pre"] > edits["true_pre"]).mean()),
        "by_relation": {str(name): float(share) for name, share in took.groupby(edits["relation_id"]).mean().items()},
        "status": dict(Counter(text.split(":")[0] for text in edits["status"])),
    }
    for name, short, sign in (("paraphrase", "PS", 1), ("neighborhood", "NS", -1)):
        prompts = prompt_effects(table, kind=name)
        pre, post = (sign * prompts[column] > 0 for column in ("D_pre", "D_post"))
        lost = case_estimate(pre.astype(float) - post, prompts["case_id"], within=(-1.0, 1.0))
        measured[name] = numbers[short].columns("value", "low", "high", "n") | {
            "before": float(pre.mean()),
            "lost": lost.columns("value", "low", "high"),
        }
    return measured


def table(models: Mapping[str, Any]) -> str:
    """The rows of all models as Markdown, in the order of `EDITORS`."""
    heads = ("model", "editor", "takes", "paraphrases", "neighbours", "neighbours lost")
    rows = [
        [model, LABELS[name], *map(_share, measures), _share(row["neighborhood"]["lost"])]
        for model, record in models.items()
        for name in EDITORS
        if (row := record["editors"].get(name))
        for measures in [[row["efficacy"], row["paraphrase"], row["neighborhood"]]]
    ]
    return markdown_table(list(heads), rows)


def _share(share: Mapping[str, float]) -> str:
    n = f" (n = {share['n']})" if "n" in share else ""
    return estimate(share["value"], share["low"], share["high"]) + n


def measure(job: Job, folder: Path) -> dict[str, Any]:
    """The row of a job's one editor; a run that was interrupted goes on."""
    run_job(job, folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    row: dict[str, Any] = plain(shares(folder / "scores.parquet", pd.read_parquet(folder / "edits.parquet")))
    return row | {"corpus": manifest["data"]["corpus"], "config": manifest["editors"][job.editors[0]]}


def main() -> None:
    """Measure every editor on every model and write the results, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=MEASURED, help="file of cases, or folder of released files")
    parser.add_argument("--corpus", type=Path, required=True, help="texts for second moments, one a line")
    parser.add_argument("--corpus-limit", type=int, default=800, help="at most that many texts, drawn with the seed")
    parser.add_argument("--model", action="append", help="name or file; give it again for more")
    parser.add_argument("--editor", action="append", choices=EDITORS, help="only this one; give it again for more")
    parser.add_argument("--editor-config", type=Path, help="settings in place of the presets")
    parser.add_argument("--edits", type=int, default=40, help="of released files that many, of a case file the first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of torch; all cores when not given")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs; an interrupted one goes on")
    parser.add_argument("--out", type=Path, default=RESULTS / "editors_families.json")
    parser.add_argument("--again", action="store_true", help="measure again what the results hold")
    given = parser.parse_args()
    released = given.cases.is_dir()
    cases = drawn(given.cases, given.edits, given.seed) if released else read_cases(given.cases)[: given.edits]
    models: dict[str, Any] = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    changed = editor_settings(given.editor_config, EDITORS)
    given.runs.mkdir(parents=True, exist_ok=True)
    data = given.runs / f"cases-{given.cases.stem}-{len(cases)}-{given.seed}.parquet"
    pq.write_table(cases_to_table(cases), data)
    settings = {"cases": given.cases.name, "edits": len(cases), "seed": given.seed}
    pairs = [(model, name) for model in given.model or MODELS for name in given.editor or EDITORS]
    for model, name in Bar(pairs, desc="editors on models", unit="editor"):
        record = models.setdefault(Path(model).name.removesuffix(".gguf"), {"editors": {}})
        if record.get("settings") != settings:
            record |= {"settings": settings, "editors": {}}
        if name in record["editors"] and not given.again:
            continue
        folder = given.runs / f"{Path(model).stem}-{data.stem}-{name}"
        own = folder.with_suffix(".json") if name in changed else None
        if own is not None:
            write_text(own, json.dumps({name: changed[name]}))
        texts = {"corpus": given.corpus, "corpus_limit": given.corpus_limit}
        options = {"editor_config": own, "seed": given.seed, "threads": given.threads, "ignore_damage": True}
        row = measure(Job(model, editors=(name,), data=str(data), **texts, **options), folder)
        record["editors"][name] = row | {"measured_on": machine()}
        write_text(given.out, json.dumps(models, indent=1) + "\n")
    print(table(models))


if __name__ == "__main__":
    main()
