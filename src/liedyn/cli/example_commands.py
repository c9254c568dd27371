"""The commands `demo` and `examples`: examples that the package contains."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

import click

from liedyn.cli.console import Console, with_console
from liedyn.cli.options import force_option, json_option
from liedyn.io.example_files import DEMOS


@click.command(short_help="Run an example and open its 3D view in the browser.")
@click.argument("name", required=False, type=click.Choice(list(DEMOS)), metavar="[NAME]")
@click.option("-o", "--output", type=click.Path(), metavar="FOLDER", help="Run folder to write. Default: runs/demo_NAME.")
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@with_console(force_option, json_option)
def demo(name: str | None, output: str | None, no_open: bool, force: bool, as_json: bool, console: Console) -> None:
    """Simulate the example NAME, and open its motion in 3D in the browser. Without NAME, list the examples.

    No files are needed. A demonstration that was computed before is only opened; --force computes it again. The first run of
    `arm`, `pendulum` and `racket` takes less than ten seconds, that of the others up to half a minute.

    \b
    Examples:
      liedyn demo
      liedyn demo arm
          # writes runs/demo_arm/: trajectory.csv, run.json, replay.html
    """
    from liedyn.io.atomic_output import check_folder
    from liedyn.io.example_files import demo_file, title_of

    if name is None:
        titles = {each: title_of(demo_file(each)) for each in DEMOS}
        console.report(as_json, titles, "\n".join(f"{each:10s} {title}" for each, title in titles.items()))
        return
    folder = Path(output or Path("runs", f"demo_{name}"))
    page = folder / "replay.html"
    if page.is_file() and not force:
        console.message(f"{folder} already exists; --force runs the example again")
        if as_json:
            console.result((folder / "run.json").read_text(encoding="utf-8").rstrip())
    else:
        check_folder(folder, mark="run.json", force=force)
        _compute(demo_file(name), folder, force, as_json, console)
    console.open_page(page, no_open=no_open)


def _compute(scenario: Path, folder: Path, force: bool, as_json: bool, console: Console) -> None:
    from liedyn.report.run_folder import write_replay, write_run
    from liedyn.simulation.run import simulate_file

    result = simulate_file(scenario, [], console.progress)
    with console.progress.stage("writing results"):             # without plots: 2 s of CPU time at the first run
        written = write_run(result, folder, force=force, plots=False) + write_replay(result, folder)
    console.run(result, None, written, folder, as_json)
    console.message(f"`liedyn plot {folder / 'trajectory.csv'}` draws plots of the run")


def _by_folder(titles: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a list of files with their titles, below the names of their folders."""
    from liedyn.report.robot_summary import WIDTH, table

    for folder, paths in groupby(titles, lambda path: path.rpartition("/")[0]):
        yield f"{folder}/"
        rows = [[path.rpartition("/")[2], titles[path]] for path in paths]
        yield from (f"  {line}" for line in table(rows, range(2), WIDTH - 2))


@click.command(short_help="List the example files, or copy them into a folder.")
@click.option("--copy", "folder", type=click.Path(), metavar="FOLDER",
              help="Folder to copy robots/, configs/ and notebooks/ into.")
@with_console(force_option, json_option)
def examples(folder: str | None, force: bool, as_json: bool, console: Console) -> None:
    """List the example files that the package contains: robots, scenarios, scripts and notebooks. --copy writes them into FOLDER.

    All commands of the documentation run in this folder.

    \b
    Examples:
      liedyn examples --copy .
      liedyn simulate configs/panda_hybrid.yaml
    """
    from liedyn.io.example_files import copy_examples, example_files, examples_root, title_of

    if folder is None:
        titles = {path.as_posix(): title_of(examples_root() / path) for path in example_files()}
        console.report(as_json, titles, "\n".join(_by_folder(titles)))
        return
    paths = copy_examples(folder, force=force)
    if as_json:
        console.result_json([path.as_posix() for path in paths])
    console.message(f"wrote {len(paths)} files to " + ", ".join(str(path) for path in sorted({Path(folder, path.relative_to(
        folder).parts[0]) for path in paths})))
