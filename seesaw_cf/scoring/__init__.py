"""Scoring: how likely a causal language model finds a target after a context."""

from seesaw_cf.scoring.encode import encode_cloze
from seesaw_cf.scoring.hf import HFScorer, Scorer

__all__ = ["HFScorer", "Scorer", "encode_cloze"]
