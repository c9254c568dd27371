"""What pyproject.toml cannot state: example files in the package, and a long description whose links work everywhere."""
import re
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {}).get("Source", "")
EXAMPLES = "robots", "configs", "notebooks"     # folders at the top level of the repository, liedyn/examples/… in a wheel


class BuildWithExamples(build_py):
    """Copy the folders of examples into the package."""

    def run(self):                                          # noqa: D102
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "liedyn", "examples")
        shutil.rmtree(target, ignore_errors=True)               # files of an earlier build
        for name in EXAMPLES:
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))


def long_description() -> str:
    """The README with absolute links to `Source`. Without it, links to files are text, and pictures are left out."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if SOURCE:
        return re.sub(r"\]\((?!\w+:|#)([^)\s]+)\)", lambda link: f"]({SOURCE.rstrip('/')}/{_view(link[1])}/HEAD/{link[1]})", text)
    text = re.sub(r"^!\[[^\]]*\]\((?!\w+:)[^)]+\)\n+", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((?!\w+:|#)[^)\s]+\)", r"\1", text)


def _view(path: str) -> str:
    return "raw" if path.endswith((".png", ".svg", ".gif")) else "blob"


setup(long_description=long_description(), long_description_content_type="text/markdown",
      cmdclass={"build_py": BuildWithExamples})
