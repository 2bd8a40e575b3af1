"""`eval.yaml`: makes a data set on the Hub a benchmark that results of edited models refer to."""

from __future__ import annotations

from collections.abc import Collection

import yaml

from seesaw_cf.records.relations import TASKS


def benchmark(name: str, configs: Collection[str]) -> str:
    """Declare the tasks that a data set can be used for.

    Args:
        name: Of the data set, for people.
        configs: That it has, each with the split "test".

    Returns:
        YAML, the same for the same arguments; "" when no task is about any of the configs.
    """
    tasks = {id: task for id, task in TASKS.items() if task.config in configs}
    if not tasks:
        return ""
    meanings = "; ".join(f"{id}: {task.meaning}" for id, task in tasks.items())
    # Without evaluation_framework: the Hub refuses names that are not on its list.
    declared = {
        "name": name,
        "description": f"What an edit does to what a model believes about other people. {meanings}.",
        "tasks": [{"id": id, "config": task.config, "split": "test"} for id, task in tasks.items()],
    }
    return str(yaml.safe_dump(declared, sort_keys=False, allow_unicode=True))
