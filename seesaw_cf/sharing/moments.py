"""Second moments on the Hub: a data set with one file for each layer and a card."""

from __future__ import annotations

import tempfile
from pathlib import Path

from seesaw_cf.base.files import write_text
from seesaw_cf.base.hub import check_repo
from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.editors.locate.moments import moment_files
from seesaw_cf.editors.tensor_files import load_tensors
from seesaw_cf.sharing.card import escaped
from seesaw_cf.sharing.hub import base_name, push_folder

_CARD = """---
tags:
- seesaw-cf
- model-editing
- second-moments
viewer: false
---
# {title}

Uncentred second moments C = E[k kᵀ] of the inputs k of the MLP output projections of {model}, for editing it
with ROME, MEMIT, EMMET or AlphaEdit. Averages over tokens: no text can be read from them.

{table}

To use them:

```bash
seesaw-cf audit MODEL --editor memit --moments {repo} --out runs/memit
```

They are refused for a model with other weights, configuration, dtype or tokenizer.
"""
_SHOWN = ("model", "dtype", "tokenizer", "libraries", "corpus", "texts", "n_texts", "n_tokens", "max_length")


def push_moments(
    folder: Path, repo: str, *, base_model: str | None = None, public: bool = False, overwrite: bool = False
) -> str:
    """Publish the second moments in a folder as a data set, in one commit; the same again changes nothing.

    Args:
        folder: With files layer-N.safetensors.
        repo: ORG/NAME.
        base_model: Name of the model on the Hub; needed when they were computed with a local folder.
        public: Make a new repository public; private otherwise.
        overwrite: Replace what the repository holds.

    Returns:
        The address of the repository.

    Raises:
        RecordError: The name of the repository or the model is malformed.
        StorageError: There are none, a file is damaged, or the Hub refused or did not answer.
    """
    check_repo(repo)
    files = moment_files(folder)
    _, facts = [load_tensors(file) for file in files.values()][-1]  # each is read whole, so that none is damaged
    model = base_name(base_model or facts["id"])
    rows = [(name, escaped(str(facts[name]))) for name in _SHOWN] + [("layers", ", ".join(map(str, files)))]
    title, table = escaped(repo.split("/")[-1]), markdown_table(["what", "value"], rows, left=2)
    with tempfile.TemporaryDirectory() as place:
        for file in files.values():
            (Path(place) / file.name).symlink_to(file.resolve())
        write_text(Path(place) / "README.md", _CARD.format(title=title, model=escaped(model), table=table, repo=repo))
        message = "Second moments, made with seesaw_cf"
        return push_folder(Path(place), repo, not public, overwrite, kind="dataset", message=message)
