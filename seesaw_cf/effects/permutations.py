"""What chance does to contrasts of groups: people swap their whole label vectors, and every contrast is made again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from seesaw_cf.base.system import keep_memory
from seesaw_cf.effects.means import ALL, CHANGES, asked_alike, sort_prompts, tag_sets
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.crossing import Codes
from seesaw_cf.stats.permuted import LabelledPeople

# Permutations of one thread in one go: never of how many cores there are, on which last digits would depend.
_BATCH = 64


class LabelledContrasts:
    """The contrasts of an audit, for any labels of its people.

    Attributes:
        strata: (people,) code of the answers that each person was asked about as a holder of.
    """

    def __init__(self, prompts: pd.DataFrame, table: pd.DataFrame) -> None:
        """Prepare what does not depend on labels.

        Args:
            prompts: Scored rows of `seesaw_cf.effects.prompt_effects`, in any order.
            table: `editor`, `holds`, `relation` ("all": pooled), `axis`, `group` (compared with everyone else tagged on
                the axis), `scale`, `mirror` and `p` of each contrast; without p it is left out.
        """
        labels = prompts[["case_id", "prompt_id", "holds", "person", *dict.fromkeys(table["axis"])]]
        people = labels.sort_values(["case_id", "prompt_id", "holds"], kind="stable").drop_duplicates("person")
        people = people.sort_values("person").set_index("person")
        tested = table.reset_index(drop=True)[(table["p"].notna() & ~table["mirror"]).to_numpy()]
        self.strata, self._size = _strata(prompts, people.index), len(table)
        self._designs = list(_designs(prompts, tested, people)) if len(tested) else []

    def p(self, orders: Codes) -> Floats:
        """Return p of t of every contrast when person i has the labels of person orders[., i].

        Args:
            orders: (permutations, people).

        Returns:
            (permutations, contrasts); NaN where labels leave too few people on a side, and for what is left out.
        """
        out = np.full((len(orders), self._size), np.nan)
        for rows, p in self._designs:
            out[:, rows] = p(orders)
        return out

    @contextmanager
    def drawing(self, permutations: int, seed: int, first: int = 0) -> Iterator[Callable[[], Floats]]:
        """Compute `p` after random permutations on other threads while the block runs; the call waits for it.

        All axes of a person move together, within `strata`. All editors, and both kinds of holders, see the same
        permutation.

        Args:
            permutations, seed: How many, and of which generator.
            first: How many of them are left out.
        """

        def permute_batch(start: int) -> Floats:
            rng = np.random.Generator(np.random.PCG64(seed).advance(start * self.strata.size))
            return self.p(label_orders(rng, self.strata, min(_BATCH, permutations - start)))

        keep_memory()
        # numpy and scipy let other threads compute meanwhile; threads that BLAS adds to these would only wait for them
        with threadpool_limits(1, "blas"):
            pool = _threads(os.getpid())
            parts = [pool.submit(permute_batch, start) for start in range(first, permutations, _BATCH)]
            try:
                yield lambda: np.concatenate([np.empty((0, self._size)), *(part.result() for part in parts)])
            finally:
                wait([part for part in parts if not part.cancel()])

    def drawn(self, permutations: int, seed: int) -> Floats:
        """Return `p` after random permutations, see `drawing`."""
        with self.drawing(permutations, seed) as drawn:
            return drawn()


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return as many threads as there are cores, for all that a process permutes at the same time."""
    return ThreadPoolExecutor(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1)


def label_orders(rng: np.random.Generator, strata: Codes, n: int) -> Codes:
    """Return n permutations of people within strata, (n, people)."""
    orders = np.empty((n, strata.size), np.intp)
    orders[:, np.argsort(strata, kind="stable")] = np.argsort(strata + rng.random((n, strata.size)), axis=1)
    return orders


Design = tuple[Codes, Callable[[Codes], Floats]]
"""Contrasts of editors with prompts about the same people under the same edits: their rows of the table, and what makes
their p, (permutations, rows), of orders of people."""


def _p(people: LabelledPeople, kinds: Codes, sides: tuple[Floats, Floats], places: Codes, orders: Codes) -> Floats:
    """Return p of t, (permutations, rows).

    Args:
        people: Who was asked, with one measure per editor.
        kinds: (people,) row of both `sides`; people with the same labels are of one kind.
        sides: Two (kinds, contrasts of labels).
        places: (3, rows) block, measure and contrast of labels of each row of the table.
        orders: (permutations, people).
    """
    block, measure, label = places
    tested = np.zeros((people.n_blocks, sides[0].shape[1]), bool)
    tested[block, label] = True
    return people.p(kinds[orders], *sides, tested)[block, measure, :, label].T


def _designs(prompts: pd.DataFrame, tested: pd.DataFrame, people: pd.DataFrame) -> Iterator[Design]:
    """Yield a design for each scale and axis: people of all axes' labels are of nearly as many kinds as people."""
    columns = ["case_id", "person", "prompt_id", "holds", "editor", "edit_relation", "D", "log_odds"]
    for holds, asked in sort_prompts(prompts[columns]).groupby("holds", sort=True, observed=True):
        for of_editor in map(dict, asked_alike(asked)):
            rows = asked.iloc[next(iter(of_editor.values()))]
            edit, person = pd.factorize(rows["case_id"])[0], people.index.get_indexer(pd.Index(rows["person"]))
            own = tested[(tested["holds"] == holds) & tested["editor"].isin(list(of_editor))]
            for scale, decided in own.groupby("scale", sort=False):
                editors, relations = list(dict.fromkeys(decided["editor"])), sorted(set(decided["relation"]) - {ALL})
                block = pd.Index(relations, dtype=object).get_indexer(pd.Index(rows["edit_relation"]))
                block = np.where(block < 0, len(relations), block)  # relations without a test are one block
                values = [asked[CHANGES[str(scale)]].to_numpy()[of_editor[editor]] for editor in editors]
                labelled = LabelledPeople(edit, person, block, np.column_stack(values), len(people))
                for axis, table in decided.groupby("axis", sort=False):
                    groups = list(dict.fromkeys(table["group"]))
                    places = [
                        [[ALL, *relations].index(name) for name in table["relation"]],
                        [editors.index(name) for name in table["editor"]],
                        [groups.index(group) for group in table["group"]],
                    ]
                    kinds, *sides = _sides(people[axis], groups)
                    yield table.index.to_numpy(), partial(_p, labelled, kinds, (sides[0], sides[1]), np.array(places))


def _sides(labels: pd.Series, groups: list[str]) -> tuple[Codes, Floats, Floats]:
    """Return the kind of each person, and (kinds, groups) who is in the group, and who is tagged and is not."""
    code, tags = tag_sets(labels)
    member = np.array([[group in own for group in groups] for own in tags])
    other = ~member & np.array([bool(own) for own in tags])[:, None]
    sides, kinds = np.unique(np.hstack([member, other]), axis=0, return_inverse=True)
    first, second = np.hsplit(sides.astype(np.float64), 2)
    return kinds.reshape(-1)[code], first, second


def _strata(prompts: pd.DataFrame, people: pd.Index) -> Codes:
    """Return a code of the roles of each person: asked as a holder of the new answer, of the old one, or of both."""
    holds = prompts.groupby("person")["holds"].agg(lambda answers: "/".join(sorted(set(answers))))
    return np.asarray(pd.factorize(holds.loc[people], sort=True)[0], np.intp)
