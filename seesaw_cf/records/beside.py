"""What records of EasyEdit, KnowEdit and zsRE ask besides the edit: its consequences, and what it must not touch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seesaw_cf.types import Case

# Names that the files give a prompt and its answer.
_PAIRS = (("prompt", "ground_truth"), ("New Question", "New Answer"))


def portability(case: Case) -> list[tuple[str, str]]:
    """Return prompts with answers that follow from the edit, with those answers (the first spelling of each).

    Source: EasyEdit's portability ("portability" of its files, of KnowEdit and of its zsRE: a reasoning hop, an alias
        of the subject, a reversed relation); LEME appendix H reports it.
    """
    return _prompts(case, "portability")


def locality(case: Case) -> list[tuple[str, str]]:
    """Return prompts of EasyEdit's records with answers that must stay, with those answers.

    zsRE's own locality prompt is one of `Case.neighborhood_prompts`, its answer `extra["loc_ans"]`.
    """
    return _prompts(case, "locality") if case.record_format == "easyedit" else []


def _prompts(case: Case, name: str) -> list[tuple[str, str]]:
    flat = _pair(case.extra.get(f"{name}_prompt"), case.extra.get(f"{name}_ground_truth"))
    return list(dict.fromkeys(pair for pair in (flat, *_pairs(case.extra.get(name))) if pair is not None))


def _pairs(value: object) -> Iterator[tuple[str, str] | None]:
    """Yield every prompt with its answer, however deep: by kind, in lists, or alone."""
    if isinstance(value, list):
        for part in value:
            yield from _pairs(part)
    elif isinstance(value, Mapping):
        own = [_pair(value[prompt], value.get(answer)) for prompt, answer in _PAIRS if prompt in value]
        yield from own
        if not own:
            for part in value.values():
                yield from _pairs(part)


def _pair(prompt: object, answer: object) -> tuple[str, str] | None:
    while isinstance(answer, list) and answer:  # other spellings follow the first
        answer = answer[0]
    usable = isinstance(prompt, str) and isinstance(answer, str) and prompt.strip() and answer.strip()
    return (str(prompt), str(answer).strip()) if usable else None
