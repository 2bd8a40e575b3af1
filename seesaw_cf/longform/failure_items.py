"""The ways in which long texts of edited models fail: LEME's categories, with a sentence on each for raters.

Source: LEME, section 5.6 and Table 20 (types). Deviates: the sentences are ours, the paper explains most of them by an
example only; "Cross Passage Consistency issue" is coded as "Cross Passage Contradiction"; the two examples of a good
edit, a minimal and an impossible one are codes like the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FailureMode = tuple[str, str]
"""Its title in Table 20, and what it is."""

FAILURE_MODES: Mapping[str, FailureMode] = MappingProxyType(
    {
        "nonsensical": ("Disfluency (nonsensical)", "words are repeated, or make no sense where they stand"),
        "spaces": ("Disfluency (spaces)", "spaces between words are missing or wrong"),
        "new_entity": ("New entity", "the edit is true of a new person or thing of the same name"),
        "topic_drift": ("Topic drift", "the text moves on to another topic"),
        "entity_drift": ("Subject entity drift", "the name of the subject changes, or another entity takes its place"),
        "only_beginning": ("Only mentioned at beginning", "the subject is named at the beginning and then no more"),
        "undesired_edit": ("Undesired edit", "the edit shows where nobody asked for it"),
        "internal_contradiction": ("Internal contradiction", "a passage contradicts itself"),
        "old_and_new": ("Incorporates both old and new facts", "the old fact and the new one are both said to hold"),
        "impacts_related": ("Edit impacts related passage", "the edit is also said of the related entity"),
        "cross_passage": ("Cross passage contradiction", "the two passages contradict each other"),
        "changed_too_much": ("Changed too much", "facts that the edit leaves alone were changed, too"),
        "impossible_edit": ("Impossible edit", "the edit cannot be true, and the text becomes absurd by it"),
        "minimal_edit": ("Minimal edit", "hardly more than the edited fact was changed, though more follows from it"),
        "good_edit": ("Good edit", "the edit is there, nothing is contradicted, and the rest is as it was"),
    }
)
"""Name -> title and meaning, in the order of Table 20."""
