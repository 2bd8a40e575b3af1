"""Do edits take on a real model? Every editor on released edits of five relations, none of them used for its settings.

    seesaw-cf fetch smollm2-135m-q4
    python -m benchmarks.editors_real --cases RELEASED --corpus texts.txt --runs /tmp/runs [--editor ft]

Edits are drawn with a seed, as many of each relation, about people who are not in the embedded sample, on which
`seesaw-cf tune` finds settings. The released files have neither paraphrases nor neighbours for these edits: paraphrases
are the package's templates of the relation, neighbours other subjects of the same file with the same true target (at
most five). Numbers are those of `seesaw_cf.effects.success`; refused edits and edits without effect are counted, and a
refused edit counts as one that does not take. Rows of an earlier call with the same settings are kept, and the table of
docs/editors_measured.md is printed.
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
from builder_scripts.make.phrasings import paraphrases

from benchmarks.editors_common import RESULTS, machine
from seesaw_cf.base.files import write_text
from seesaw_cf.effects import prompt_effects
from seesaw_cf.effects.success import success_of_scores
from seesaw_cf.records import cases_to_table, read_cases
from seesaw_cf.records.load import load_cases
from seesaw_cf.records.relations import RELATIONS, TEMPLATES
from seesaw_cf.report.text import estimate, markdown_table
from seesaw_cf.run.job import run_job
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import read_settings
from seesaw_cf.stats import proportion
from seesaw_cf.stats.plain import plain
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
    estimate = proportion(int(took.sum()), len(edits))
    found: dict[str, Any] = {
        "efficacy": {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": len(edits)},
        "before": float((edits["new_pre"] > edits["true_pre"]).mean()),
        "by_relation": {str(name): float(share) for name, share in took.groupby(edits["relation_id"]).mean().items()},
        "status": dict(Counter(text.split(":")[0] for text in edits["status"])),
    }
    for name, short, sign in (("paraphrase", "PS", 1), ("neighborhood", "NS", -1)):
        before = prompt_effects(table, kind=name)["D_pre"]
        found[name] = numbers[short].columns("value", "low", "high", "n") | {
            "before": float((sign * before > 0).mean())
        }
    return found


def table(editors: Mapping[str, Any]) -> str:
    """The rows as Markdown, in the order of `EDITORS`."""
    measured = ("efficacy", "paraphrase", "neighborhood")
    counts = [next(iter(editors.values()))[name]["n"] for name in measured]
    heads = [f"{said} (n = {n})" for said, n in zip(("takes", "paraphrases", "neighbours"), counts)]
    rows = [[LABELS[name], *(_share(editors[name][one]) for one in measured)] for name in EDITORS if name in editors]
    return markdown_table(["editor", *heads], rows)


def _share(found: Mapping[str, float]) -> str:
    return estimate(found["value"], found["low"], found["high"])


def main() -> None:
    """Measures every editor and writes benchmarks/results/editors_real.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True, help="folder of released files")
    parser.add_argument("--corpus", type=Path, required=True, help="texts for second moments, one a line")
    parser.add_argument("--corpus-limit", type=int, help="at most that many texts, drawn with the seed")
    parser.add_argument("--model", default="smollm2-135m-q4")
    parser.add_argument("--editor", action="append", choices=EDITORS, help="only this one; give it again for more")
    parser.add_argument("--editor-config", type=Path, help="settings in place of the presets")
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of torch; all cores when not given")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs; an interrupted one goes on")
    parser.add_argument("--out", type=Path, default=RESULTS / "editors_real.json")
    given = parser.parse_args()
    cases = drawn(given.cases, given.edits, given.seed)
    record: dict[str, Any] = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    settings = {"model": given.model, "edits": len(cases), "seed": given.seed}
    rows = record.get("editors", {}) if record.get("settings") == settings else {}
    changed = read_settings(given.editor_config, EDITORS)
    given.runs.mkdir(parents=True, exist_ok=True)
    data = given.runs / f"cases-{len(cases)}-{given.seed}.parquet"
    pq.write_table(cases_to_table(cases), data)
    for editor in given.editor or EDITORS:
        own, folder = given.runs / f"{editor}.json", given.runs / f"{editor}-{len(cases)}-{given.seed}"
        write_text(own, json.dumps({editor: changed.get(editor, {})}))
        config = own if editor in changed else None
        texts = {} if given.corpus_limit is None else {"corpus_limit": given.corpus_limit}
        job = Job(
            given.model,
            (editor,),
            data=str(data),
            corpus=given.corpus,
            editor_config=config,
            seed=given.seed,
            threads=given.threads,
            anyway=True,
            **texts,
        )
        run_job(job, folder)
        edits = pd.read_parquet(folder / "edits.parquet")
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        rows[editor] = plain(shares(folder / "scores.parquet", edits)) | {
            "corpus": manifest["data"]["corpus"],
            "config": manifest["editors"][editor],
        }
        write_text(given.out, json.dumps({"settings": settings, "editors": rows, **machine()}, indent=1) + "\n")
        print(editor, json.dumps({k: v for k, v in rows[editor].items() if k != "config"}), flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
