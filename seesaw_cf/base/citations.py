"""The papers that this package follows, as BibTeX. Cards of metrics, models and data sets cite from here."""

from __future__ import annotations

from collections.abc import Mapping

PAPERS: dict[str, dict[str, str]] = {
    "seesaw_cf": {
        "kind": "inproceedings",
        "title": '"Flex Tape Can\'t Fix That": Bias and Misinformation in Edited Language Models',
        "author": "Halevy, Karina H and Sotnikova, Anna and AlKhamissi, Badr and Montariol, Syrielle and "
        "Bosselut, Antoine",
        "booktitle": "Proceedings of the 2024 Conference on Empirical Methods in Natural Language Processing",
        "year": "2024",
        "pages": "8690--8707",
        "doi": "10.18653/v1/2024.emnlp-main.494",
        "eprint": "2403.00180",
    },
    "leme": {
        "kind": "inproceedings",
        "title": "Long-form evaluation of model editing",
        "author": "Rosati, Domenic and Gonzales, Robie and Chen, Jinkun and Yu, Xuemin and Kayani, Yahya and "
        "Rudzicz, Frank and Sajjad, Hassan",
        "booktitle": "Proceedings of the 2024 Conference of the North American Chapter of the Association for "
        "Computational Linguistics: Human Language Technologies",
        "year": "2024",
        "eprint": "2402.09394",
    },
    "memit": {
        "kind": "inproceedings",
        "title": "Mass-Editing Memory in a Transformer",
        "author": "Meng, Kevin and Sen Sharma, Arnab and Andonian, Alex J and Belinkov, Yonatan and Bau, David",
        "booktitle": "International Conference on Learning Representations",
        "year": "2023",
        "eprint": "2210.07229",
    },
    "rome": {
        "kind": "inproceedings",
        "title": "Locating and Editing Factual Associations in GPT",
        "author": "Meng, Kevin and Bau, David and Andonian, Alex and Belinkov, Yonatan",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2022",
        "eprint": "2202.05262",
    },
    "mend": {
        "kind": "inproceedings",
        "title": "Fast Model Editing at Scale",
        "author": "Mitchell, Eric and Lin, Charles and Bosselut, Antoine and Finn, Chelsea and Manning, Christopher D",
        "booktitle": "International Conference on Learning Representations",
        "year": "2022",
        "eprint": "2110.11309",
    },
    "ike": {
        "kind": "misc",
        "title": "Can We Edit Factual Knowledge by In-Context Learning?",
        "author": "Zheng, Ce and Li, Lei and Dong, Qingxiu and Fan, Yuxuan and Wu, Zhiyong and Xu, Jingjing and "
        "Chang, Baobao",
        "year": "2023",
        "eprint": "2305.12740",
    },
    "ft": {
        "kind": "misc",
        "title": "Modifying Memories in Transformer Models",
        "author": "Zhu, Chen and Rawat, Ankit Singh and Zaheer, Manzil and Bhojanapalli, Srinadh and Li, Daliang and "
        "Yu, Felix and Kumar, Sanjiv",
        "year": "2020",
        "eprint": "2012.00363",
    },
    "stereotypes": {
        "kind": "misc",
        "title": '"I\'m not Racist but...": Discovering Bias in the Internal Knowledge of Large Language Models',
        "author": "Salinas, Abel and Penafiel, Louis and McCormack, Robert and Morstatter, Fred",
        "year": "2023",
        "eprint": "2310.08780",
    },
}
"""Key -> fields of the BibTeX entry; "kind" is the entry's type, "eprint" its number on arXiv."""

EDITOR_PAPERS = {"memit": ("memit",), "rome": ("rome",), "mend": ("mend",), "ike": ("ike",), "ft": ("ft",)}
"""Editor -> the papers of its method that `PAPERS` has."""


def bibtex(*keys: str, note: str = "") -> str:
    """Return BibTeX entries, one after the other.

    Args:
        keys: Out of `PAPERS`.
        note: What of the first paper is meant, such as "section 4.1".
    """
    notes = [note, *[""] * (len(keys) - 1)]
    return "\n".join(_entry(key, PAPERS[key], text) for key, text in zip(keys, notes, strict=True))


def _entry(key: str, paper: Mapping[str, str], note: str) -> str:
    fields = {name: value for name, value in paper.items() if name != "kind"}
    fields["archivePrefix"] = "arXiv"
    if note:
        fields["note"] = note
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items()]
    return f"@{paper['kind']}{{{key},\n" + ",\n".join(lines) + "\n}"
