"""The file of a study: what it declares, and what is said about a wrong one."""

import json
import re
from pathlib import Path

import pytest

from seesaw_cf.errors import RunFolderError, SeesawError, UnknownNameError
from seesaw_cf.study.cells import cells_of, chosen, claim_study, job_of
from seesaw_cf.study.declared import Study, read_study

GOOD = """
models:
  tiny: seesaw-tiny
  half: {model: seesaw-tiny, dtype: bfloat16, settings: found.json}
editors:
  ft: {steps: 3}
  memit:
controls: [identity]
records:
  sample: {configs: [cross_subject, cross_property], limit: 2}
protocols: [single, batch]
seed: 1
margin: 0.03
family: [relation, axis]
"""


def study(folder: Path, text: str = GOOD) -> Study:
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return read_study(folder / "study.yaml")


def test_a_file_means_cells_in_its_order(tmp_path: Path) -> None:
    made = study(tmp_path)
    names = [cell.name for cell in cells_of(made)]
    assert names[:3] == ["tiny/sample/single/ft", "tiny/sample/single/memit", "tiny/sample/batch/ft"]
    assert len(names) == 8
    assert [cell.name for cell in chosen(cells_of(made), ["half/*/ft", names[0]])] == [names[0], names[4], names[6]]
    assert (made.audit.margin, made.audit.margin_log_odds, made.family) == (0.03, 0.1, ("relation", "axis"))
    assert made.title == "study"
    with pytest.raises(UnknownNameError, match=r"unknown cell 'tiny/sample/single/fr'. Did you mean 'tiny/sample/si"):
        chosen(cells_of(made), ["tiny/sample/single/fr"])


def test_a_cell_is_an_ordinary_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = {"ft": {"steps": 9, "learning_rate": 0.1}, "memit": {"layers": [0]}}
    (tmp_path / "found.json").write_text(json.dumps(found))
    made = study(tmp_path)
    cells = {cell.name: job_of(cell, made, tmp_path / "out") for cell in cells_of(made)}
    job = cells["half/sample/single/ft"]
    assert (job.model, job.dtype, job.editors, job.controls) == ("seesaw-tiny", "bfloat16", ("ft",), ("identity",))
    assert (job.limit, job.seed, job.protocol) == (2, 1, "single")
    assert job.configs == ("cross_subject", "cross_property")
    assert isinstance(job.editor_config, Path)
    assert json.loads(job.editor_config.read_text()) == {"ft": {"steps": 3, "learning_rate": 0.1}}
    assert cells["tiny/sample/single/memit"].editor_config is None


LEAST = "models: [seesaw-tiny]\neditors: [ft]\nrecords: {sample: }\n"


def least(key: str, given: str) -> str:
    """The least study, with one key given otherwise."""
    return re.sub(rf"^{key}: .*", f"{key}: {given}", LEAST, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LEAST + "people_per_edit: some", "people_per_edit.*some"),
        (LEAST + "margn: 1", r"study.yaml: unknown key 'margn'. Did you mean 'margin'"),
        (least("models", "{t: {model: x, dtyp: float32}}"), r"models.t: unknown key 'dtyp'. Did you mean"),
        (least("models", "{t: {model: x, dtype: float23}}"), r"unknown .*models.t.dtype 'float23'. Did"),
        (least("models", "[]"), r"study.yaml: models is empty, so there is nothing to study"),
        (least("models", "{no: y}"), r"models: the name False is no name of a folder"),
        (least("models", "[[x]]"), r"models\[0\] is \['x'\], expected text"),
        (least("editors", "[memitt]"), r"study.yaml: editors: unknown name 'memitt'. Did you mean 'memit'"),
        (least("editors", "{ft: {stepps: 3}}"), r"editors.ft: unknown key 'stepps'. Did you mean 'steps'"),
        (least("editors", "{ft: {steps: .nan}}"), r"editors.ft is \{'steps': nan\}, expected plain settings"),
        (least("editors", "{ft: {steps: 2020-01-01}}"), r"expected plain settings \(Object of type date"),
        (least("records", "{s: {configs: []}}"), r"records.s.configs is \[\], expected at least one name, each once"),
        (LEAST.replace("records: {sample: }", ""), r"study.yaml: records is missing, so there is nothing to study"),
        (LEAST + "controls: [identty]", r"study.yaml: controls: unknown name 'identty'. Did you mean 'identity'"),
        (LEAST + "protocols: [batch, batch]", r"expected at least one name, each once"),
        (LEAST + "protocols: [single, sequential]", r"protocols are \['single', 'sequential'\]: checkpoints and ord"),
        (LEAST + "orders: 2", r"Declare protocols: \[sequential\] alone, or leave them out"),
        (LEAST + "protocols: [sequential]\ncheckpoints: [0]", r"study.yaml: checkpoints is 0, expected a whole number"),
        (LEAST + "protocols: [sequential]\ncontrols: [identity]", r"yaml: audit: protocol is .sequential., which"),
        (LEAST + "alpha: 1", r"alpha is 1, expected a finite number between 0 and 1, both excluded"),
        (LEAST + "seed: yes", r"seed is True, expected a whole number"),
        (LEAST + "seed: 1\nseed: 2", r"study.yaml: not YAML that is read here \(line 5: the key 'seed' occurs twice\)"),
        ("a: &a [x]\nb: *a", r"line 2: aliases \(\*name\) are not read"),
        ("models: !!python/object/apply:os.system ['true']", r"not YAML that is read here \(could not determine"),
        ("models: [", r"not YAML that is read here \(while parsing"),
        ("- 1", r"study.yaml: got \[1\], expected keys such as models, editors and records"),
    ],
)
def test_a_wrong_file_is_named_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SeesawError, match=message):
        study(tmp_path, text)


def test_a_study_may_grow_and_nothing_else(tmp_path: Path) -> None:
    out, first = tmp_path / "out", study(tmp_path)
    with pytest.raises(RunFolderError, match=r"is not empty and has no study\.json"):
        claim_study(tmp_path, first)
    bare = study(tmp_path, GOOD.replace("controls: [identity]\n", ""))
    assert bare.controls == ()
    for folder, made in ((out, first), (tmp_path / "bare", bare)):
        claim_study(folder, made)
        claim_study(folder, made)
    grown = study(tmp_path, GOOD.replace("  memit:\n", "  memit:\n  rome:\n").replace("half:", "third: x\n  half:"))
    claim_study(out, grown)
    assert set(json.loads((out / "study.json").read_text())["editors"]) == {"ft", "memit", "rome"}
    for changed, message in {
        GOOD: r"belongs to another study:\n  editors.rome: the folder has \{\}, this file None\n  models.third: the",
        GOOD.replace("0.03", "0.02"): r"declared.margin: the folder has 0.03, this file 0.02",
        GOOD.replace("[identity]", "[random]"): r"controls: the folder has \['identity'\], this file \['random'\]",
        GOOD.replace("limit: 2", "limit: 3"): r"records.sample.limit: the folder has 2, this file 3",
        GOOD.replace("steps: 3", "steps: 4"): r"editors.ft.steps: the folder has 3, this file 4",
    }.items():
        with pytest.raises(RunFolderError, match=message):
            claim_study(out, study(tmp_path, changed))
    claim_study(out, study(tmp_path, GOOD.replace("half:", "third: x\n  half:").replace(
        "  memit:\n", "  memit:\n  rome:\n").replace("dtype: bfloat16", "dtype: bfloat16, device: cpu")))  # fmt: skip
