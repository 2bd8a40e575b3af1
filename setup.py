"""What setup.cfg cannot say: packages of four folders, and a README whose links work where an index shows it."""

import re
from pathlib import Path

from setuptools import find_packages, setup

# Folders that install below `seesaw_cf`, where links of the same names make their long names work in a checkout.
FOLDERS = ("editors", "metrics", "builder_scripts")
# A placeholder: the project has no public address yet.
SOURCE = "https://example.org/seesaw_cf"


def absolute(readme: str) -> str:
    """Return Markdown with its relative links and pictures below `SOURCE`."""
    return re.sub(r"(\]\(|src=\")(?!\w+:|#)", rf"\g<1>{SOURCE}/", readme)


packages = {*find_packages(include=["seesaw_cf", "seesaw_cf.*"])}
packages |= {f"seesaw_cf.{name}" for folder in FOLDERS for name in find_packages(include=[folder, f"{folder}.*"])}
# A folder of a metric is what `evaluate.load` takes, a file of its own name.
packages |= {f"seesaw_cf.metrics.{file.parent.name}" for file in Path("metrics").glob("*/*.py")}
setup(
    packages=sorted(packages),
    package_dir={"seesaw_cf": "seesaw_cf", **{f"seesaw_cf.{folder}": folder for folder in FOLDERS}},
    long_description=absolute(Path(__file__).with_name("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    url=SOURCE,
)
