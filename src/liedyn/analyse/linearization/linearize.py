"""Linearization of a robot, or of a scenario at a time or at rest, in tangent coordinates."""
from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from liedyn.analyse.linearization.equilibrium import held, settle
from liedyn.analyse.linearization.independent import chart
from liedyn.analyse.linearization.instant import Instant, Setup, completed, frozen, instant, prepare, state_at
from liedyn.analyse.linearization.linear_system import LinearSystem
from liedyn.analyse.linearization.system_at import linear_system
from liedyn.analyse.linearization.tangent_system import refuse_unmatched, tangent_system
from liedyn.code_cache import FIRST_RUN
from liedyn.dynamics.calling.annotations import Array, ArrayLike, Wrenches
from liedyn.dynamics.calling.arguments import as_array, wrenches
from liedyn.dynamics.loops.constraints import constraint_residual, constraint_velocity
from liedyn.dynamics.loops.rank import row_scale, size_of_rates
from liedyn.errors import ComputationError, ShapeError, warn
from liedyn.immutable import Immutable
from liedyn.io.override import Overrides
from liedyn.io.scenarios.scenario import Scenario
from liedyn.loading import findings_note
from liedyn.model.model import Model
from liedyn.simulation.control_laws.feedback import friction_note
from liedyn.simulation.extrapolation import Compared

_CLOSED = 1e-7       # rad or lengths of the loop; of velocities, of the largest: a state off its constraints by less is closed


@dataclass(frozen=True, eq=False)
class Linearization(Immutable):
    """A scenario, linearized.

    here          the instant: t, q, v, a, tau, external wrenches
    system        the linear system; step [s], Ad, Bd: its discretization
    offset        {input: value} that an equilibrium needs besides what the scenario gives; None without `equilibrium`
    differences   {matrix: how it compares with extrapolated differences}; None without `verify`
    """

    scenario: Scenario
    model: Model
    here: Instant
    system: LinearSystem
    step: float
    Ad: Array
    Bd: Array
    offset: dict[str, float] | None = None
    differences: dict[str, Compared] | None = None
    notes: tuple[str, ...] = ()
    timing: dict[str, float] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"<Linearization {self.model.name}: t = {self.here.t:g} s, step {self.step:g} s; system: {self.system!r}>"


def linearize(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, a: ArrayLike | None = None,
              prescribed: ArrayLike | None = None, f_ext: Wrenches | None = None, passive: bool = True,
              inputs: str | Sequence[str] = "*", outputs: str | Sequence[str] = "q.*", independent: str | Sequence[str] = (),
              drive: Mapping[str, Any] | None = None) -> LinearSystem:
    """Linear system of small deviations from a motion. Forces, external wrenches in local frames, and accelerations of
    prescribed coordinates are constant except for the inputs.

    Parameters
    ----------
    model : Model
    q : (nq,) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v, tau : (nv,) arrays
        Joint velocity [rad/s | m/s] and force [N m | N], read where not prescribed.
    a : (nv,) array, optional
        Acceleration, read where prescribed.
    prescribed : (nv,) bool array, optional
        Coordinates whose acceleration is the input; default: none.
    f_ext, passive
        As in `forward_dynamics`.
    inputs, outputs : names or patterns, one or several
        Inputs are tau.<coordinate>, a.<coordinate> (where prescribed), thrust.<actuator>; outputs are q.…, v.…, a.…,
        tau.<coordinate> and p.<link>.x, .y, .z (a link's origin in the world).
    independent : names or patterns, one or several
        For a model with constraints: coordinates to use as states. Prescribed ones are always used; others are chosen.
    drive : {closure name: (T, V, dV)}, optional
        Motion of driven loops, see `constraint_residual`.

    Returns
    -------
    LinearSystem
        States q.<coordinate> (tangent: rotation [rad] and translation [m] in the body frame for ball and free joints), then v;
        with constraints those of independent coordinates.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError
        Also if q or v violate the constraints.
    ModelError
        For a robot without a moving joint.
    UsageError
        For a pattern that matches nothing.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.linearize(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    <LinearSystem, neutral: 4 states q.shoulder, q.elbow, v.shoulder, v.elbow; 2 inputs tau.shoulder, ...
    """
    nv = model.nv
    prescribed = np.zeros(nv, dtype=bool) if prescribed is None else np.asarray(prescribed)
    if a is None and prescribed.any():
        raise ShapeError("a is missing: prescribed coordinates need their acceleration")
    q, v, tau = as_array(q, "q", (model.nq,)), as_array(v, "v", (nv,)), as_array(tau, "tau", (nv,))
    for name, x in (("q", q), ("v", v), ("tau", tau)):
        if x.ndim != 1:
            raise ShapeError(f"a single state is expected; found {name} of shape {x.shape}")
    _refuse_open(model, q, v, drive)
    a, tau = completed(model, q, v, np.zeros(nv) if a is None else a, tau, prescribed, f_ext, passive, drive)
    chosen = chart(model, q, v, prescribed, drive, independent)
    here = Instant(0.0, q, v, a, tau, wrenches(model, f_ext), *np.zeros((2, nv)))
    none = np.zeros((nv, 2 * nv))
    return tangent_system(model, here, prescribed, passive, none, none, inputs, outputs, chosen, drive)


