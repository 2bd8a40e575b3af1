"""Every metric's demo opens with results; its function answers the example and explains a text that is wrong."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from seesaw_cf.metrics.register import METRICS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", METRICS)
def test_the_example_has_results_and_nonsense_has_a_message(name: str) -> None:
    demo = importlib.import_module(f"seesaw_cf.metrics.{name}.app").demo
    frame, said = demo.table(demo.example)
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) > 0, said
    empty, problem = demo.table("this is\nno,table,of this metric")
    assert empty.empty
    assert re.match(r"\w+: .", problem)


def test_the_demos_and_the_constraints_can_be_installed_together() -> None:
    """gradio before 6.29 wants huggingface_hub below 2, and none takes pillow 13 yet."""
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    assert int(pins["pillow"].split(".")[0]) < 13
    assert int(pins["huggingface_hub"].split(".")[0]) < 3
    for name in METRICS:
        assert "gradio>=6.29" in (ROOT / "metrics" / name / "requirements.txt").read_text()


_BUILD = """
import importlib, json
from seesaw_cf.metrics.register import METRICS
for name in METRICS:
    page = importlib.import_module(f"seesaw_cf.metrics.{name}.app").demo.page()
    (table,) = [part["props"] for part in page.get_config_file()["components"] if part["type"] == "dataframe"]
    (click,) = page.fns.values()
    frame, said = click.fn(*(box.value for box in click.inputs))
    print(json.dumps([name, table["value"]["headers"], len(table["value"]["data"]), len(frame), said]))
"""


@pytest.mark.slow(30)
def test_every_page_opens_with_results_and_its_button_works() -> None:
    pytest.importorskip("gradio", reason="gradio is not installed: pip install -c constraints.txt 'gradio>=6.29'")
    # In a process of its own: gradio leaves event loops open.
    done = subprocess.run([sys.executable, "-c", _BUILD], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, *_ in pages] == list(METRICS)
    for name, headers, shown, clicked, said in pages:
        assert headers[0] != "1", name
        assert 0 < shown == clicked, name
        assert said, name
