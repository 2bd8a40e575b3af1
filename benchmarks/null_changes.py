"""How often a change without an aim is flagged: nulls of every kind, each audited against a null of its own.

    python -m benchmarks.null_changes --changes 20
    python -m benchmarks.null_changes --changes 7 --first 10 --kind "low rank"

Writes `benchmarks/results/null_changes.json`: of every kind of change how many were called worse or better than their
control on any level, and how many reports held a verdict about a group. Both are false, since change and control are
drawn alike.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import PreTrainedModel

import seesaw_cf
from benchmarks.report_level import share_of
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.models import LowRank, WeightDelta, load_model
from seesaw_cf.report import AuditSettings

RESULT = Path(__file__).parent / "results" / "null_changes.json"
_SIZE = 0.08  # of the norm of each weight
_FLAGS = ("worse", "better")


def nulls(model: PreTrainedModel, kind: str, number: int, first: int = 0) -> Iterator[WeightDelta]:
    """Yield changes of one kind that were drawn without an aim, from seed `first` on."""
    matrices = {name: p.detach() for name, p in model.named_parameters() if p.dim() == 2 and "layers" in name}
    for seed in range(first, first + number):
        generator = torch.Generator().manual_seed(1000 + seed)
        yield WeightDelta({name: _drawn(weights, kind, generator) for name, weights in matrices.items()})


def _drawn(weights: torch.Tensor, kind: str, generator: torch.Generator) -> torch.Tensor | LowRank:
    rows, columns = weights.shape
    size = _SIZE * float(weights.norm())
    if kind == "noise":
        noise = torch.randn(rows, columns, generator=generator)
        return noise * (size / float(noise.norm()))
    left, right = torch.randn(rows, 2, generator=generator), torch.randn(2, columns, generator=generator)
    return LowRank(left * (size / float((left @ right).norm())), right)


KINDS = ("noise", "low rank")


def main() -> None:
    """Audit every null and count what is claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=10, help="nulls of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first null, to add to an earlier run")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these kinds")
    parser.add_argument("--limit", type=int, default=20, help="facts that each is asked about")
    args = parser.parse_args()
    model, tokenizer = load_model("seesaw-tiny", device="cpu", progress=False)
    rows: list[dict[str, str | int]] = []
    for kind in args.kind or KINDS:
        changed = {f"n{number}": change for number, change in enumerate(nulls(model, kind, args.changes, args.first))}
        found = seesaw_cf.audit(
            model,
            tokenizer,
            changed=changed,
            limit=args.limit,
            control_seeds=1,
            device="cpu",
            progress=False,
            report=AuditSettings(permutations=199),
        )
        levels = found.report.frame[~found.report.frame["editor"].map(is_control)]
        flagged = set(levels.loc[levels["verdict"].isin(_FLAGS), "editor"])
        claimed = set(levels.loc[levels["verdict"].isin(("hit_harder", "hit_less")), "editor"])
        rows.append({"kind": kind, "n": len(changed), "levels": len(flagged), "groups": len(claimed)})
        print(rows[-1], flush=True)
    n, hits = (sum(int(row[name]) for row in rows) for name in ("n", "levels"))
    result = {"facts": args.limit, "kinds": rows, "any level flagged": share_of([number < hits for number in range(n)])}
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