def _refuse_open(model, q, v, drive) -> None:
    if not model.nc:
        return
    for what, x, size, mend in (
            ("q", constraint_residual(model, q, drive=drive), 1.0, "project_configuration or assemble"),
            ("v", constraint_velocity(model, q, v, drive=drive), size_of_rates(model, v, 1), "project_velocity")):
        off = row_scale(model) * np.abs(x)
        r = int(np.argmax(off))
        if not off[r] <= _CLOSED * size:
            raise ComputationError(f"{what} violates the constraints: the residual of {model.row_names[r]} is {abs(x[r]):.3g} "
                                   f"({mend} corrects it)")


def linearize_scenario(path: str | os.PathLike[str] | Mapping[str, Any], *, at: float = 0.0, equilibrium: bool = False,
                       hold: str | Sequence[str] = (), open_loop: bool = False, step: float | None = None,
                       inputs: str | Sequence[str] = "*", outputs: str | Sequence[str] | None = None,
                       independent: str | Sequence[str] = (), verify: bool = False, overrides: Overrides = (),
                       strict: bool = False, progress: Any | None = None) -> Linearization:
    """Linearize a scenario file, or a robot file with defaults, at a time of its motion or about an equilibrium.

    Parameters
    ----------
    path : path or mapping
        A scenario YAML, robot YAML or URDF; or the keys of a scenario as a dict.
    at : float
        Time [s] up to which the scenario is simulated; the system is that of the phase, locked joints and attached bodies then.
    equilibrium : bool
        Linearize about an equilibrium near the state at that time (`find_equilibrium`).
    hold : names or patterns, one or several
        With `equilibrium`: joints to hold in place by a force to be found, actuators whose thrust is to be found.
    open_loop : bool
        Omit the state feedback of torques, PD and PID laws, wrenches and thrusts. Integrals of PID laws, states z.<coordinate>
        [N m | N], go on summing the errors.
    step : float, optional
        Time step of the discretization [s]; default: the scenario's output_step.
    inputs, outputs, independent
        As for `linearize`. Default outputs: q.* and the forces of prescribed joints.
    verify : bool
        Compare with extrapolated finite differences of the right-hand side.
    overrides, strict
        As for `run_scenario`.
    progress : optional
        An object with `stage(text)`, a context, and `update(fraction)`.

    Returns
    -------
    Linearization

    Raises
    ------
    ScenarioError, ModelError, TrajectoryError, UsageError
        UsageError also if an event ends the run before `at`, or a joint rests at a hard stop then.
    ComputationError
        If the simulation fails before `at`, a force has no derivative, or no equilibrium is found.

    Examples
    --------
    >>> found = ld.linearize_scenario("configs/cart_pole.yaml", equilibrium=True)
    >>> found.system.states, found.system.stability
    (('q.cart', 'q.pole', 'v.cart', 'v.pole'), 'stable')
    """
    from liedyn.analyse.linearization.verify_linear import differences
    from liedyn.simulation.run import Silent

    progress, began = progress or Silent(), time.perf_counter()
    setup = prepare(path, overrides, strict)
    offset, u = None, None
    if not setup.scenario.events:                            # else what is prescribed depends on the time
        refuse_unmatched(setup.model, setup.prescribed, inputs, _default_outputs(setup) if outputs is None else outputs)
        if equilibrium:
            held(setup, hold)
    with progress.stage(f"simulating up to the instant ({FIRST_RUN})"):
        setup, t, q, v = state_at(setup, float(at), progress.update)
    notes, outputs = list(setup.notes), _default_outputs(setup) if outputs is None else outputs
    if equilibrium:
        with progress.stage(f"looking for an equilibrium ({FIRST_RUN})"):
            found = settle(setup, t, q, v, hold)
        q, v, u, offset = found.q, np.zeros(setup.model.nv), found.u, found.offset
        notes, setup = [*notes, *found.notes], replace(setup, integral=found.integral)
    with progress.stage(f"linearizing ({FIRST_RUN})"):
        z = setup.integral
        rest = frozen(setup.problem, instant(setup.problem, t, q, v, None, z), rest=equilibrium)
        here = instant(rest, t, q, v, u, z)
        if open_loop:
            rest = frozen(rest, instant(rest, t, q, v, None, z), laws=False)
        system = linear_system(setup, rest, here, inputs, outputs, independent=independent, acting=not open_loop)
        step = setup.scenario.output_step if step is None else float(step)
        Ad, Bd = system.discretize(step)
        notes += friction_note(setup.model, here.v) if setup.scenario.passive else []
    done, compared = time.perf_counter(), None
    if verify:
        with progress.stage("comparing with differences"):
            compared = differences(rest, here, u, system, progress.update, not open_loop)
    timing = {"linearize": done - began, "verify": time.perf_counter() - done}
    warn((*findings_note(setup.model), *notes))
    return Linearization(setup.scenario, setup.model, here, system, step, Ad, Bd, offset, compared, tuple(notes), timing)


def _default_outputs(setup: Setup) -> list[str]:
    return ["q.*", *(f"tau.{name}" for name, p in zip(setup.model.v_names, setup.prescribed, strict=True) if p)]
