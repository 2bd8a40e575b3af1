"""`seesaw-cf layers MODEL`: where a model holds facts, and so which layers to edit."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seesaw_cf.cli.options import path, positive, seed
from seesaw_cf.cli.output import say
from seesaw_cf.errors import EditError, RecordError
from seesaw_cf.files import atomic_path, write_text
from seesaw_cf.terminal import column_table, wrap
from seesaw_cf.types import Cloze, EditRequest

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf layers`."""
    add = parser.add_argument
    add("model", help="'seesaw-tiny', a Hub id or a folder")
    add("--revision", help="branch, tag or commit of a Hub model")
    add("--dtype", default="float32")
    add("--device", default="auto")
    add("--data", default="sample", help="where the facts come from, as in `seesaw-cf run`")
    add("--config", default="cross_subject")
    add("--facts", type=positive, default=40, help="trace this many facts that the model knows (default: 40)")
    add("--kind", default="mlp", help="restore the output of: mlp, block (default: mlp)")
    add(
        "--window",
        type=positive,
        help="neighbouring layers restored together (default: a fifth of the layers for mlp, 1)",
    )
    add("--samples", type=positive, default=10, help="noise samples (default: 10)")
    add("--seed", type=seed, default=0)
    add("--quiet", action="store_true", help="no progress bar")
    add("--out", type=path, help="also write layers.json and layers.png into this folder")


def run(args: argparse.Namespace) -> None:
    """Traces facts, prints the effect of each layer and proposes layers for the editors."""
    import torch
    from tqdm import tqdm

    from seesaw_cf.pretrained import load_model
    from seesaw_cf.reading import load_cases

    # By name, not by import: the library must not depend on the editors.
    tracing: Any = importlib.import_module("seesaw_cf.editors.tracing")
    cases = load_cases(args.data, args.config)
    model, tokenizer = load_model(args.model, device=args.device, dtype=args.dtype, revision=args.revision)
    order = torch.randperm(len(cases), generator=torch.Generator().manual_seed(args.seed)).tolist()
    known = _known(model, tokenizer, [cases[index].request for index in order])[: args.facts]
    if not known:
        raise EditError(
            f"{args.model} puts none of the {len(cases)} true answers of {args.data} {args.config} first, so there is "
            "no fact to trace. Use facts the model knows (--data, --config)."
        )
    layers = int(model.config.get_text_config(decoder=True).num_hidden_layers)
    window = args.window or (max(1, layers // 5) if args.kind == "mlp" else 1)
    options = {"kind": args.kind, "window": window, "samples": args.samples, "seed": args.seed}
    steps = tracing.trace_facts(model, tokenizer, known, **options)
    traces = list(tqdm(steps, total=len(known), desc="trace facts", unit="fact", disable=args.quiet))
    table = {name: tracing.estimates(traces, name) for name in tracing.POSITIONS}
    proposal = tracing.propose_layers(traces)
    say(_text(table["last subject token"], traces, proposal, window))
    if args.out is not None:
        _write(args.out, table, traces, proposal, options | {"model": args.model, "facts": len(traces)})
        say(f"Written to {args.out}")


def _known(model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> list[EditRequest]:
    """Facts whose true answer the model would say by itself, each once."""
    from seesaw_cf.scoring import HFScorer

    facts = list({(r.text, r.target_true.label): r for r in requests if r.target_true.label.strip()}.values())
    if not facts:
        raise RecordError("none of the cases names a true target, so there is no fact to trace. Use other --data.")
    scores = HFScorer(model, tokenizer).score([Cloze(r.text, r.target_true.label) for r in facts])
    return [request for request, score in zip(facts, scores, strict=True) if score.greedy]


def _text(row: Sequence[Any], traces: Sequence[Any], proposal: dict[str, tuple[int, ...]], window: int) -> str:
    clean = sum(trace.clean for trace in traces) / len(traces)
    corrupted = sum(trace.corrupted for trace in traces) / len(traces)
    about = (
        f"{len(traces)} facts; p(answer) {clean:.3f} untouched, {corrupted:.3f} with the subject drowned in noise. "
        f"Indirect effect of restoring {window} layer(s) around each layer at the subject's last token "
        "(probability, mean and 95 % interval over facts):"
    )
    effects = [[layer, f"{e.value:+.4f}", f"[{e.low:+.4f}, {e.high:+.4f}]"] for layer, e in enumerate(row)]
    found = "Proposed layers: " + "; ".join(f"{name} {list(layers)}" for name, layers in proposal.items()) + "."
    use = f'Use them with --editor-config, for example {{"memit": {{"layers": {list(proposal["memit"])}}}}}.'
    table = column_table(("layer", "effect", "95 % interval"), effects, left=0)
    return "\n".join([wrap(about), table, wrap(found), use])


def _write(
    out: Path, table: dict[str, Any], traces: Sequence[Any], proposal: dict[str, Any], options: dict[str, Any]
) -> None:
    from seesaw_cf.stats.plain import json_text

    facts = [{"prompt": t.request.text, "clean": t.clean, "corrupted": t.corrupted} for t in traces]
    effects = {name: [asdict(estimate) for estimate in row] for name, row in table.items()}
    record = {"options": options, "proposal": proposal, "effects": effects, "facts": facts}
    write_text(out / "layers.json", json_text(record))
    try:
        _draw(out / "layers.png", table, options)
    except ModuleNotFoundError as error:
        say(f"No picture: {error.name} is not installed. Install it with: pip install 'seesaw_cf[plots]'")


def _draw(file: Path, table: dict[str, Any], options: dict[str, Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), dpi=150, layout="tight")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    image = axes.imshow([[estimate.value for estimate in row] for row in table.values()], aspect="auto")
    axes.set_yticks(range(len(table)), list(table))
    axes.set_xlabel("layer")
    axes.set_ylabel("position in the prompt")
    name = Path(options["model"]).name[-40:]  # may hold "$", which is no formula
    axes.set_title(f"Restored {options['kind']} outputs, {options['facts']} facts, {name}", parse_math=False)
    figure.colorbar(image, label="indirect effect on p(answer)")
    with atomic_path(file) as temporary:
        figure.savefig(temporary, format="png")
