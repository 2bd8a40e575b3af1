"""Labelling configurations: the XML that tells Label Studio what raters see and answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.effects.survey_items import ITEMS, SCALE, TYPES
from seesaw_cf.texts.wording import FAILURE_MODES, Flaw

SPANS = "evidence"
"""Name of what is highlighted."""
_COLOURS = {"supports": "#1b7837", "contradicts": "#b2182b"}


def flaw_config(flaws: Sequence[Flaw], shows_edit: bool) -> str:
    """Two texts, and for each flaw in which it is more present."""
    view = _view([("subject", "Subject"), *([("edit", "Edit")] if shows_edit else [])])
    _texts(view, [("text_A", "Text A"), ("text_B", "Text B")])
    for flaw in flaws:
        _header(view, f"{flaw.title}: in which text is it more present?")
        for line in flaw.people:
            _header(view, f"- {line}", size="6")
        _choices(view, flaw.name, "text_A", [("A", "A"), ("equal", "equal"), ("B", "B")])
    if shows_edit:
        _header(view, "Edit reflected: does a text say what the edit says, or take it for granted?")
        _choices(view, "edit_reflected", "text_A", [(word, word) for word in ("yes", "no", "unsure")])
    ET.SubElement(
        view, "TextArea", name="comment", toName="text_A", placeholder="Comment", rows="1", maxSubmissions="1"
    )
    return _xml(view)


def survey_config() -> str:
    """Two passages, and how far a rater agrees with each of LEME's nine statements."""
    view = _view([("new_fact", "New fact"), ("subject", "Subject"), ("related_entity", "Related entity")])
    _texts(view, [("old_facts_subject", "Old facts about the subject"), ("old_facts_related", "Old facts about it")])
    _texts(view, [("main", "Main passage"), ("related", "Related passage")])
    for item in (item for kind in TYPES for item in ITEMS if item.type == kind):
        _header(view, item.statement)
        _choices(view, item.name, "main", [(words, str(number)) for number, words in SCALE.items()])
    return _xml(view)


def claim_config() -> str:
    """Return a passage and a claim: a label, and the words of the passage that carry it."""
    view = _view([("claim", "Claim")])
    labels = ET.SubElement(view, "Labels", name=SPANS, toName="passage")
    for name, colour in _COLOURS.items():
        ET.SubElement(labels, "Label", value=name, background=colour)
    _texts(view, [("passage", "Passage")])
    _choices(view, "label", "passage", [(label, label) for label in LABELS])
    return _xml(view)


def failure_config() -> str:
    """Two passages, and which of LEME's failure modes they show."""
    view = _view([("new_fact", "New fact"), ("subject", "Subject"), ("related_entity", "Related entity")])
    _texts(view, [("main", "Main passage"), ("related", "Related passage")])
    choices = ET.SubElement(view, "Choices", name="modes", toName="main", choice="multiple", showInline="false")
    for name, (title, meaning) in FAILURE_MODES.items():
        ET.SubElement(choices, "Choice", value=title, alias=name, hint=meaning)
    ET.SubElement(view, "TextArea", name="comment", toName="main", placeholder="Comment", rows="1", maxSubmissions="1")
    return _xml(view)


def _view(texts: Iterable[tuple[str, str]]) -> ET.Element:
    view = ET.Element("View")
    _texts(view, texts)
    return view


def _texts(view: ET.Element, texts: Iterable[tuple[str, str]]) -> None:
    """Texts of a task; plain `Text`, never `HyperText`, and never taken for an address to load."""
    for name, title in texts:
        _header(view, title)
        ET.SubElement(view, "Text", name=name, value=f"${name}", valueType="text", granularity="word")


def _header(view: ET.Element, text: str, size: str = "4") -> None:
    # "$" would name a field of the task.
    ET.SubElement(view, "Header", value=text.replace("$", "\uff04"), size=size)


def _choices(view: ET.Element, name: str, of: str, choices: Iterable[tuple[str, str]]) -> None:
    parent = ET.SubElement(view, "Choices", name=name, toName=of, choice="single-radio", showInline="true")
    for label, alias in choices:
        ET.SubElement(parent, "Choice", value=label, alias=alias)


def _xml(view: ET.Element) -> str:
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"
