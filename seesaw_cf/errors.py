"""The errors that the package raises, all of them a `SeesawError`."""

from seesaw_cf.base.errors import (
    DeltaMismatchError,
    EditError,
    HarmError,
    MissingExtraError,
    PromptError,
    RecordError,
    RunFolderError,
    SeesawError,
    ServiceError,
    SettingError,
    StorageError,
    UnknownNameError,
    UnsupportedModelError,
)

__all__ = [
    "DeltaMismatchError",
    "EditError",
    "HarmError",
    "MissingExtraError",
    "PromptError",
    "RecordError",
    "RunFolderError",
    "SeesawError",
    "ServiceError",
    "SettingError",
    "StorageError",
    "UnknownNameError",
    "UnsupportedModelError",
]
