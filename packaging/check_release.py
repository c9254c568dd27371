"""List what a person must still do before this version can be published: `make release-check`.

TAG, such as v0.2.0, must name the version.
"""
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    missing = problems(ROOT, sys.argv[1] if sys.argv[1:] else "")
    if status:
        missing.append("uncommitted changes")
    print("\n".join(f"missing: {text}" for text in missing) or "ready to be published")
    return 1 if missing else 0


def problems(root: Path, tag: str = "") -> list[str]:
    """What is missing in the files."""
    version = version_of(root)
    found = []
    if tag and tag != f"v{version}":
        found.append(f"the tag {tag} is not that of the version {version} in src/liedyn/__init__.py")
    source = tomllib.loads(_text(root, "pyproject.toml"))["project"].get("urls", {}).get("Source", "")
    if not source.startswith("https://"):
        found.append("pyproject.toml: [project.urls] has no Source, the address of the repository")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", _text(root, "CHANGELOG.md"), re.MULTILINE):
        found.append(f"CHANGELOG.md: no heading `## [{version}] - YYYY-MM-DD`")
    citation = _text(root, "CITATION.cff")
    if not re.search(rf"^version: {re.escape(version)}$", citation, re.MULTILINE):
        found.append(f"CITATION.cff: the version is not {version}")
    if not re.search(r"^date-released: \d{4}-\d\d-\d\d$", citation, re.MULTILINE):
        found.append("CITATION.cff: no line `date-released: YYYY-MM-DD`")
    return found


def version_of(root: Path) -> str:
    return re.search(r'^__version__ = "(.+)"$', _text(root, "src/liedyn/__init__.py"), re.MULTILINE)[1]


def _text(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
