"""What a notebook shows: IPython runs cells, and its output is compared."""
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


@pytest.fixture(scope="module")
def shell():
    shell = InteractiveShell()
    shell.run_cell("import numpy as np\nimport liedyn as ld\nmodel = ld.load('robots/double_pendulum.yaml')")
    yield shell
    InteractiveShell.clear_instance()


def printed(shell, cell: str) -> str:
    with capture_output() as captured:
        shell.run_cell(cell, store_history=True)
    return captured.stdout


def formats(shell, expression: str) -> dict:
    """Formats in which a notebook gets a value."""
    return shell.display_formatter.format(shell.ev(expression))[0]


@pytest.mark.parametrize(("cell", "message"), [
    ("ld.mass_matrix(model, [0.1])", "ShapeError: q has the wrong shape: expected (…, 2), got (1,)"),
    ("ld.mass_matrix('robots/double_pendulum.yaml', [0.1])", "ArgumentError: mass_matrix: model must be a Model"),
    ("ld.load('robots/nothing.yaml')", "ModelError: robots/nothing.yaml: no such file"),
    ("ld.Joint('j', 'revolut', 'world', 'a', damping=1)", 'ModelError: joint "j", type: unknown joint type'),
    ("ld.build(ld.Robot('r', [ld.Link('a', com=[0, 1])]))", 'ModelError: link "a", com: wrong centre of mass'),
    ("ld.simulate(model, duration=-1)", "ScenarioError: "),
])
def test_an_error_shows_the_line_of_the_cell_and_the_message(shell, cell, message):
    text = printed(shell, f"x = 1\n{cell}")
    assert message in text and f", line 2: {cell}" in text and "Cell In[" in text
    assert len(text.strip().splitlines()) == 2 and "site-packages" not in text


def test_an_error_in_a_function_of_the_user_shows_both(shell):
    """The line of the call and that of the cause, and no line of the package."""
    text = printed(shell, "def law(t, q, v):\n    return {'elbow': 1 / 0}\n\n"
                          "run = ld.simulate(model, duration=1, tau=law, rate=100)")
    lines = text.strip().splitlines()
    assert "return {'elbow': 1 / 0}" in text and "run = ld.simulate" in text and "ComputationError: " in lines[-1]
    assert any(line.startswith("ZeroDivisionError") for line in lines) and len(lines) <= 6


def test_other_errors_have_their_traceback(shell):
    assert "Traceback (most recent call last)" in printed(shell, "1 / 0")


def test_models_results_rollouts_and_figures_display_themselves(shell):
    shell.run_cell("run = ld.simulate(model, duration=0.1)\nruns = ld.rollout(model, [[0.1, 0.2]], [0, 0], dt=1e-3, steps=3)")
    assert "<details" in formats(shell, "model")["text/html"]
    assert "<iframe" in formats(shell, "run")["text/html"] and "<iframe" in formats(shell, "runs")["text/html"]
    for figure in ("run.plot('torques')", "runs.plot()", "ld.figure_of(run, 'energy')"):
        assert formats(shell, figure)["image/png"][:4] in (b"\x89PNG", "iVBO")
