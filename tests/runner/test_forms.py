"""Runs in chat forms and with written answers: the same edits asked otherwise, never mixed, recomputed from outside."""

import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch

from seesaw_cf.api import Audit
from seesaw_cf.base.types import FORMS, AttributePrompt, ClozeScore, Entity
from seesaw_cf.cli import main
from seesaw_cf.effects import prompt_effects
from seesaw_cf.effects.free_answers import plain_text
from seesaw_cf.errors import PromptError, RecordError, RunFolderError, UnsupportedModelError
from seesaw_cf.models import load_model
from seesaw_cf.models.delta_files import load_delta
from seesaw_cf.models.weights import applied
from seesaw_cf.report import report
from seesaw_cf.report.several import report_several
from seesaw_cf.run.answers import KINDS, MAX_NEW_TOKENS
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.manifest import read_manifest
from seesaw_cf.run.prepare import LoadedModel
from seesaw_cf.run.questions import CHAT, Question, find_indistinct
from seesaw_cf.texts import RateJob
from seesaw_cf.texts.judge import Judge
from seesaw_cf.texts.run import run_rate
from tests.longform.test_judges import Scripted

pytestmark = pytest.mark.slow

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    model, tokenizer = load_model("seesaw-tiny", device="cpu", progress=False)
    tokenizer.chat_template = TEMPLATE
    return LoadedModel(model, tokenizer)


def run(out: Path, loaded: LoadedModel, **changes: Any) -> Path:
    options: dict[str, Any] = {"editors": ("ft", "memit"), "limit": 3, "control_seeds": 2, "people_per_edit": 3}
    job = Job("seesaw-tiny", **(options | {"device": "cpu", "threads": 1, "block": 2} | changes))
    make_run(job, out, loaded=loaded, keep_deltas=True).complete()
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forms")


@pytest.fixture(scope="module")
def both(folder: Path, loaded: LoadedModel) -> Path:
    return run(folder / "both", loaded, form="both", answers=2)


@pytest.fixture(scope="module")
def plain(folder: Path, loaded: LoadedModel) -> Path:
    return run(folder / "plain", loaded)


def test_asking_in_chat_too_changes_no_plain_number(both: Path, plain: Path) -> None:
    for name in ("scores.parquet", "control_seeds.parquet", "edits.parquet"):
        first, second = (pq.read_table(path / name).to_pandas() for path in (both, plain))
        numbers = list(first.select_dtypes("float"))
        np.testing.assert_allclose(first[numbers], second[numbers], atol=1e-4)
        pd.testing.assert_frame_equal(first.drop(columns=numbers), second.drop(columns=numbers))
    assert read_manifest(both)["settings"]["forms"] == list(FORMS) == read_manifest(plain)["settings"]["forms"]
    assert {*read_manifest(both)["settings"]["chat"]} == {"template", "written"}
    tables = {form: pq.read_table(both / f"scores_{form}.parquet") for form in FORMS[1:]}
    own = pq.read_table(both / "scores.parquet")
    for form, table in tables.items():
        assert table["form"].unique().to_pylist() == [form]
        asked = ["editor", "case_id", "kind", "prompt_id", "prompt", "target", "role", "gold", "phase"]
        assert table.select(asked) == own.select(asked)
    assert own["form"].unique().to_pylist() == ["plain"]


def test_a_model_with_a_template_never_shows_plain_efficacy_alone(plain: Path, both: Path) -> None:
    for path in (plain, both):
        made = report(path)
        notes = " ".join(made.screen.notes)
        for words in ("as a text to continue", "as a question in chat", "in chat, with the answer begun"):
            assert f"The edits worked, asked {words}: " in notes
        assert [set(own.frame["form"]) for own in (made, *made.forms)] == [{form} for form in FORMS]
        assert all(set(table["form"]) <= set(FORMS) for table in made.tables.values())
        assert set(made.tables["efficacy"].query("what == 'efficacy_after'")["form"]) == set(FORMS)
        assert sum("the new answer is the likelier one" in rule for _, rule in made.checks) == 2 * len(FORMS)
    assert set(pq.read_table(plain / "scores_question.parquet")["kind"].to_pylist()) == {"efficacy"}
    assert set(made.tables["levels"]["form"]) == set(FORMS) == set(Audit(made).summary["form"])
    together = report_several([plain, both])
    assert [own.run.form for own in together.forms] == list(FORMS[1:])
    assert "The edits worked, asked as a question in chat: " in " ".join(together.screen.notes)


