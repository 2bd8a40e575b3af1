"""Commands and options that were removed, and what to use instead; to be deleted at the first release.

An extra that was removed needs no row: pip itself warns that the package does not provide it.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["COMMANDS", "OPTIONS", "instead"]

# Command, or command and action -> what to do instead.
COMMANDS: Mapping[str, str] = {
    "noise": "every run measures it: `machine.noise` in its manifest.json",
    "bias": "ask lm_eval's BBQ, CrowS-Pairs or Winogender of both models, then use `seesaw-cf compare --group FIELD`",
    "export": "report.json and the tables of a report hold its numbers",
    "annotate": "people export writes tasks for Label Studio or a spreadsheet, people import reads the answers",
    "labels": "people export and people import",
    "leme": "texts write, rate, report and train",
    "flaws": "texts rate and texts report; people export flaws",
    "run": "use `seesaw-cf audit`, which also asks both configs and a random control",
    "dose": "use `seesaw-cf audit --protocol batch --dose 1 10 100`",
    "check-editor": "use `seesaw-cf check`",
    "moments": "use `seesaw-cf share MODEL --moments`, with --repo to publish them",
    "new editor": "use `seesaw-cf new NAME`",
    "register|cache": "use `seesaw-cf setup`",
    "tune": "set learning_rate, steps, clamp or layers in --editor-config",
    "view": "read scores.parquet with pandas; report.html has the prompts that moved most",
    "import": "use `seesaw-cf build --records FILE ...`",
    "publish": "use `seesaw-cf build --push ORG/NAME`",
    "check-data": "seesaw-cf build --records FILE says what is wrong with records",
    "check-metric": "compute the metric on the tables of seesaw_cf.report.report(RUN)",
    "metrics": "seesaw-cf report RUN --paper has the papers' tables; report.json and tables/ the numbers",
    "plan": "a report says how many times the edits or the people would decide more",
    "new metric": "start from a module of metrics/, such as topic_disparity",
    "new records": "write the records as JSON that seesaw-cf build --records reads",
    "graph draw": "`seesaw-cf graph run` draws the figures",
    "graph export": "`seesaw-cf graph run` writes graph.graphml",
    "graph score": "`seesaw-cf graph run --regard MODEL --attack detoxify` scores what it crawls",
    "graph topics": "`seesaw-cf graph run` sorts what it crawls into topics",
    "completion": "seesaw-cf COMMAND --help has the options of a command",
    "fetch": "in a checkout `python -m benchmarks.real_model FOLDER` writes the same model",
    "layers": "name the layers in --editor-config; the defaults are published ones or at their depth",
}

# Options -> what to do instead, in every command that does not have one.
OPTIONS: Mapping[str, str] = {
    "--as": "use --form",
    "--report": "the report is in OUT/report; seesaw-cf report RUN --out DIR writes another one",
    "--people": "a dose asks about 5 other people for each edit",
    "--text": "perplexity is that of the texts that come with the package",
    "--edited": "use --changed",
    "--dry-run": "the cache keeps replies: stop a build when it takes too long, the same command goes on",
    "--from": "use --source",
    "--anyway": "use --ignore-damage",
    "--holders": "use --people-per-edit",
    "--design": "use --prompts",
    "--null": "use --control-model",
    "--note": "write it into the dataset's card or the commit on the Hub",
    "--correction": "leave it out: false claims are bounded over each family",
    "--attack-label": "give a classifier that has the label identity_attack",
    "--no-prefix": "use --prefix start, expand or none",
    "--runs": "graph run has --repeats",
    "--regard-labels": "name the labels in the config.json of a copy of the classifier",
    "--attack-key-env": "put the key into PERSPECTIVE_API_KEY",
    "--attack-url": "use detoxify or a classifier as --attack",
    "--dimensions": "topics are labelled by the words of warmth and competence of the paper",
    "--encoder": "topics are those of BERTopic or of NMF over TF-IDF",
    "--redo": "delete the identity's files below completions/ and run the command again",
    "--actors": "the Ray cluster, and --threads or --gpus of a worker, say how many workers there are",
    "--explain": "a run says what it waits for; docs/performance.md says what is shared",
    "--exchange": "workers share a disk; put --out and SEESAW_CF_CACHE on it",
    "--estimand": "report contrasts as they are; scores.parquet has what else people differ in",
    "--method": "errors are clustered by edit and person",
    "--leave-out-tuned": "give records without these people with --data",
    "--dose-run": "seesaw-cf audit --dose writes a report",
    "--family": "from Python: AuditSettings(family=...); in a study's file: family",
    "--scorer": "from Python: audit(scorer=...); in a study's file: scorer",
    "--ray-address": "put the address into RAY_ADDRESS",
    "--errors": "from Python: CompareSettings(errors='wrong')",
    "--rank": "from Python: ShareOptions(rank=...)",
    "--facts": "two facts are edited together",
    "--max-tokens": "from Python: audit(max_tokens=...); give --memory less",
    "--prompts-per-person": "from Python: audit(prompts_per_person=...); in a study's file, too",
    "--private": "a repository is as your account says",
    "--topics": "from Python: GraphJob(topics=...)",
    "--released": "give the files with --people",
    "--full": "the folder tables of a report has every table",
    "--names": "exchange the names in the texts, and judge those too",
    "--zero-shot": "name the NLI model as --rater of texts rate",
    "--metric": "compute it on the tables of seesaw_cf.report.report(RUN)",
    "--track": "log the numbers of OUT/report/report.json yourself",
    "--like": "files that are reported together must be about the same pairs",
    "--annotator": "texts rate RUN --rater lexical, or a classifier",
    "--passage": "free and guided descriptions are paired",
    "--no-relationship": "seesaw_cf.texts.prompts.coupled_cases(records, relationship=False)",
    "--epochs": "--recipe says how long is trained",
    "--chat": "a model with a chat template is asked through it",
    "--tries": "a question is asked three times at the most",
    "--sheet": "people export writes sheet.csv into --out",
    "--preset": "name the options themselves",
    "--plan": "run a part with --limit or --sample, and multiply",
    "--sampling-error": "stop at a number of tokens with --tokens",
    "--judge-url|--judge-key-env|--judge-shots|--judge-examples|--judge-wording": "texts rate has it without judge-",
    "--top-k|--top-p|--repetition-penalty": "it is that of --generation",
    "--price-in|--price-out": "multiply the tokens in calls.parquet by the price",
    "--effect|--per-rater": "count raters by hand: no page plans a study of them",
    "--noise-run|--noise-floor|--noise-floor-log-odds": "from Python: AuditSettings(noise_floor=...)",
    "--budget|--examples|--contents|--min-triples": "from Python: CrawlSettings",
    "--tokenizer|--concurrency": "models behind a server are not scored: give their weights",
    "--coding|--blank": "seesaw_cf.texts.released.released_flaws(FILE, coding=..., blank=...)",
}


def instead(kind: str, name: str, removed: Mapping[str, str]) -> str | None:
    """Return the message about a removed command or option, or None where there never was one of that name."""
    texts = (text for names, text in removed.items() if name in names.split("|"))
    return next((f"{kind} {name} was removed: {text}." for text in texts), None)
