"""Sharing an edit: a small folder that is the edit, a LoRA adapter, a full checkpoint, a repository on the Hub."""

from seesaw_cf.base.fields import check_exports
from seesaw_cf.models.adapters import to_peft
from seesaw_cf.models.delta_files import load_delta, merge_and_save, save_delta
from seesaw_cf.sharing.evidence import Evidence, edit_evidence
from seesaw_cf.sharing.hub import FORMS, ShareOptions, prepare_repo, share, share_page

__all__ = [
    "FORMS",
    "Evidence",
    "ShareOptions",
    "edit_evidence",
    "load_delta",
    "merge_and_save",
    "prepare_repo",
    "save_delta",
    "share",
    "share_page",
    "to_peft",
]

check_exports(globals())
