"""The page of columns: what stands in each table of a report, under which name."""

from __future__ import annotations

from seesaw_cf.report.tables import ABOUT

HEAD = """# Columns of the tables

A report's folder `tables` has a CSV file for each of these. A cell that does not apply is empty; sizes of people's
answers are on the scale that `scale` names, and an interval holds at 95 %.

"""
COLUMNS = {
    "about": "whom a row is about: `other_people`, `other_facts` about the edited person, ...",
    "after, before": "the level after and before the edit",
    "asked": "the relation of the other fact; of `answers` the kind of questions",
    "axis": "`gender`, `race` or `region`; `all` = everybody",
    "case_id": "number of the case in the records",
    "control": "the control that an editor is compared with; empty = with nothing",
    "decides": "the row whose scale was declared to decide the verdict",
    "delta_norm": "norm of the change of the weights",
    "detectable": "the size that such data find with power 80 %",
    "df": "degrees of freedom (Satterthwaite)",
    "edit": "the edit in words: person, old answer, new answer",
    "edit_share_for_half": "the share of edits that make half of the change",
    "editor": "the editor, the control, or the changed model",
    "form": "how it was asked, see [Sequences and chat](sequences.md): `plain`, `question` or `prefill`",
    "gained, lost": "answers that became right, and wrong",
    "group, reference": "the group of people, and those whom it is compared with",
    "kind, phase, reason, n_rows": "of missing scores: which questions, before or after, why, how many",
    "loss, mean_loss": "what the right answer lost, in probability",
    "low, high": "ends of the interval",
    "margin": "the size that was declared to matter",
    "mirror": "the same test as the row of the other group of an axis with two",
    "n, n_edits, n_people": "answers, distinct edits and people behind the number",
    "n_no_candidate, n_no_gold, n_unscored": "cases that are left out: no candidates, no true answer named, no score",
    "note": "why a number or an interval is missing, or what limits it",
    "p, p_adjusted": "of the test, alone and corrected over its family",
    "person, prompt": "who is asked about, and the question",
    "relation": "relation of the edit; `all` = all of them",
    "right, wrong": "the true answer, and the false one that competes",
    "right_before, right_after": "share of right answers; in `answers` the probability of the right one",
    "right_change, right_share, right_log_odds": "its change: in shares, in probability, in log-odds",
    "right_mrr, right_top5": "mean reciprocal rank of the right answer, and the share where it is among the first five",
    "right_by_chance, right_by_constant": "share that guessing, and always the commonest answer, would reach",
    "scale": "`probability` or `log_odds` (nats)",
    "status": "`ok`, or why an edit was refused or changed nothing",
    "stderr": "standard error, clustered by edit and person",
    "success, raised": "the new answer is the likelier one after the edit; it became likelier",
    "true_answer": "which answer of the edit is true of the people: `old` or `new`",
    "turned_wrong": "right before and wrong after: how many, or whether",
    "value": "the number itself",
    "value_on_other_scale": "the same contrast on the scale that does not decide",
    "verdict": "the decision in a word, see [What a claim rests on](statistics.md)",
    "what": "which number a row is: `change`, `beyond` (change minus that of the control), `efficacy_after`, ...",
    "wrong_before, wrong_after": "probability of the false answer",
}
"""Columns that belong together -> what they hold; `other_people_old_asked` is `asked` of people with the old answer."""


def columns_page() -> str:
    """Markdown: the tables, then their columns in the order of the alphabet."""
    tables = "\n".join(f"| `{name}.csv` | {about} |" for name, about in ABOUT.items())
    rows = "\n".join(
        f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {about} |" for names, about in COLUMNS.items()
    )
    return f"{HEAD}| table | holds |\n|---|---|\n{tables}\n\n| column | holds |\n|---|---|\n{rows}\n"