def test_scores_in_chat_are_those_of_the_edited_model(both: Path, loaded: LoadedModel) -> None:
    model, tokenizer = cast(Any, loaded.model), loaded.tokenizer
    for form in FORMS[1:]:
        rows = pq.read_table(both / f"scores_{form}.parquet").to_pandas()
        rows = rows[(rows["editor"] == "memit") & (rows["kind"] == "cross_subject") & (rows["phase"] == "post")]
        for case_id, own in rows.groupby("case_id"):
            (place,) = [path for path in (both / "deltas" / "memit").iterdir() if f"{case_id:08d}" in path.name][:1]
            with applied(model, load_delta(place, model)):
                for _, row in own.head(3).iterrows():
                    user = f"Complete the sentence. Answer with the missing words only.\n{row['prompt']}"
                    begun = f" {row['prompt']}" if form == "prefill" else ""
                    head = f"<s>user: {user}\nassistant:{begun}"
                    ids = tokenizer(head, add_special_tokens=False)["input_ids"]
                    whole = tokenizer(f"{head} {row['target']}", add_special_tokens=False)["input_ids"]
                    with torch.inference_mode():
                        logprobs = model(torch.tensor([whole])).logits[0].double().log_softmax(-1)
                    total = sum(float(logprobs[at - 1, whole[at]]) for at in range(len(ids), len(whole)))
                    assert row["logprob"] == pytest.approx(total, abs=1e-3)


def test_no_line_of_a_record_holds_the_answer_in_chat(loaded: LoadedModel) -> None:
    prompt = AttributePrompt("Paris is in France.\nAda lives in", Entity(None, "Ada"))
    asked = [Question("efficacy", 0, prompt, "Paris", "target_new", form=form) for form in FORMS]
    known = {q.cloze: ClozeScore(-1.0, 1, True) for q in asked}
    assert {cloze.form for cloze in find_indistinct(loaded.tokenizer, [(cast(Any, None), asked)], known)} == {*CHAT}


def test_written_answers_are_those_of_generate(both: Path, loaded: LoadedModel) -> None:
    model, tokenizer = cast(Any, loaded.model), loaded.tokenizer
    rows = pq.read_table(both / "answers.parquet").to_pandas()
    assert set(rows["form"]) == set(FORMS)
    assert set(rows["kind"]) <= set(KINDS)
    assert {"efficacy", "cross_subject"} <= set(rows["kind"])
    assert rows.groupby(["editor", "edit", "form", "kind", "phase"]).size().max() <= 2 * 2  # two configs an edit
    assert set(rows["editor"]) == {"ft", "memit", "random(ft)", "random(memit)"}
    asked = rows.groupby("form").apply(lambda own: sorted(zip(own["editor"], own["phase"], own["prompt"])))
    assert asked["plain"] == asked["question"] == asked["prefill"]
    options = {"do_sample": False, "max_new_tokens": MAX_NEW_TOKENS, "eos_token_id": 1, "pad_token_id": 1}
    for (case_id, phase), own in rows[rows["editor"] == "memit"].groupby(["edit", "phase"]):
        (place, *_) = [path for path in (both / "deltas" / "memit").iterdir() if f"{case_id:08d}" in path.name]
        with applied(model, load_delta(place, model)) if phase == "post" else torch.no_grad():
            for _, row in own.iterrows():
                user = f"Complete the sentence. Answer with the missing words only.\n{row['prompt']}"
                begun = f" {row['prompt']}" if row["form"] == "prefill" else ""
                head = f"<s>user: {user}\nassistant:{begun}" if row["form"] != "plain" else f"<s>{row['prompt']}"
                ids = torch.tensor([tokenizer(head, add_special_tokens=False)["input_ids"]])
                new = model.generate(ids, attention_mask=torch.ones_like(ids), **options)[0, ids.shape[1] :]
                assert row["text"] == tokenizer.decode(new, skip_special_tokens=True)
                assert (row["finish"] == "length") == (len(new) == MAX_NEW_TOKENS and 1 not in new)


def test_what_was_written_stands_beside_the_teacher_forced_number(both: Path) -> None:
    made = report(both)
    rows = pq.read_table(both / "answers.parquet").to_pandas()
    for own in (made, *made.forms):
        numbers = own.frame[(own.frame["about"] == "answers") & (own.frame["asked"] == "efficacy")]
        mine = rows[(rows["kind"] == "efficacy") & (rows["form"] == own.run.form) & (rows["phase"] == "post")]
        for editor in ("ft", "memit"):
            texts = mine[mine["editor"] == editor]
            found = numbers[numbers["editor"] == editor].set_index("what")["value"]
            assert found["likelier"] == pytest.approx(texts["likelier"].astype(float).mean())
            assert found["gap"] == pytest.approx(found["likelier"] - found["written"])
            assert found["unfinished"] == (texts["finish"] == "length").sum()
    lines = made.screen.sections["Answers that the models wrote, to their end"]
    assert any("ft, the edit, as a question in chat: right in" in line.words for line in lines)
    assert set(made.tables["efficacy"]["about"]) == {"edited_fact", "answers"}


