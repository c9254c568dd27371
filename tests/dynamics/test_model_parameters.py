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


def test_changes_of_one_joint_add_up_in_any_order():
    """The second change of a screw replaced the first one, and that of a pitch had no effect after that of a screw."""
    model = model_of("helical")
    name = next(key for key in ld.parameter_names(model) if key.startswith("pitch.")).partition(".")[2]
    screws = [key for key in ld.parameter_names(model) if key.startswith(f"screw.{name}.")][:2]
    values = {screws[0]: 0.01, screws[1]: -0.02, f"pitch.{name}": parameter_value(model, f"pitch.{name}") + 0.05}
    changed = [ld.build(with_parameters(model, {key: values[key] for key in order}))
               for order in (list(values), list(values)[::-1], [screws[1], f"pitch.{name}", screws[0]])]
    for other in changed[1:]:
        np.testing.assert_allclose(other.constants, changed[0].constants, rtol=1e-13, atol=1e-14)
    screw = model.joint(name).screws[0] + 0.05 * np.r_[np.zeros(3), model.joint(name).screws[0][:3]]
    for key, change in zip(screws, (0.01, -0.02), strict=True):
        screw[["wx", "wy", "wz", "vx", "vy", "vz"].index(key.rpartition(".")[2])] += change
    np.testing.assert_allclose(changed[0].joint(name).screws[0], screw, rtol=1e-12, atol=1e-14)
