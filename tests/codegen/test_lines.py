"""Lines against loops over every joint kind; what a line does not answer for, the loops do, with their errors."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.codegen import lines
from liedyn.codegen.compiled import supported
from liedyn.codegen.functions import record
from liedyn.codegen.lines import Line, build, line_of
from liedyn.dynamics import straight
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.model.cache_lines import on_cache_lines
from zoo import ROBOTS, model_of, state

FUNCTIONS = {"inverse_dynamics": ld.inverse_dynamics, "forward_dynamics": ld.forward_dynamics}
SHORT = [name for name in ROBOTS if model_of(name).nv <= 20]
LINES = pytest.mark.skipif(not supported(), reason="this LLVM cannot read the text of lines: loops are used")
FUNCTION = pytest.mark.parametrize("function", FUNCTIONS)


def inputs(model, function, count, seed=3):
    q, v, a, tau = state(model, seed, (count,))
    return q, v, a if function == "inverse_dynamics" else tau


def run(line, model, *arrays):
    count = len(arrays[0])
    out = np.full((count, model.nv), np.nan)
    scratch = on_cache_lines(-(-line.scratch // 8) * 8, make=np.empty)
    good = line.run([*(np.ascontiguousarray(x.reshape(count, -1)) for x in arrays), out], scratch, 0, count)
    return good, out


@LINES
@FUNCTION
@pytest.mark.parametrize("name", SHORT)
def test_a_line_gives_what_the_loops_give(name, function, worst):
    model = model_of(name)
    given = inputs(model, function, 21)                       # two eights, and five
    good, found = run(Line(build(record(model, function, True, False))), model, *given)
    assert good
    assert worst(f"lines against loops: {function}", relative(found, FUNCTIONS[function](model, *given)), name) < 1e-12


@LINES
@FUNCTION
@pytest.mark.parametrize("width", [2, 4, 8])
def test_every_width_gives_the_same_with_wrenches_and_without_passive_forces(function, width, worst):
    """Also wider than this processor's registers; batches that end anywhere."""
    model = model_of("every kind, floating")
    line = Line(build(record(model, function, False, True), width))
    given, F = inputs(model, function, 19), np.random.default_rng(0).standard_normal((19, len(model.link_names), 6))
    expected = FUNCTIONS[function](model, *given, f_ext=F, passive=False)
    for count in range(1, 20):
        good, found = run(line, model, *(x[:count] for x in (*given, F)))
        assert good
        assert worst(f"lines of any width: {function}", relative(found, expected[:count])) < 1e-12


@pytest.fixture
def any_batch(monkeypatch):
    """Lines for batches of any size; `taken` says whether the last call was one's."""
    taken = []

    def noted(*args):
        taken.append(straight.by_line(*args))
        return taken[-1]
    monkeypatch.setattr(straight, "FEWEST", 1)
    for module in ("inverse", "hybrid"):
        monkeypatch.setattr(f"liedyn.dynamics.{module}.FEWEST", 1)
        monkeypatch.setattr(f"liedyn.dynamics.{module}.by_line", noted)
    return taken


@LINES
@FUNCTION
def test_public_functions_take_a_line_in_parts_and_shapes(function, any_batch, monkeypatch):
    model = model_of("every kind")
    given = inputs(model, function, 101)
    monkeypatch.setattr("liedyn.dynamics.straight.chunks", lambda count, bodies: [0, 40, 80, count])
    found = FUNCTIONS[function](model, *given)
    folded = FUNCTIONS[function](model, *(x[:100].reshape(4, 25, -1) for x in given))
    assert any_batch == [True, True]
    monkeypatch.setattr(straight, "FEWEST", 1000)
    expected = FUNCTIONS[function](model, *given)
    assert any_batch == [True, True, False]
    assert relative(found, expected) < 1e-12 and relative(folded.reshape(100, -1), expected[:100]) < 1e-12


