"""Wrong implementations that somebody could write: what the source says, what it would say, which tests must fail."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MUTANTS", "Mutant"]


class Mutant(NamedTuple):
    """One wrong line.

    Attributes:
        name: For `--only`.
        file: From the repository's root.
        right: Text that occurs exactly once in the file.
        wrong: What is put in its place.
        what: What is wrong with it.
        tests: Fast tests, files or single ones, of which one must fail.
    """

    name: str
    file: str
    right: str
    wrong: str
    what: str
    tests: tuple[str, ...]


_FORMS = "tests/golden/test_closed_forms.py::test_"
VALUES = (f"{_FORMS}values_are_those_of_the_loss_and_adam",)
ROME = (f"{_FORMS}rome_is_its_rank_one_formula",)
MEMIT = (f"{_FORMS}memit_solves_its_normal_equations",)
EMMET = (f"{_FORMS}emmet_meets_its_constraints_up_to_slack",)
ALPHAEDIT = (f"{_FORMS}alphaedit_writes_below_its_threshold_and_spares_earlier_keys",)
FT = (f"{_FORMS}ft_is_adam_in_a_box",)
MEND = (f"{_FORMS}mend_transforms_factors_as_in_its_paper",)
MEND_LOSSES = (f"{_FORMS}mend_losses_are_nll_and_kl_from_the_base",)
ENCODE = ("tests/core/test_scoring.py",)
CLUSTERED = ("tests/stats/test_clustered.py",)
MULTIPLE = ("tests/stats/test_multiple_and_verdicts.py",)
PROMPTS = ("tests/effects/test_prompts.py",)
ESTIMANDS = ("tests/effects/test_estimands.py",)

_EDITORS = [
    Mutant(
        "alphaedit-without-decay",
        "editors/locate/method.py",
        "max(config.layers), config)",
        "max(config.layers), replace(config, weight_decay=0.0))",
        "AlphaEdit, MEMIT and EMMET without weight decay",
        ALPHAEDIT,
    ),
    Mutant(
        "alphaedit-threshold",
        "editors/alphaedit.py",
        "values < self.config.null_threshold",
        "values < 1.05 * self.config.null_threshold",
        "AlphaEdit's null threshold 5 % too large",
        ALPHAEDIT,
    ),
    Mutant(
        "alphaedit-forgets",
        "editors/alphaedit.py",
        "every = new if old is None else torch.cat([new, basis.T @ old.to(basis)], 1)",
        "every = new",
        "AlphaEdit without the keys of earlier edits",
        ALPHAEDIT,
    ),
    Mutant(
        "emmet-norm-weight",
        "editors/emmet.py",
        "config.norm_weight / config.moment_weight",
        "1.05 * config.norm_weight / config.moment_weight",
        "EMMET's norm_weight 5 % too large",
        EMMET,
    ),
    Mutant(
        "emmet-slack",
        "editors/emmet.py",
        "config.slack * torch.eye",
        "1.05 * config.slack * torch.eye",
        "EMMET's slack 5 % too large",
        EMMET,
    ),
    Mutant(
        "emmet-slack-for-one",
        "editors/emmet.py",
        "if len(small) > 1 or config.slack_for_one:",
        "if True:",
        "EMMET's slack also for a single request",
        EMMET,
    ),
    Mutant(
        "rome-without-decay",
        "editors/rome.py",
        'layer, self.config, at="mlp")',
        'layer, type(self.config)(**vars(self.config) | {"weight_decay": 0.0}), at="mlp")',
        "ROME without weight decay",
        ROME,
    ),
    Mutant(
        "rome-key-share",
        "editors/rome.py",
        "share = 1.0 if self.config.bare_keys else None",
        "share = 1.0 if self.config.bare_keys else 0.5",
        "ROME with MEMIT's average of keys",
        ROME,
    ),
    Mutant(
        "memit-key-share",
        "editors/locate/spread.py",
        "edits, 0.5).T",
        "edits, None).T",
        "MEMIT with ROME's average of keys",
        MEMIT,
    ),
    Mutant(
        "memit-share",
        "editors/locate/spread.py",
        "left / (len(ordered) - number)",
        "left / len(ordered)",
        "MEMIT's residual shared among all layers instead of those left",
        MEMIT,
    ),
    Mutant(
        "memit-moment-weight",
        "editors/locate/solve.py",
        "spread = self.inverse_times(keys) / weight",
        "spread = self.inverse_times(keys) * weight",
        "MEMIT's lambda on the wrong side",
        MEMIT,
    ),
    Mutant(
        "decay-squared",
        "editors/locate/optimise.py",
        "(shift.norm(dim=1) / norms**2)",
        "(shift.norm(dim=1) ** 2 / norms**2)",
        "the decay term squared, as in the paper's text and not as published",
        VALUES,
    ),
    Mutant(
        "kl-turned",
        "editors/locate/optimise.py",
        "(log_p.exp() * (log_p - before[kept]))",
        "(before[kept].exp() * (before[kept] - log_p))",
        "KL the other way round",
        VALUES,
    ),
    Mutant(
        "nll-summed",
        "editors/locate/optimise.py",
        "weight = 1.0 / len(row.targets) / len(edit.rows)",
        "weight = 1.0 / len(edit.rows)",
        "the target's loss summed over its tokens instead of averaged",
        MEMIT,
    ),
    Mutant(
        "ball-too-wide",
        "editors/locate/optimise.py",
        "_project(shift, config.clamp * norms)",
        "_project(shift, 1.05 * config.clamp * norms)",
        "the clamp 5 % too wide",
        VALUES,
    ),
    Mutant(
        "one-step-more",
        "editors/locate/optimise.py",
        "| (step == config.steps - 1))",
        "| (step == config.steps))",
        "the optimisation makes a step after its last loss",
        VALUES,
    ),
    Mutant(
        "subject-token",
        "editors/locate/positions.py",
        "return len(lead) + holding[-1]",
        "return len(lead) + max(0, holding[-1] - 1)",
        "the token before the subject's last one",
        ROME,
    ),
    Mutant(
        "zero-is-not-zero",
        "editors/locate/optimise.py",
        "return shift + (initial - now) if bool(shift.any()) else torch.zeros_like(now)",
        "return shift + (initial - now)",
        "an edit without a step leaves what its context templates differ by",
        ("tests/editors/test_zero.py",),
    ),
    Mutant(
        "moment-count",
        "editors/locate/moment_sums.py",
        "matrix = self.products[layer] / total\n",
        "matrix = self.products[layer] / (total - 1)\n",
        "second moments divided by n - 1",
        MEMIT,
    ),
    Mutant(
        "ft-decoupled-decay",
        "editors/training.py",
        "torch.optim.Adam(list(values.values())",
        "torch.optim.AdamW(list(values.values())",
        "FT with decoupled weight decay",
        FT,
    ),
    Mutant(
        "ft-box-too-wide",
        "editors/ft.py",
        "value.clamp_(old[name] - limit, old[name] + limit)",
        "value.clamp_(old[name] - 1.05 * limit, old[name] + 1.05 * limit)",
        "FT's box 5 % too wide",
        FT,
    ),
    Mutant(
        "ft-wrong-position",
        "editors/training.py",
        "len(row.ids) - 1 if bag else",
        "len(row.ids) - 1 if not bag else",
        "FT's two objectives exchanged",
        FT,
    ),
    Mutant(
        "lora-scale",
        "editors/lora.py",
        'LowRank(values[f"left.{layer}"] * scale',
        'LowRank(values[f"left.{layer}"]',
        "LoRA's alpha / rank left out of the delta",
        ("tests/editors/test_lora.py",),
    ),
    Mutant(
        "mend-not-centred",
        "editors/mend/network.py",
        "normal_v = (v - self.v_mean) / (self.v_std + 1e-7)",
        "normal_v = v / (self.v_std + 1e-7)",
        "MEND's gradients scaled but not centred",
        MEND,
    ),
    Mutant(
        "mend-kl-turned",
        "editors/mend/factors.py",
        "(before.exp() * (before - after))",
        "(after.exp() * (after - before))",
        "MEND's KL the other way round",
        MEND_LOSSES,
    ),
]

_SCORING = [
    Mutant(
        "next-token",
        "seesaw_cf/scoring/hf_scorer.py",
        "places = [place - 1 for item in batch",
        "places = [place for item in batch",
        "log-probabilities read one position too late",
        ENCODE,
    ),
    Mutant(
        "mean-over-tokens",
        "seesaw_cf/scoring/hf_scorer.py",
        "logprobs[at : at + count].sum()",
        "logprobs[at : at + count].mean()",
        "a mean over target tokens called their sum",
        ENCODE,
    ),
    Mutant(
        "bos-forgotten",
        "seesaw_cf/scoring/encode.py",
        "len(prefix) + len(head))",
        "len(head))",
        "the target begins one token early behind a BOS",
        ENCODE,
    ),
    Mutant(
        "trie-peak",
        "seesaw_cf/scoring/forward.py",
        "chosen = chosen - peaks[at] - sums.log()[at]",
        "chosen = chosen - sums.log()[at]",
        "the log-softmax without its largest logit",
        ("tests/scoring/test_trie_scorer.py",),
    ),
    Mutant(
        "edits-of-others",
        "seesaw_cf/scoring/per_token.py",
        "((given.to(wide) @ enter) * own) @ leave",
        "(given.to(wide) @ enter) @ leave",
        "every row gets the edits of all rows",
        ("tests/scoring/test_edited.py",),
    ),
]

_NUMBERS = [
    Mutant(
        "sign-of-d",
        "seesaw_cf/effects/prompts.py",
        "np.exp(new) - np.exp(true)",
        "np.exp(true) - np.exp(new)",
        "D with the other sign",
        PROMPTS,
    ),
    Mutant(
        "pre-minus-post",
        "seesaw_cf/effects/prompts.py",
        'out["D_post"] - out["D_pre"]',
        'out["D_pre"] - out["D_post"]',
        "the change before minus after",
        PROMPTS,
    ),
    Mutant(
        "not-normalised",
        "seesaw_cf/effects/prompts.py",
        'true / _tokens("n_tokens_true", n_true)',
        'true / _tokens("n_tokens_true", n_new)',
        "the true target normalised by the new one's tokens",
        PROMPTS,
    ),
    Mutant(
        "control-added",
        "seesaw_cf/effects/estimands.py",
        'out[name] -= out[f"{name}_control"]',
        'out[name] += out[f"{name}_control"]',
        "the control added instead of taken off",
        ESTIMANDS,
    ),
    Mutant(
        "truth-turned",
        "seesaw_cf/effects/estimands.py",
        'sign = np.where(prompts["holds"] == "target_true", -1.0, 1.0)',
        'sign = np.where(prompts["holds"] == "target_new", -1.0, 1.0)',
        "the other people's D turned around",
        ESTIMANDS,
    ),
    Mutant(
        "ties-win",
        "seesaw_cf/effects/knowledge.py",
        "(~above(logprobs[gold].max(), logprobs[~gold], nats)).sum()",
        "above(logprobs[~gold], logprobs[gold].max(), nats).sum()",
        "a tie counts as the right answer",
        ("tests/effects/test_properties.py",),
    ),
    Mutant(
        "mean-of-prompts",
        "seesaw_cf/stats/clustered.py",
        "weights[member] = 1 / (per_case[case[member]] * np.count_nonzero(per_case))",
        "weights[member] = 1 / np.count_nonzero(member)",
        "a mean of prompts instead of case means",
        (*CLUSTERED, *ESTIMANDS),
    ),
    Mutant(
        "one-sided-p",
        "seesaw_cf/stats/clustered.py",
        "p = 2 * stats.t.sf(",
        "p = stats.t.sf(",
        "a one-sided p called two-sided",
        CLUSTERED,
    ),
    Mutant(
        "normal-quantile",
        "seesaw_cf/stats/clustered.py",
        "stats.t.ppf((1 + level) / 2, df)",
        "stats.norm.ppf((1 + level) / 2)",
        "a normal interval for few clusters",
        CLUSTERED,
    ),
    Mutant(
        "satterthwaite",
        "seesaw_cf/stats/crossing.py",
        "first**2 / second",
        "2 * first**2 / second",
        "twice the degrees of freedom",
        CLUSTERED,
    ),
    Mutant(
        "intersection-added",
        "seesaw_cf/stats/crossing.py",
        "-1 if len(names) % 2 == 0 else 1",
        "1",
        "the variance of both dimensions' intersection added instead of taken off",
        CLUSTERED,
    ),
    Mutant(
        "no-cr2",
        "seesaw_cf/stats/crossing.py",
        "scale = 1 / (1 - np.minimum(np.max(shares, axis=0), 0.99))",
        "scale = np.ones(n)",
        "residuals of clusters not corrected for their own weight",
        CLUSTERED,
    ),
    Mutant(
        "bonferroni",
        "seesaw_cf/stats/multiple.py",
        "np.arange(order.size, 0, -1)",
        "order.size",
        "Bonferroni called Holm",
        MULTIPLE,
    ),
    Mutant(
        "either-side",
        "seesaw_cf/stats/verdicts.py",
        "max(upper, lower)",
        "min(upper, lower)",
        "equivalence after one of two one-sided tests",
        MULTIPLE,
    ),
]

MUTANTS: tuple[Mutant, ...] = (*_EDITORS, *_SCORING, *_NUMBERS)
