"""Under the roof of another harness: this package's engine as a model of lm_eval, and its tasks before and after edits.

Modules of this room import the harness that they belong to, which the extra `harness` installs.
"""