@pytest.mark.parametrize("spoil, error", [
    (lambda q, v, a: v.__setitem__((30, 2), np.nan), r"v\[2\].* of state 30 is not finite"),
    (lambda q, v, a: q.__setitem__((12, 0), np.inf), r"q\[0\].* of state 12 is not finite"),
    (lambda q, v, a: q.__setitem__((5, slice(3, 7)), 1.0), "in state 5 is not of unit norm"),
    (lambda q, v, a: a.__setitem__((7, 1), -np.inf), r"a\[1\].* of state 7 is not finite"),
    (lambda q, v, a: v.__setitem__(slice(None), 1e200), "the result is not finite"),
])
def test_bad_states_are_refused_in_the_words_of_the_loops(spoil, error, any_batch):
    model = model_of("every kind, floating")
    given = inputs(model, "inverse_dynamics", 40)
    spoil(*given)
    with pytest.raises(ld.LiedynError, match=error):
        ld.inverse_dynamics(model, *given)
    assert any_batch == [False]


def test_vanishing_inertias_are_refused_in_the_words_of_the_loops(any_batch):
    from liedyn.model.description import Joint, Link, Robot
    model = ld.build(Robot("r", (Link("a", 1.0, (0.5, 0, 0), (1.0, 0, 0, 1.0, 0, 1.0)),), (
        Joint("j", "euler", "world", "a", sequence="xyz"),)))
    q = np.tile([0.1, np.pi / 2, 0.2], (20, 1))                # gimbal lock
    with pytest.raises(ld.ComputationError, match="articulated inertia vanishes"):
        ld.forward_dynamics(model, q, 0 * q, 0 * q + 1.0)
    assert any_batch == [False]


def test_large_angles_are_left_to_the_loops(any_batch):
    """Whose sine and cosine are the C library's there."""
    model = model_of("revolute")
    q, v, a = inputs(model, "inverse_dynamics", 20)
    q[3, 0] += 2 * np.pi * 1e6
    far = ld.inverse_dynamics(model, q, v, a)
    assert any_batch == [False] and np.isfinite(far).all()


def test_an_old_llvm_leaves_all_to_the_loops(any_batch, monkeypatch):
    monkeypatch.setattr(lines, "supported", lambda: False)
    model = ld.build(ROBOTS["every kind"])
    given = inputs(model, "forward_dynamics", 20)
    a = ld.forward_dynamics(model, *given)
    assert any_batch == [False] and relative(a, ld.forward_dynamics(model_of("every kind"), *given)) < 1e-12


def test_long_lines_are_left_to_the_loops(any_batch, monkeypatch):
    model = model_of("every kind")
    monkeypatch.setattr(lines, "LONGEST", 10)
    monkeypatch.setattr(lines.code_cache, "kept", lambda *place: None)
    monkeypatch.setattr(lines.code_cache, "keep", lambda *place: None)
    monkeypatch.setitem(model._cache, "none", model._cache.get("none"))
    key = "line", "inverse_dynamics", model.has_passive_forces, False
    monkeypatch.delitem(model._cache, key, raising=False)
    inverse_dynamics(model, *inputs(model, "inverse_dynamics", 20))
    assert any_batch == [False] and model._cache[key] is None
    model._cache.pop(key)


@LINES
def test_a_line_is_kept_on_disk_and_made_again_where_it_is_damaged(monkeypatch, tmp_path):
    monkeypatch.setattr(lines.code_cache, "root", lambda: tmp_path)
    recorded = []
    monkeypatch.setattr(lines, "record", lambda *args: recorded.append(args) or record(*args))
    robot = model_of("helical").description
    given = inputs(model_of("helical"), "forward_dynamics", 9)
    results = []
    for _ in range(2):
        model = ld.build(robot)
        results.append(run(line_of(model, "forward_dynamics", True, False), model, *given)[1])
    assert len(recorded) == 1 and relative(*results) == 0.0           # the same code twice
    kept, = (path for path in tmp_path.glob("line.forward_dynamics-*/*"))
    kept.write_bytes(kept.read_bytes()[:-7])
    model = ld.build(robot)
    assert run(line_of(model, "forward_dynamics", True, False), model, *given)[0]
    assert len(recorded) == 2
