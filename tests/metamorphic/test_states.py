"""One state alone, in batches, moved by rounding, written otherwise; and generated code against generic kernels."""
from functools import partial

import numpy as np
import pytest

import liedyn as ld
from metamorphic.mechanisms import MECHANISMS, SEED, State, state_of
from metamorphic.observables import observables, outcome, within

# Batches and generated code compute the same in another order: rounding times the condition of M, up to 1e4, relative to the
# largest number of a result.
TOLERANCE = 1e-9
# A state moved by d changes results by about d times their derivatives, which are of the order of the condition.
SENSITIVITY = 1e5
agree = partial(within, tolerance=TOLERANCE)
BATCHED = ("inverse_dynamics", "forward_dynamics", "bias_force", "gravity_force", "mass_matrix", "inverse_mass_matrix",
           "centre_of_mass", "link_pose", "link_twist", "jacobian", "coriolis_matrix", "mass_matrix_rate", "project_velocity",
           "constrained_forward_dynamics", "energy:kinetic")
EVERY = pytest.mark.parametrize("name", MECHANISMS)


def results(model, state, names=None) -> dict[str, np.ndarray | str]:
    link = model.link_names[-1]
    return {name: outcome(one, model, state, link) for name, one in observables(model).items()
            if names is None or name in names}


@pytest.mark.parametrize("size", [2, 9])
@EVERY
def test_results_do_not_depend_on_other_states_of_a_batch(name, size):
    mechanism = MECHANISMS[name]()
    model = ld.build(mechanism.robot)
    here, rng = state_of(mechanism, model), np.random.default_rng([SEED, size])
    place = int(rng.integers(size))
    many = [np.repeat(x[None], size, axis=0) for x in here[:4]]
    if mechanism.q is None:
        many[0] = ld.random_configuration(model, rng, size)
        many[0][place] = here.q
    for k, x in enumerate(many[1:], 1):
        x *= rng.uniform(-2, 2, (size, 1))
        x[place] = here[k]
    alone = here._replace(f_ext={})
    found = results(model, State(*many, {}), BATCHED)
    agree({what: value[place] for what, value in found.items()}, results(model, alone, BATCHED))


@pytest.mark.parametrize("distance", [1e-15, 1e-12, 1e-9])
@EVERY
def test_states_moved_by_rounding_give_the_same_results(name, distance):
    """States are moved along the velocity, so that loops stay closed."""
    mechanism = MECHANISMS[name]()
    model = ld.build(mechanism.robot)
    here = state_of(mechanism, model)
    there = here._replace(q=ld.integrate(model, here.q, distance * here.v))
    agree(results(model, there), results(model, here), tolerance=max(SENSITIVITY * distance, TOLERANCE))


@EVERY
def test_full_turns_and_signs_of_quaternions_change_nothing(name):
    mechanism = MECHANISMS[name]()
    model = ld.build(mechanism.robot)
    here = state_of(mechanism, model)
    q = here.q.copy()
    turning = {joint.name for joint in mechanism.robot.joints if joint.type == "continuous"}
    if any(one.type == "coupling" for one in model.constraints):                # a coupling counts turns
        turning = set()
    for joint in model.joints:
        labels = [text.rpartition(".")[2] for text in model.q_names[joint.q]]
        if joint.name in turning and all(c.stiffness == 0.0 for one in mechanism.robot.joints if one.name == joint.name
                                         for c in one.coordinates):
            q[joint.q] += 2 * np.pi
        if "qw" in labels:
            start = joint.q.start + labels.index("qx")
            q[start:start + 4] *= -1
    agree(results(model, here._replace(q=q)), results(model, here))


@pytest.mark.parametrize("name", ["coincident axes", "Cardan joint, 2.7 rad", "parallelogram, flat", "coaxial, weld"])
def test_generated_code_agrees_with_generic_kernels(name, monkeypatch):
    mechanism = MECHANISMS[name]()
    generic = ld.build(mechanism.robot)
    here = state_of(mechanism, generic)
    names = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "constrained_forward_dynamics", "project_velocity")
    expected = results(generic, here, names)
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    agree(results(ld.build(mechanism.robot), here, names), expected)
