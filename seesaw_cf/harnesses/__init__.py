"""Under the roofs of other harnesses: this package's engine as a model of lm_eval, its records as tasks of inspect_ai.

Modules of this room import the harness that they belong to, which the extra `harness` installs.
"""
