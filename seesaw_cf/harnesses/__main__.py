"""The command of lm_eval, which knows the model `seesaw` then: `python -m seesaw_cf.harnesses run --model seesaw ...`.

Releases after 0.4.13 find the model by its entry point and need no such command.
"""

from lm_eval.__main__ import cli_evaluate

import seesaw_cf.harnesses.lm_eval_model  # noqa: F401  it registers the model

cli_evaluate()
