"""Commands and options that were removed, and what to use instead; to be deleted at the first release.

An extra that was removed needs no row: pip itself warns that the package does not provide it.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["COMMANDS", "OPTIONS", "instead"]

COMMANDS: Mapping[str, str] = {
    "noise": "every run measures it: `machine.noise` in its manifest.json",
    "bias": "ask lm_eval's BBQ, CrowS-Pairs or Winogender of both models, then use `seesaw-cf compare --group FIELD`",
    "export|metrics": "report.json and the tables of a report hold its numbers, --paper the papers' tables",
    "annotate|labels": "people export writes tasks for Label Studio or a spreadsheet, people import reads the answers",
    "leme|flaws": "use `seesaw-cf texts write`, rate, report and train; `seesaw-cf people export flaws`",
    "run|dose": "use `seesaw-cf audit`; --protocol batch --checkpoints 1 10 100 edits facts together",
    "check-editor|check-metric": "use `seesaw-cf check` for an editor; a metric reads the tables of a report",
    "new editor|new metric|new records": "use `seesaw-cf new NAME` for an editor; metrics/ has modules to start from",
    "moments": "use `seesaw-cf share MODEL --moments`, with --repo to publish them",
    "register|cache|completion": "use `seesaw-cf setup`",
    "tune|layers": "set layers, learning_rate, steps or clamp in --editor-config",
    "view": "read scores.parquet with pandas; report.html has the prompts that moved most",
    "import|check-data": "use `seesaw-cf build --records FILE`, which says what is wrong with records",
    "publish": "use `seesaw-cf build --push ORG/NAME`",
    "plan": "a report says how many times the edits or the people would decide more",
    "graph draw|graph export|graph score|graph topics": "use `seesaw-cf graph run`, which makes all of it",
    "fetch": "in a checkout `python -m benchmarks.real_model FOLDER` writes the same model",
}
"""Commands -> what to do instead."""

OPTIONS: Mapping[str, str] = {
    "--as": "use --form",
    "--report": "the report is in OUT/report; seesaw-cf report RUN --out DIR writes another one",
    "--edited": "use --changed",
    "--from": "use --source",
    "--anyway": "use --ignore-damage",
    "--holders": "use --people-per-edit",
    "--design": "use --prompts",
    "--null": "use --control-model",
    "--no-prefix": "use --prefix start, expand or none",
    "--runs": "graph run has --repeats",
    "--dose": "use --checkpoints; what wrote every edit as a model is --save-checkpoints",
    "--repeats": "use --orders",
    "--redo": "delete the folder cache in the crawl's --out and run the command again: all is asked anew",
    "--refusals": "what is a refusal stands in seesaw_cf.texts.graph.identities.REFUSALS",
    "--select": "name the groups with --identities; groups of your own are NAME=CLASS",
    "--force": "crawl again with the same settings, which graph compare asks for",
    "--annotator|--zero-shot": "name it as --rater of texts rate",
    "--judge-url|--judge-key-env|--judge-shots|--judge-examples|--judge-wording": "texts rate has it without judge-",
    "--top-k|--top-p|--repetition-penalty": "it is that of --generation",
    "--epochs": "--recipe says how long is trained",
    "--mapping": "add its columns to the log, or compare CSV files of the scores",
    "--sheet": "people export writes sheet.csv into --out",
    "--actors": "the Ray cluster, and --threads or --gpus of a worker, say how many workers there are",
    "--ray-address": "put the address into RAY_ADDRESS",
    "--exchange": "workers share a disk; put --out and SEESAW_CF_CACHE on it",
    "--attack-key-env|--attack-url": "put the key into PERSPECTIVE_API_KEY, or use detoxify as --attack",
    "--regard-labels|--attack-label": "name the labels in the config.json of a copy of the classifier",
    "--people|--text": "a batch asks about 5 other people for each edit, and the texts of the package",
    "--estimand|--method|--correction": "leave it out: there is one way, see docs/statistics.md",
    "--leave-out-tuned": "give records without these people with --data",
    "--scorer|--max-tokens|--prompts-per-person": "from Python: audit(...); in a study's file, too",
    "--family|--noise-run|--noise-floor|--noise-floor-log-odds": "from Python: AuditSettings",
    "--errors": "from Python: CompareSettings(errors='wrong')",
    "--rank": "from Python: ShareOptions(rank=...)",
    "--topics|--budget|--examples|--contents|--min-triples": "from Python: GraphJob",
    "--coding|--blank": "from Python: seesaw_cf.texts.released",
    "--track|--metric|--full": "read OUT/report/report.json and the folder tables beside it",
    "--tokenizer|--concurrency": "models behind a server are not scored: give their weights",
    "--hide-edit": "there is nothing in its place",
    "--explain|--plan|--dry-run|--price-in|--price-out": "run a part with --limit and multiply; the command continues",
    "--private|--note|--chat|--tries|--preset|--names|--like|--facts|--effect|--per-rater|--encoder|--dimensions": (
        "there is nothing in its place"
    ),
}
"""Options -> what to do instead, in every command that does not have one."""


def instead(kind: str, name: str, removed: Mapping[str, str]) -> str | None:
    """Return the message about a removed command or option, or None where there never was one of that name."""
    texts = (text for names, text in removed.items() if name in names.split("|"))
    return next((f"{kind} {name} was removed: {text}." for text in texts), None)
