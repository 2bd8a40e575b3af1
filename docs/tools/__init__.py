"""Pages of the site that are made from the code. `mkdocs.yml` names `hooks.py`; nothing here is in the package."""