def test_a_judge_stands_beside_what_was_written(both: Path, folder: Path) -> None:
    """This one says yes to every text, so that it is wrong about all that are nothing but a wrong answer."""
    judged = folder / "judged"
    shutil.copytree(both, judged)
    run_rate(RateJob(judged), raters=[Judge(cast(Any, Scripted("yes")))])
    made = report(judged)
    rows = pq.read_table(judged / "answers.parquet").to_pandas().query("editor == 'ft' and kind == 'efficacy'")
    there = rows["form"] == made.run.form
    numbers = made.frame[(made.frame["asked"] == "efficacy") & (made.frame["editor"] == "ft")].set_index("what")
    assert numbers["value"]["judged"] == 1
    bare = [plain_text(text).strip(" .,;:!?\"'*") for text in rows.loc[there, "text"]]
    known = [{*map(plain_text, own)} for own in rows.loc[there, "wrong"]]
    assert numbers["n"]["judge_error"] >= sum(text in own for text, own in zip(bare, known, strict=True))
    lines = made.screen.sections["Answers that the models wrote, to their end"]
    assert all("; a judge reads it in 100 % and is " in line.words for line in lines[:2])


def test_forms_are_never_mixed_in_one_mean(both: Path, folder: Path, loaded: LoadedModel) -> None:
    tables = [pq.read_table(both / name) for name in ("scores.parquet", "scores_question.parquet")]
    with pytest.raises(RecordError, match=r"forms \['plain', 'question'\]"):
        prompt_effects(pa.concat_tables(tables))
    assert len(prompt_effects(tables[0].filter(pc.field("editor") == "ft").drop_columns("form")))
    chat = run(folder / "chat", loaded, form="chat", editors=("ft",), configs=("cross_subject",))
    assert read_manifest(chat)["settings"]["forms"] == ["question", "prefill"]
    assert set(pq.read_table(chat / "scores.parquet")["form"].to_pylist()) == {"question"}
    assert report(chat).run.form == "question"
    with pytest.raises(RunFolderError, match="never averaged"):
        report_several([both, chat])


def test_a_resumed_run_has_the_same_bytes(both: Path, folder: Path, loaded: LoadedModel) -> None:
    again = folder / "again"
    shutil.copytree(both, again)
    files = ["answers.parquet", "edits.parquet", *(path.name for path in both.glob("*s*.parquet"))]
    for name in files:
        (again / name).unlink(missing_ok=True)
    for shard in list((again / "shards" / "memit").iterdir())[:1]:
        shard.unlink()
    run(again, loaded, form="both", answers=2)
    for name in files:
        assert (again / name).read_bytes() == (both / name).read_bytes()
    with pytest.raises(RunFolderError, match="settings"):
        run(again, loaded, form="plain")


@pytest.mark.parametrize(
    ("template", "error"), [(None, UnsupportedModelError), ("{{ raise_exception('no') }}", PromptError)]
)
def test_a_template_that_is_missing_or_raises(
    template: str | None, error: type[Exception], folder: Path, loaded: LoadedModel
) -> None:
    tokenizer = loaded.tokenizer
    tokenizer.chat_template = template
    try:
        for form in ("chat", "both"):
            with pytest.raises(error, match="chat template"):
                run(folder / "none", loaded, form=form)
        made = run(folder / str(error.__name__), loaded, editors=("ft",), limit=1, configs=("cross_subject",))
        assert read_manifest(made)["settings"]["forms"] == ["plain"]
        assert ("not asked in chat" in " ".join(report(made).screen.notes)) == (template is not None)
    finally:
        tokenizer.chat_template = TEMPLATE


def test_the_command_has_both_options(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(f"audit seesaw-tiny --editor ft --form chat --quiet --out {folder}/cli".split())
    assert "no chat template" in capsys.readouterr().err
    assert main(f"audit seesaw-tiny --editor ft --answers 0 --quiet --out {folder}/cli".split())
    assert "answers" in capsys.readouterr().err


def test_a_sequence_says_what_holds_in_every_form(folder: Path, loaded: LoadedModel) -> None:
    options: dict[str, Any] = {"protocol": "sequential", "checkpoints": (1, 3), "orders": 1, "editors": ("ft",)}
    options |= {"people_per_edit": 1, "configs": ("cross_subject",)}
    made = report(run(folder / "row", loaded, form="both", answers=1, **options))
    titles = " ".join(made.screen.sections)
    for words in ("as a question in chat", "in chat, with the answer begun"):
        assert f"Edits so far that hold, %, {words}" in titles
    assert "Answers that the models wrote" in titles
    levels = made.tables["levels"]
    assert set(zip(levels["checkpoint"], levels["form"])) == {(count, form) for count in (1, 3) for form in FORMS}
    chat = report(run(folder / "row-chat", loaded, form="chat", **options))
    assert "asked as a question in chat" in chat.screen.about
    assert set(chat.tables["levels"]["form"]) == set(FORMS[1:])
    plain = report(run(folder / "row-plain", loaded, **options))
    assert "Edits so far that hold, %, as a question in chat" in plain.screen.sections
