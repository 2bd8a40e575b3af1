"""`seesaw-cf layers`: where a model holds facts, and so which layers to edit."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.base.errors import EditError, MissingExtraError, RecordError, need
from seesaw_cf.base.terminal import wrap
from seesaw_cf.base.types import Cloze, EditRequest, JsonObject
from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.options import DATA, cases_of, load, model_options, quiet_option, seed_option
from seesaw_cf.cli.output import say, write_json
from seesaw_cf.cli.paths import output_folder
from seesaw_cf.cli.types import one_of, positive
from seesaw_cf.run.jobs import Job

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from seesaw_cf.base.types import Estimate
    from seesaw_cf.editors.tracing import FactTrace

_REPORTED = ("value", "low", "high", "stderr", "n", "n_clusters", "method", "p")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf layers`."""
    add = parser.add_argument
    model_options(parser)
    options_from(parser, Job, DATA)
    add("--facts", type=positive, default=40, help="trace this many facts that the model knows (default: 40)")
    add("--kind", **one_of("mlp", "block"), default="mlp", help="whose output is restored (default: mlp)")
    add(
        "--window",
        type=positive,
        help="neighbouring layers restored together (default: a fifth of the layers for mlp, 1)",
    )
    add("--noise-samples", type=positive, default=10, help="draws of the noise on the subject (default: 10)")
    seed_option(parser)
    quiet_option(parser)
    add("--out", type=output_folder, help="also write layers.json and layers.png into this folder")


def run(args: argparse.Namespace) -> None:
    """Trace facts, print the effect of each layer and propose layers for the editors."""
    import torch

    from seesaw_cf.base.retrying import Bar
    from seesaw_cf.editors import tracing

    cases = cases_of(args)
    model, tokenizer = load(args)
    order = torch.randperm(len(cases), generator=torch.Generator().manual_seed(args.seed)).tolist()
    facts = _known(model, tokenizer, [cases[index].request for index in order])[: args.facts]
    if not facts:
        raise EditError(
            f"{args.model} puts none of the {len(cases)} true answers of {args.data} first, so there is "
            "no fact to trace. Use facts the model knows (--data, --config)."
        )
    layers = int(model.config.get_text_config(decoder=True).num_hidden_layers)
    window = args.window or (max(1, layers // 5) if args.kind == "mlp" else 1)
    options = {"kind": args.kind, "window": window, "samples": args.noise_samples, "seed": args.seed}
    steps = tracing.trace_facts(model, tokenizer, facts, tracing.TraceOptions(**options))
    traces = list(Bar(steps, total=len(facts), desc="trace facts", unit="fact", disable=args.quiet))
    table = {name: tracing.estimates(traces, name) for name in tracing.POSITIONS}
    proposal = tracing.propose_layers(traces)
    say(_text(table["last subject token"], traces, proposal, window))
    if args.out is not None:
        _write(args.out, table, traces, proposal, options | {"model": args.model, "facts": len(traces)})
        say(f"Written to {args.out}")


def _known(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
) -> list[EditRequest]:
    """Return the facts that the model answers right unedited, each once."""
    from seesaw_cf.scoring import HFScorer

    facts = list({(r.text, r.target_true.label): r for r in requests if r.target_true.label.strip()}.values())
    if not facts:
        raise RecordError("none of the cases names a true target, so there is no fact to trace. Use other --data.")
    scores = HFScorer(model, tokenizer).score([Cloze(r.text, r.target_true.label) for r in facts])
    return [request for request, score in zip(facts, scores, strict=True) if score.greedy]


def _text(
    row: Sequence[Estimate], traces: Sequence[FactTrace], proposal: dict[str, tuple[int, ...]], window: int
) -> str:
    import pandas as pd

    from seesaw_cf.report.table import Column, EstimateColumn, Table

    clean = sum(trace.clean for trace in traces) / len(traces)
    corrupted = sum(trace.corrupted for trace in traces) / len(traces)
    about = (
        f"{len(traces)} facts; p(answer) {clean:.3f} untouched, {corrupted:.3f} with noise on the subject. "
        f"Indirect effect of restoring {window} layer(s) around each layer at the subject's last token "
        "(probability, mean and 95 % interval over facts)."
    )
    effects = pd.DataFrame([{"layer": layer} | e.columns("value", "low", "high") for layer, e in enumerate(row)])
    columns = [Column("layer"), EstimateColumn("effect", "value", low="low", digits=4, zero=0.0)]
    table = Table("layers", "Where facts are held", about, columns, effects)
    proposals = "Proposed layers: " + "; ".join(f"{name} {list(layers)}" for name, layers in proposal.items()) + "."
    use = f'Use them with --editor-config, for example {{"memit": {{"layers": {list(proposal["memit"])}}}}}.'
    return "\n".join([table.terminal(), wrap(proposals), use])


def _write(
    out: Path,
    table: Mapping[str, Sequence[Estimate]],
    traces: Sequence[FactTrace],
    proposal: Mapping[str, tuple[int, ...]],
    options: JsonObject,
) -> None:
    facts = [{"prompt": t.request.text, "clean": t.clean, "corrupted": t.corrupted} for t in traces]
    effects = {name: [estimate.columns(*_REPORTED) for estimate in row] for name, row in table.items()}
    record = {"options": options, "proposal": proposal, "effects": effects, "facts": facts}
    write_json(out / "layers.json", record)
    try:
        with need("matplotlib", extra="plots", what_for="pictures"):
            from seesaw_cf.report.canvas import new_figure, picture_style, save_picture
    except MissingExtraError as error:
        say(f"No picture: {error}")
        return
    with picture_style():
        figure, (axes,) = new_figure(3.6)
        _draw(axes, table, options)
        save_picture(figure, out / "layers.png")


def _draw(axes: Axes, table: Mapping[str, Sequence[Estimate]], options: JsonObject) -> None:
    image = axes.imshow([[estimate.value for estimate in row] for row in table.values()], aspect="auto")
    axes.set_yticks(range(len(table)), list(table))
    axes.set_xlabel("layer")
    axes.set_ylabel("position in the prompt")
    name = Path(str(options["model"])).name[-40:]
    axes.set_title(f"Restored {options['kind']} outputs, {options['facts']} facts, {name}")
    axes.figure.colorbar(image, label="indirect effect on p(answer)")
