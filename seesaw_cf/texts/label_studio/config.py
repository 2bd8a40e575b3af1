"""Labelling configurations: the XML that tells Label Studio what raters see and answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from seesaw_cf.texts.people.study import ItemQuestion

SPANS = "evidence"
"""Name of what is highlighted."""
_COLOURS = {"supports": "#1b7837", "contradicts": "#b2182b"}


def config_of(facts: Mapping[str, str], texts: Mapping[str, str], questions: Sequence[ItemQuestion]) -> str:
    """Return the configuration of tasks.

    Args:
        facts: Field of a task -> title of what stands above the texts.
        texts: The same of the texts; answers belong to the first.
        questions: What is asked; of a claim, words of the first text are highlighted as well.
    """
    view, first = ET.Element("View"), next(iter(texts))
    _texts(view, facts)
    if any(question.shape == "claim" for question in questions):
        labels = ET.SubElement(view, "Labels", name=SPANS, toName=first)
        for name, colour in _COLOURS.items():
            ET.SubElement(labels, "Label", value=name, background=colour)
    _texts(view, texts)
    for question in questions:
        _header(view, question.text)
        for line in question.help:
            _header(view, f"- {line}", size="6")
        if question.choices:
            how = "multiple" if question.shape == "several" else "single-radio"
            parent = ET.SubElement(view, "Choices", name=question.name, toName=first, choice=how, showInline="true")
            for value, words in question.choices:
                ET.SubElement(parent, "Choice", value=words, alias=value)
        else:
            ET.SubElement(view, "TextArea", name=question.name, toName=first, rows="1", maxSubmissions="1")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _texts(view: ET.Element, texts: Mapping[str, str]) -> None:
    """Texts of a task; plain `Text`, never `HyperText`, and never taken for an address to load."""
    for name, title in texts.items():
        _header(view, title)
        ET.SubElement(view, "Text", name=name, value=f"${name}", valueType="text", granularity="word")


def _header(view: ET.Element, text: str, size: str = "4") -> None:
    # "$" would name a field of the task.
    ET.SubElement(view, "Header", value=text.replace("$", "\uff04"), size=size)
