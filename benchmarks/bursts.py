"""Do intervals of a mean hold it where few edits do the harm? Prints their coverage, with t and Hall alone beside them.

    python -m benchmarks.bursts [--draws 1000] [--contrasts]

--contrasts: of the contrast of one half of the people, whom an edit changes 1.5 times as much, as a report prints it.

An edit asks 20 people, 2 prompts each, out of twice as many people as there are edits; an edit about another fact asks
8 facts of its own person, with 8 edits a person.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.effects.permutations import label_orders
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, case_weights, hall, outer_limits
from seesaw_cf.stats.crossing import Crossing
from seesaw_cf.stats.multiple import permutation_level
from seesaw_cf.stats.permuted import LabelledPeople

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Effects = Callable[[np.random.Generator, tuple[int, int]], Floats]
EDITS = (32, 80, 160)
PEOPLE, PROMPTS, FACTS, EDITS_A_PERSON = 20, 2, 8, 8
SIZE, SD_PERSON, SD_PROMPT = 0.1, 0.01, 0.03


def bursts(share: float, centre: float = 0.0) -> Effects:
    """Effects of which `share` are lognormal and the others 0, with mean `centre` + share * exp(1 / 2)."""
    return lambda rng, shape: SIZE * (centre + (rng.random(shape) < share) * rng.lognormal(size=shape))


def _either_way(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return SIZE * (rng.random(shape) < 0.1) * rng.normal(size=shape)


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return SIZE * rng.normal(size=shape)


# Scenario -> effects of edits, their mean in units of SIZE, whether people multiply them.
SCENARIOS: dict[str, tuple[Effects, float, bool]] = {
    "10 % of edits harm": (bursts(0.1), 0.1 * np.exp(0.5), False),
    "20 % of edits harm": (bursts(0.2), 0.2 * np.exp(0.5), False),
    "every edit harms, people differ": (bursts(1.0), np.exp(0.5), True),
    "normal": (_normal, 0.0, False),
    "10 % of edits change, either way": (_either_way, 0.0, False),
}


def people(edits: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Codes of edit and person of every prompt."""
    asked = np.array([rng.choice(2 * edits, PEOPLE, replace=False) for _ in range(edits)], np.intp)
    return np.repeat(np.arange(edits), PEOPLE * PROMPTS), np.repeat(asked.ravel(), PROMPTS)


def simulated(scenario: str, edit: Codes, person: Codes, draws: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """Values (prompts, draws) and their true mean."""
    effects, mean, multiplied = SCENARIOS[scenario]
    y = effects(rng, (int(edit.max()) + 1, draws))[edit]
    n_people = int(person.max()) + 1
    if multiplied:
        y *= rng.lognormal(-0.125, 0.5, (n_people, draws))[person]  # of mean 1
    y += SD_PERSON * rng.normal(size=(n_people, draws))[person] + SD_PROMPT * rng.normal(size=y.shape)
    return y, float(SIZE * mean)


def other_facts(edits: int, share: float, draws: int, rng: np.random.Generator) -> tuple[Codes, Codes, Floats, float]:
    """Codes of edit and edited person, lost facts (-1) in bursts: an edit loses a beta-distributed part or nothing."""
    edit = np.repeat(np.arange(edits), FACTS)
    lost = (rng.random((edits, draws)) < share) * rng.beta(1, 1, (edits, draws))
    return edit, edit // EDITS_A_PERSON, -(rng.random((edit.size, draws)) < lost[edit]).astype(np.float64), -share / 2


def coverage(crossing: Crossing, y: Floats, truth: float) -> dict[str, float]:
    """Coverage of three intervals of 95 %, and the median width of the outer one, of draws that have an error."""
    errors = np.stack(crossing.errors(y))
    value, stderr, df, skew = errors[:, errors[1] > 0]
    q, t = stats.t.isf(0.025, df), (value - truth) / stderr
    low, high = outer_limits(value, stderr, q, skew)
    return {
        "t": float((np.abs(t) <= q).mean()),
        "Hall": float((np.abs(hall(t, skew)) <= q).mean()),
        "outer": float(((low <= truth) & (truth <= high)).mean()),
        "width": float(np.median(high - low)),
    }


def contrasts(draws: int, seed: int, permutations: int = 199) -> Iterator[dict[str, object]]:
    """One row per scenario and number of edits: coverage of t, of the permuted interval, and of that of a report."""
    for edits in EDITS:
        for number, (scenario, (effects, mean, _)) in enumerate(SCENARIOS.items()):
            rng = np.random.default_rng([seed, edits, number])
            edit, person = people(edits, rng)
            edit, person = edit[::PROMPTS], person[::PROMPTS]
            member = np.arange(2 * edits) % 2 == 0
            y = effects(rng, (edits, draws))[edit] * (1 + member / 2)[person][:, None]
            y += SD_PERSON * rng.normal(size=(2 * edits, draws))[person] + SD_PROMPT * rng.normal(size=y.shape)
            parts = [case_weights(edit, side[person]) for side in (member, ~member)]
            value, stderr, df, skew = Crossing(parts, {"edit": edit, "person": person}).errors(y)
            orders = label_orders(rng, np.zeros(member.size, np.intp), permutations)
            asked = LabelledPeople(edit, person, np.zeros_like(edit), y, member.size)
            sides = [side[:, None].astype(float) for side in (member, ~member)]
            drawn = [asked.p(some, *sides)[0, :, 0, 0] for some in orders[:, None]]
            point = permutation_level(np.array(drawn), 0.05)
            low, high = outer_limits(value, stderr, stats.t.isf(0.025, df), skew)
            half, away = stats.t.isf(point / 2, df) * stderr, np.abs(value - SIZE * mean / 2)
            inside = (low - SIZE * mean / 2 <= 0) & (high - SIZE * mean / 2 >= 0)
            yield {
                "scenario": scenario,
                "edits": edits,
                "t": float((away <= stats.t.isf(0.025, df) * stderr).mean()),
                "permuted": float((away <= half).mean()),
                "report": float(((away <= half) | inside).mean()),
            }


def table(draws: int, seed: int) -> Iterator[dict[str, object]]:
    """One row per scenario and number of edits."""
    for edits in EDITS:
        for number, scenario in enumerate(SCENARIOS):
            rng = np.random.default_rng([seed, edits, number])
            edit, person = people(edits, rng)
            crossing = Crossing([np.full(edit.size, 1 / edit.size)], {"edit": edit, "person": person})
            y, truth = simulated(scenario, edit, person, draws, rng)
            yield {"scenario": scenario, "edits": edits} | coverage(crossing, y, truth)
        for share in (0.1, 0.2, 1.0):
            edit, person, y, truth = other_facts(edits, share, draws, np.random.default_rng([seed, edits, 9]))
            crossing = Crossing([np.full(edit.size, 1 / edit.size)], {"person": person})
            if min(crossing.effective.values()) >= MIN_EFFECTIVE:
                yield {"scenario": f"facts lost by {share:.0%} of edits", "edits": edits} | coverage(crossing, y, truth)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contrasts", action="store_true")
    given = parser.parse_args()
    rows = contrasts if given.contrasts else table
    print(pd.DataFrame(rows(given.draws, given.seed)).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
