"""Scoring: how likely a causal language model finds a target after a context."""

from seesaw_cf.base.fields import check_exports
from seesaw_cf.base.types import SCORERS
from seesaw_cf.scoring.edited_scorer import EditedScorer, score_each
from seesaw_cf.scoring.encode import encode_cloze
from seesaw_cf.scoring.hf_scorer import HFScorer, Scorer
from seesaw_cf.scoring.trie_scorer import TrieScorer, make_scorer

__all__ = ["SCORERS", "EditedScorer", "HFScorer", "Scorer", "TrieScorer", "encode_cloze", "make_scorer", "score_each"]

check_exports(globals())
