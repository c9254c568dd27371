"""Parameters by name, and robots with other values of them."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.model_parameters import parameter_value, perturbed_model, with_parameters
from zoo import model_of


def test_a_varied_robot_differs_by_its_figure_only():
    model = model_of("every kind, floating")
    for name in ld.parameter_names(model):
        other = perturbed_model(model, name, 0.25)
        assert other.nq == model.nq and other.joint_names == model.joint_names
        if name.partition(".")[0] not in ("origin", "screw"):
            assert parameter_value(other, name) == pytest.approx(parameter_value(model, name) + 0.25), name
        assert not np.array_equal(other.constants, model.constants), name


def test_a_pitch_that_is_given_is_the_pitch_of_the_joint():
    model = model_of("helical")
    name = next(name for name in ld.parameter_names(model) if name.startswith("pitch."))
    changed = with_parameters(model, {name: 0.25})
    assert next(joint.pitch for joint in changed.joints if f"pitch.{joint.name}" == name) == pytest.approx(0.25)
