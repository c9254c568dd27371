"""The site has every command, key and public name, and every page has a place in it: checked without Sphinx."""
import importlib
import inspect
import re

import pytest
import yaml
from jsonschema import Draft202012Validator

import liedyn
from document_pages import PAGES, ROOT, anchors, blocks, name_of, outside_blocks
from liedyn.analysis.target_paths import read_tasks
from liedyn.cli.app import main
from liedyn.interop.scenario_step import step_obstacles
from liedyn.io.schema_export import KINDS, json_schema
from liedyn.report.replay.page import data_of
from liedyn.simulation.preparation import prepare

DOCS = ROOT / "docs"
SCHEMAS = {kind: Draft202012Validator(json_schema(keys)) for kind, keys in KINDS.items()}


@pytest.fixture
def made_by(monkeypatch):
    """Return the texts that the site inserts at the marks of all pages."""
    monkeypatch.syspath_prepend(str(DOCS))
    marks = importlib.import_module("site_pages.marks")
    return {name_of(page): marks.made_by(page.read_text(encoding="utf-8")) for page in PAGES}


def test_every_command_and_option_is_in_the_site(made_by):
    text = made_by["docs/reference/commands.md"]
    for name in main.list_commands(None):
        section = re.search(rf"^## {name}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[0]
        command = main.get_command(None, name)
        options = {option for one in command.params if one.param_type_name == "option" for option in one.opts}
        shown = re.findall(r"^`(-.+?)`\n: .+$", section, re.MULTILINE)
        assert max(map(len, re.search(r"```sh\n(.*?)```|$", section, re.DOTALL)[0].splitlines()), default=0) <= 88, name
        assert options <= {word for cell in shown for word in re.split(r"[, ]+", cell)}, name
        assert command.help.split("\n")[0].rstrip(".").split()[-1] in section


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_in_the_site_with_its_values(made_by, kind):
    keys_of = importlib.import_module("site_pages.keys")
    text = made_by[f"docs/reference/{kind}-keys.md"]
    _, *parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    found = keys_of.mappings(KINDS[kind])
    assert len(sections) == len(found)
    for keys in found:
        section = sections["Top level" if keys is KINDS[kind] else keys_of.heading(keys)]
        rows = dict(re.findall(r"^\| `([^`]+)` \| (.+) \| .+ \|$", section, re.MULTILINE))
        assert list(rows) == list(keys) and all(rows.values())
        for target in re.findall(r"\]\(#([^)]+)\)", section):
            assert target in {name.replace(" ", "-") for name in sections}


def test_every_public_name_is_in_the_site_and_has_a_docstring(made_by):
    text = "\n".join(made_by[name] for name in made_by if name.startswith("docs/reference/python/"))
    shown = re.findall(r"^\.\. auto(?:function|class):: (\w+)$", text, re.MULTILINE)
    assert sorted(shown) == sorted(set(liedyn.__all__) - {"__version__"})
    for name in shown:
        assert (getattr(liedyn, name).__doc__ or "").strip(), name


@pytest.mark.parametrize("page", [page for page in PAGES if DOCS in page.parents], ids=name_of)
def test_links_of_the_site_lead_to_pages_of_the_site(page, monkeypatch):
    """Sphinx accepts no link to a Markdown file outside docs/: `filled` replaces those that code hosts need."""
    monkeypatch.syspath_prepend(str(DOCS))
    marks = importlib.import_module("site_pages.marks")
    for link in re.findall(r"\]\(([^)\s#]+\.md)(?:#[^)\s]*)?\)", marks.filled(page.read_text(encoding="utf-8"))):
        target = (page.parent / link).resolve()
        assert "://" in link or (target.exists() and DOCS in target.parents), link


def test_formulas_of_all_pages_can_be_typeset(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    mathml = importlib.import_module("site_pages.formulas").mathml
    for page in PAGES[1:]:
        text = re.sub(r"`[^`\n]+`", "", outside_blocks(page))
        for block, inline in re.findall(r"\$\$(.+?)\$\$|(?<!\$)\$(\S(?:[^$\n]*\S)?)\$", text, re.DOTALL):
            assert mathml(block or inline, block=bool(block)).startswith("<math"), (name_of(page), block or inline)
        assert text.count("$$") % 2 == 0, name_of(page)


def test_links_to_public_names_lead_to_their_pages(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    subjects = importlib.import_module("site_pages.python_api").SUBJECTS
    links = [(name_of(page), *link) for page in PAGES[1:]
             for link in re.findall(r"\[`?(\w+)`?\]\([./\w]*reference/python/([\w-]+)\.md\)", page.read_text(encoding="utf-8"))]
    wrong = [link for link in links if link[1] in liedyn.__all__ and link[1] not in subjects[link[2].replace("-", " ")]]
    assert len(links) > 300 and not wrong


def test_clips_of_the_gallery_exist_with_their_scenarios(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    gallery = importlib.import_module("site_pages.gallery")
    names = {clip.name for clip in gallery.GALLERY}
    assert {path.stem for path in gallery.CLIPS.iterdir()} == names
    assert all((ROOT / "configs" / f"{clip.name}.yaml").exists() and (DOCS / clip.page).exists() for clip in gallery.GALLERY)
    assert sum(path.stat().st_size for path in gallery.CLIPS.iterdir()) < 1_000_000


def test_clips_whose_scenarios_can_be_simulated_in_a_browser_have_live_pages(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    gallery = importlib.import_module("site_pages.gallery")
    clips = [clip._replace(speed=0.5) for clip in gallery.GALLERY if clip.name in ("cart_pole", "delta_computed_torque")]
    gallery.write_live_pages(tmp_path, clips)
    assert [path.name for path in tmp_path.iterdir()] == ["cart_pole.html"]
    assert data_of((tmp_path / "cart_pole.html").read_text(encoding="utf-8"))["speed"] == 0.5
    page = gallery.gallery_page()
    assert page.count("<video") == len(gallery.GALLERY) and page.count('data-live="_static/live/') == len(gallery.GALLERY) - 1
    script = (DOCS / "site_pages/static/gallery.js").read_text(encoding="utf-8")
    assert "video[data-live]" in script and "#embedded&" in script
    for clip in gallery.GALLERY:                            # those that a step can contain, and no others
        run = prepare(ROOT / f"configs/{clip.name}.yaml", ("integrator={method: rk4, step: 0.001}", *(clip.live or ())))
        obstacles = [part for part, is_used, *_ in step_obstacles(run) if is_used]
        assert obstacles == ([] if clip.live is not None else ["a law that computes with loops"]), clip.name


def test_equations_of_docstrings_are_those_of_the_code_and_can_be_typeset(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    equations, formulas = (importlib.import_module(f"site_pages.{name}") for name in ("equations", "formulas"))
    public = [getattr(liedyn, name) for name in liedyn.__all__]
    texts = " ".join(" ".join((inspect.getdoc(one) or "").split()) for one in public)
    for text, tex in equations.EQUATIONS.items():
        assert text in texts, text
        assert formulas.mathml(tex).startswith("<math"), tex
    assert equations.typeset("of ``M a +\n  b = tau``.") == r"of :math:`M a + b = \tau`."


def test_api_pages_say_what_each_error_is_raised_for(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    docstrings = importlib.import_module("site_pages.docstrings")
    lines = docstrings.as_rst("function", ["Raises", "------", "ShapeError, ModelError", "UsageError", "    For a reason.", ""])
    assert lines[2:] == ["ShapeError", f"    {docstrings.reason('ShapeError')}", "ModelError",
                         f"    {docstrings.reason('ModelError')}", "UsageError", "    For a reason.", ""]


def test_examples_of_docstrings_are_not_changed_and_names_of_pages_are_links(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    docstrings = importlib.import_module("site_pages.docstrings")
    example = [">>> print(error)", "ModelError 3: a_b", ""]
    assert docstrings.as_rst("class", [*example, "ModelError: see docs/how-to/moves.md#python."])[:4] == [
        *example, "`ModelError`: see :doc:`/how-to/moves`."]
    assert docstrings.as_rst("function", ["v, a : Model or Link", "model : `Model`"]) == [
        "v, a : `Model` or `Link`", "model : `Model`"]


def test_constructors_of_errors_and_results_are_not_in_the_site(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    is_noise = importlib.import_module("site_pages.docstrings").is_noise
    assert is_noise("__init__", liedyn.InputError.__init__) and is_noise("__init__", liedyn.LiedynError.__init__)
    assert is_noise("__new__", liedyn.InverseDerivatives.__new__) and is_noise("dq", liedyn.RecordedMotion.q)
    assert not is_noise("__init__", liedyn.Link.__init__) and not is_noise("save", liedyn.Trajectory.save)


def test_the_site_fetches_nothing(made_by):
    """Neither the styles nor the HTML within pages name another host."""
    for style in (DOCS / "site_pages/static").glob("*.css"):
        assert not re.search(r"//|@import", re.sub(r"/\*.*?\*/", "", style.read_text(encoding="utf-8"), flags=re.DOTALL))
    for page in PAGES[1:]:
        text = outside_blocks(page) + made_by[name_of(page)]
        assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//|!\[[^\]]*\]\(https?:""", text), name_of(page)


def test_an_index_of_a_letter_with_an_accent_is_beside_it(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    mathml = importlib.import_module("site_pages.formulas").mathml
    drawn = mathml(r"\hat I_i = \ddot{q}_j")
    assert drawn.count("<msub>") == 2 and "munder" not in drawn


def test_every_page_has_one_place_in_the_site():
    placed = []
    for page in PAGES[1:]:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            entries = [(page.parent / line).resolve() for line in block.split() if not line.startswith(":")]
            placed += [entry.with_name(f"{entry.name}.md") for entry in entries]
    assert sorted(placed) == sorted(page for page in PAGES[1:] if page != DOCS / "index.md")


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.language == "yaml" for block in blocks(page))], ids=name_of)
def test_yaml_is_valid_for_a_kind_of_file(page, tmp_path):
    """A document may show a part of a file: the required keys are added."""
    for block in (block for block in blocks(page) if block.language == "yaml"):
        given = yaml.safe_load(block.text)
        if isinstance(given, list):                         # tasks of inverse kinematics
            (tmp_path / "tasks.yaml").write_text(block.text)
            assert len(read_tasks(tmp_path / "tasks.yaml")) == len(given)
            continue
        added = {"scenario": {"robot": "a", "duration": 1}, "robot": {"links": {}}, "loops": {}, "columns": {},
                 "sweep": {"parameters": [{"key": "a", "list": [1]}]} | ({} if "job" in given else {"scenario": "a"})}
        assert any(schema.is_valid(added[kind] | given) for kind, schema in SCHEMAS.items()), block.text


def test_places_that_errors_and_docstrings_name_exist():
    named = set()
    for source in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"docs/([\w/-]+\.md)(?:#([\w-]+))?", source.read_text(encoding="utf-8")))
    assert len([anchor for _, anchor in named if anchor]) >= 4
    for page, anchor in named:
        assert (DOCS / page).exists(), page
        assert not anchor or anchor in anchors(DOCS / page), f"{page}#{anchor}"


def test_blocks_that_are_not_run_have_a_reason():
    reasons = [block.not_run for page in PAGES for block in blocks(page) if block.not_run is not None]
    assert all(len(reason.split()) > 2 for reason in reasons) and len(reasons) < 12
    required = {block.requires for page in PAGES for block in blocks(page)}
    # too large for `make test`; pyopencl: its driver is no package of Python
    assert required == {None, "pydrake", "exudyn", "pyopencl"}
