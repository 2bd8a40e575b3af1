"""Sharing an edit: a small folder that is the edit, a LoRA adapter, a full checkpoint, a repository on the Hub."""

from seesaw_cf.sharing.adapters import from_peft, to_peft
from seesaw_cf.sharing.checkpoint import merge_and_save
from seesaw_cf.sharing.deltas import load_delta, save_delta

__all__ = ["from_peft", "load_delta", "merge_and_save", "save_delta", "to_peft"]
