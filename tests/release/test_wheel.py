"""The sdist and the wheel: their files and metadata, and the commands of an installed wheel outside the repository.

`make test-wheel` installs the wheel with its requirements from the registry, and runs the commands of the README there."""
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import liedyn

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md")
FOLDERS = ("src/liedyn", "robots", "configs", "notebooks")
NOT_PACKED = shutil.ignore_patterns("__pycache__", "prebuilt", ".*")
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("PYTHONPATH", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}


def python(*arguments, folder: Path, executable: str | Path = sys.executable, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(executable), *map(str, arguments)], cwd=folder, env=ENVIRONMENT | environment, text=True,
                          capture_output=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """The folder with the sdist, and the wheel that was built from it."""
    root = tmp_path_factory.mktemp("sources")
    for name in FILES:
        shutil.copy(ROOT / name, root)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, root / name, ignore=NOT_PACKED)
    done = python("-m", "build", "--no-isolation", "--outdir", root / "dist", root, folder=root)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def wheel(dist) -> zipfile.ZipFile:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as file:
        yield file


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory) -> Path:
    """The Python of a new environment that has the wheel, and the packages of this one except for its liedyn."""
    folder = tmp_path_factory.mktemp("environment")
    done = python("-m", "venv", "--without-pip", folder, folder=folder)
    assert done.returncode == 0, done.stderr
    executable = next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists())
    place = Path(python("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder,
                        executable=executable).stdout.strip())
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as file:
        file.extractall(place)
    packages = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    others = [path for path in sys.path if path.endswith("site-packages") and path not in packages]
    # a .pth file in these, such as that of an editable liedyn, is not read
    (place / "others.pth").write_text("\n".join((*packages, *others)) + "\n", encoding="utf-8")
    return executable


def test_the_metadata_is_valid_and_complete(dist, wheel):
    done = python("-m", "twine", "check", "--strict", *dist.iterdir(), folder=dist)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr
    meta = message_from_bytes(wheel.read(f"liedyn-{liedyn.__version__}.dist-info/METADATA"))
    assert meta["Version"] == liedyn.__version__ and meta["License-Expression"] == "MIT" and meta["Author"] and meta["Keywords"]
    pythons = {name.rpartition(" ")[2] for name in meta.get_all("Classifier") if re.search(r":: 3\.\d+$", name)}
    assert pythons == {"3.11", "3.12", "3.13", "3.14"}


def test_links_of_the_long_description_lead_out_of_the_repository(wheel, tmp_path):
    """Without an address of the repository, there are no links to its files, and no plots; with it, all have it."""
    local = re.compile(r"\]\((?!\w+:|#)[^)]+\)")
    text = message_from_bytes(wheel.read(f"liedyn-{liedyn.__version__}.dist-info/METADATA")).get_payload()
    assert text.lstrip().startswith("# liedyn") and local.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert not local.search(text)
    for name in ("setup.py", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    if "Source" not in PROJECT.get("urls", {}):
        pyproject = pyproject.replace("\n[project.urls]\n", '\n[project.urls]\nSource = "https://host.example/liedyn"\n')
    (tmp_path / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    (tmp_path / "src" / "liedyn").mkdir(parents=True)
    shutil.copy(ROOT / "src" / "liedyn" / "__init__.py", tmp_path / "src" / "liedyn")
    done = python("setup.py", "--long-description", folder=tmp_path)
    assert not local.search(done.stdout), done.stderr
    assert re.search(r"\]\(https://[^)]+/raw/HEAD/docs/[\w-]+\.png\)", done.stdout)
    assert re.search(r"\]\(https://[^)]+/blob/HEAD/docs/[\w-]+\.md\)", done.stdout)


def test_the_wheel_has_the_files_of_the_package_and_the_examples_and_no_others(wheel):
    expected = {path.relative_to(ROOT / "src").as_posix(): path for path in (ROOT / "src" / "liedyn").rglob("*")}
    for folder in ("robots", "configs", "notebooks"):
        expected |= {f"liedyn/examples/{path.relative_to(ROOT).as_posix()}": path for path in (ROOT / folder).rglob("*")}
    expected = {name: path for name, path in expected.items()
                if path.is_file() and not re.search(r"__pycache__|liedyn/prebuilt/|/\.", name)}
    packed = {name for name in wheel.namelist() if not name.startswith("liedyn-") and not name.endswith("/")}
    assert packed == set(expected)
    assert all(wheel.read(name) == path.read_bytes() for name, path in expected.items())


def test_the_sdist_has_what_a_build_needs(dist):
    with tarfile.open(next(dist.glob("*.tar.gz"))) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert names >= {*FILES, "src/liedyn/__init__.pyi", "robots/panda.yaml", "configs/panda_hybrid.yaml"}
    assert not any(name.startswith(("tests", "docs", "runs", "build", ".")) for name in names)


def test_the_package_imports_only_what_its_metadata_requires():
    """Also in functions: packages of the extras."""
    extras = PROJECT["optional-dependencies"]
    required = {re.match(r"[\w.-]+", text)[0].lower() for text in
                (*PROJECT["dependencies"], *(text for name in extras if name not in ("test", "docs") for text in extras[name]))}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    statement = r"^ *(?:import (?=\w+(?:\.|$| as |,))|from (?=\w+(?: import |\.)))([a-zA-Z_]\w*)"
    imported = set(re.findall(statement, sources, re.MULTILINE))
    imported -= {"liedyn", *sys.stdlib_module_names}
    owners = packages_distributions()
    packages = {name: {owner.lower() for owner in (*owners.get(name, []), name.replace("_", "-"))} for name in imported}
    missing = {name for name in imported if not packages[name] & required}
    assert imported > {"numpy", "trimesh", "pandas"}
    # two that errors name where they are needed; a part of xacrodoc; and, where it is not installed, that of cuda-bindings
    assert missing - {"cuda"} == {"imageio_ffmpeg", "pandas", "xacro"}


def test_commands_of_an_installed_wheel_need_no_repository(installed, tmp_path):
    def liedyn_command(*arguments):
        return python("-P", "-c", "from liedyn.cli.app import main; main(prog_name='liedyn')", *arguments, folder=tmp_path,
                      executable=installed)

    place = python("-P", "-c", "import liedyn; print(liedyn.__file__)", folder=tmp_path, executable=installed).stdout
    assert Path(place.strip()).is_relative_to(installed.parents[1])
    assert liedyn_command("--version").stdout == f"liedyn {liedyn.__version__}\n"
    demo = liedyn_command("demo", "pendulum", "--no-open")
    assert demo.returncode == 0, demo.stderr
    assert "open runs" in demo.stderr and (tmp_path / "runs" / "demo_pendulum" / "replay.html").stat().st_size > 10_000
    missing = liedyn_command("simulate", "configs/double_pendulum.yaml")
    assert missing.returncode == 2 and "liedyn examples --copy ." in missing.stderr
    assert liedyn_command("examples", "--copy", ".").returncode == 0
    done = liedyn_command("simulate", "configs/double_pendulum.yaml", "--dry-run", "-o", "plan")
    assert done.returncode == 0, done.stderr
