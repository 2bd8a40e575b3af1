"""Claims run folders, one after the other, as soon as each is announced: `python -m tests.runner.claimer FOLDER N`."""

import sys
from pathlib import Path

from seesaw_cf.run.manifest import RunManifest, claim_folder


def manifest(**changes: object) -> RunManifest:
    values = {"model": {"id": "m"}, "editors": {}, "data": {}, "protocol": "single", "seed": 0, "scoring": {}}
    return RunManifest(**{**values, **changes})  # type: ignore[arg-type]


def main(folder: str, rounds: str) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for number in range(int(rounds)):
        if sys.stdin.readline() == "":
            return
        out = Path(folder) / str(number)
        joined = claim_folder(out, manifest())
        (out / "shards").mkdir(exist_ok=True)  # what a run does next: a folder that is not empty
        sys.stdout.write("joined\n" if joined else "claimed\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
