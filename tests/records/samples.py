"""Records and cases for the tests of `seesaw_cf.records`: four hand-written records and hypothesis strategies."""

import copy
from typing import Any

from hypothesis import strategies as st

from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import AttributePrompt, Case, EditRequest, Entity

Named = tuple[str, str]
"""Name and QID of an answer."""


def rewrite(subject: str, prompt: str, relation_id: str, new: Named, true: Named) -> dict[str, Any]:
    """The edit of a record, as CounterFact writes it."""
    targets = {f"target_{side}": {"str": name, "id": id} for side, (name, id) in (("new", new), ("true", true))}
    return {"prompt": prompt, "relation_id": relation_id, **targets, "subject": subject}


SEESAW: dict[str, Any] = {
    "case_id": 7,
    "requested_rewrite": rewrite("Marie Curie", "{} is a citizen of", "P27", ("Japan", "Q17"), ("Poland", "Q36")),
    "generation_prompts": ["Marie Curie's field of work is", "Marie Curie is"],
    "attribute_prompts": ["Murasaki Shikibu was a citizen of", "Kotringo is a citizen of"],
    "attribute_aux_info": ["Q81731", "Q11323532"],
    "attribute_aux_ent": ["Murasaki Shikibu", "Kotringo"],
}
EFF: dict[str, Any] = {
    "case_id": 8,
    "requested_rewrite": SEESAW["requested_rewrite"],
    "attribute_prompts": ["Marie Curie is a citizen of"],
}
COUNTERFACT: dict[str, Any] = {
    "case_id": 9,
    "pararel_idx": 2796,
    "requested_rewrite": rewrite("France", "The capital of {} is", "P36", ("Lyon", "Q456"), ("Paris", "Q90")),
    "paraphrase_prompts": ["Rain fell. France, which has the capital city"],
    "neighborhood_prompts": ["The Louvre is in", "The Seine flows through"],
    "attribute_prompts": ["The Saone flows through"],
    "generation_prompts": [],
}
ZSRE: dict[str, Any] = {
    "subject": "Watts Humphrey",
    "src": "What university did Watts Humphrey attend?",
    "pred": "Trinity College",
    "rephrase": "What university did Watts Humphrey take part in?",
    "alt": "University of Michigan",
    "answers": ["Illinois Institute of Technology", "IIT"],
    "loc": "nq question: who played desmond doss father in hacksaw ridge",
    "loc_ans": "Hugo Weaving",
    "cond": "Trinity College >> University of Michigan || What university did Watts Humphrey attend?",
}
EASYEDIT: dict[str, Any] = {
    "case_id": 3,
    "subject": "Danielle Darrieux",
    "prompt": "The mother tongue of Danielle Darrieux is",
    "target_new": "English",
    "ground_truth": [["French", "français"]],
    "rephrase_prompt": "Where Danielle Darrieux is from, people speak",
    "locality": {"Relation_Specificity": [{"prompt": "Danielle Darrieux was born in", "ground_truth": "Bordeaux"}]},
}
RECORDS = {"seesaw": SEESAW, "eff": EFF, "counterfact": COUNTERFACT, "zsre": ZSRE, "easyedit": EASYEDIT}


def changed(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with `value` at the dotted path; `...` removes the key."""
    made = copy.deepcopy(record)
    *parents, last = path.split(".")
    place = made
    for key in parents:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SOLID = TEXT.filter(lambda text: bool(text.strip()))
NAME = SOLID.filter(lambda text: "{" not in text and "}" not in text)
STRINGS = st.lists(TEXT, max_size=3).map(tuple)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
IDS = st.from_regex(r"Q[1-9][0-9]{0,6}", fullmatch=True)
ENTITIES = st.builds(Entity, st.none() | IDS, SOLID)
PROMPTS = st.builds(
    AttributePrompt,
    **dict.fromkeys(("text", "template_id"), TEXT),
    **dict.fromkeys(("gender", "race", "region", "flags"), STRINGS),
    subject=st.builds(Entity, st.none() | TEXT, TEXT),
    holds=st.sampled_from(["", "target_new", "target_true"]),
    living=st.none() | st.booleans(),
    sitelinks=st.none() | st.integers(0, 10**6),
)
_LISTS = ("candidates", "gold", "generation_prompts", "paraphrase_prompts", "neighborhood_prompts", "flags")
CASES = st.builds(
    Case,
    case_id=st.integers(-(2**63), 2**63 - 1),
    request=st.builds(EditRequest, NAME.map("{} is ".__add__), SOLID, TEXT, ENTITIES, ENTITIES),
    effect_relation_id=st.none() | TEXT,
    attribute_prompts=st.lists(PROMPTS, max_size=3).map(tuple),
    effect_prompts=st.lists(PROMPTS, max_size=2).map(tuple),
    record_format=TEXT,
    extra=st.dictionaries(TEXT, JSON, max_size=3),
    **dict.fromkeys(_LISTS, STRINGS),
)


def _rewrites(relation_ids: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    target = st.fixed_dictionaries({"str": SOLID}, optional={"note": JSON})
    return st.fixed_dictionaries(
        {
            "prompt": NAME.map("{}".__add__),
            "relation_id": relation_ids,
            "target_new": target.map(lambda value: value | {"id": "Q1"}),
            "target_true": target.map(lambda value: value | {"id": "Q2"}),
            "subject": NAME,
        },
        optional={"more": JSON},
    )


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A valid record of any of the formats, with unknown keys at every level and lists absent, empty or filled."""
    kind = draw(st.sampled_from(sorted(RECORDS)))
    solid = st.lists(SOLID, max_size=3)
    unknown = draw(st.dictionaries(TEXT.map("x_".__add__), JSON, max_size=2))
    if kind == "zsre":
        subject = draw(NAME)
        required = {"subject": subject, "src": draw(NAME) + subject + draw(NAME), "rephrase": draw(SOLID)}
        answers = draw(st.lists(SOLID, min_size=1, max_size=3))
        return required | {"answers": answers, "loc": draw(SOLID), "loc_ans": draw(SOLID)} | unknown
    if kind == "easyedit":
        subject = draw(NAME)
        required = {"subject": subject, "prompt": draw(NAME) + subject + draw(NAME), "target_new": draw(SOLID)}
        optional = draw(st.dictionaries(st.sampled_from(["ground_truth", "rephrase_prompt", "locality"]), JSON))
        return required | optional | unknown
    relations = (
        st.from_regex(r"P[1-9][0-9]{0,3}", fullmatch=True)
        if kind == "counterfact"
        else st.sampled_from(sorted(RELATIONS))
    )
    rewrite = draw(_rewrites(relations))
    common = {"case_id": draw(st.integers(0, 2**63 - 1)), "requested_rewrite": rewrite} | unknown
    if kind == "eff":
        return common | {"attribute_prompts": [rewrite["prompt"].replace("{}", rewrite["subject"])]}
    if kind == "counterfact":
        optional = draw(st.dictionaries(st.sampled_from(["attribute_prompts", "generation_prompts"]), solid))
        return common | {"paraphrase_prompts": draw(solid), "neighborhood_prompts": draw(solid)} | optional
    rows = draw(st.lists(st.tuples(SOLID, IDS, SOLID), max_size=4))
    columns = ([row[position] for row in rows] for position in range(3))
    lists = dict(zip(("attribute_prompts", "attribute_aux_info", "attribute_aux_ent"), columns))
    return common | {"generation_prompts": draw(solid)} | lists
