"""Faults of single columns: each is named with its time and size, and smooth columns have none."""
import re

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.recorded_signals import signal_warnings, suspect_warnings

LINKS = [ld.Link(name, mass=1.0, inertia=(1, 1, 1)) for name in ("la", "lb")]
MODEL = ld.build(ld.Robot("r", LINKS, [ld.Joint("a", "continuous", "world", "la", axis=(0, 0, 1)),
                                       ld.Joint("b", "prismatic", "la", "lb", axis=(1, 0, 0), limits=(-9, 9))]))
T = np.arange(200) * 0.01


def motion():
    """Return smooth positions (N, 2) and torques (N, 2)."""
    return np.column_stack([np.sin(2 * T), 0.3 * np.cos(3 * T)]), np.column_stack([np.cos(4 * T), np.sin(5 * T)])


def said(t, q, tau, derived=True):
    """Return {code: message}."""
    return {warning.code: str(warning) for warning in
            (*signal_warnings(MODEL, t, q, tau, derived=derived), *suspect_warnings(MODEL, t, q, tau))}


def spike(q, tau):
    q[50, 0] += 0.5


def spike_of_a_torque(q, tau):
    tau[[20, 120], 1] -= 2.0


def jump(q, tau):
    q[80:, 1] += 0.2


def turn(q, tau):
    q[80:, 0] += 2 * np.pi


def coarse(q, tau):
    q[:, 1] = np.round(q[:, 1], 1)


def stuck(q, tau):
    q[60:140, 0] = q[60, 0]


def saturated(q, tau):
    tau[:, 0] = np.clip(tau[:, 0], -2.0, 0.7)


def test_an_encoder_that_waits_between_its_movements_is_not_coarse():
    """Rows at rest are most rows. The encoder passes several steps from row to row of a movement."""
    t = np.arange(2000) * 0.01
    q = np.column_stack([np.round(np.interp(t % 4.0, [0.0, 0.8], [0.0, 1.0]) * 500) / 500, np.sin(t)])
    assert "coarse-positions" not in said(t, q, np.zeros_like(q))


@pytest.mark.parametrize("fault, code, text", [
    (spike, "outliers", r"q\.a differs from its neighbours by up to 0\.\d+ rad in 1 row \(t = 0\.5 s\)"),
    (spike_of_a_torque, "outliers", r"tau\.b differs .* in 2 rows \(t = 0\.2, 1\.2 s\)"),
    (jump, "position-jumps", r"q\.b jumps by up to 0\.194 m .*\(t = 0\.8 s\)"),
    (coarse, "coarse-positions", r"q\.b changes in steps of 0\.1 m"),
    (stuck, "constant-positions", r"q\.a is constant from t = 0\.6 to 1\.39 s, while other joints move"),
    (saturated, "saturated-torques", r"tau\.a is at its maximum of 0\.7 N m in \d+ of 200 rows")])
def test_a_fault_is_named(fault, code, text):
    q, tau = motion()
    fault(q, tau)
    messages = said(T, q, tau)
    assert code in messages
    assert re.search(text, messages[code]), messages[code]


@pytest.mark.parametrize("edit", [lambda q, tau: None, turn])
def test_smooth_columns_and_whole_turns_have_no_fault(edit):
    q, tau = motion()
    edit(q, tau)
    assert said(T, q, tau) == {}


def test_gaps_matter_where_velocities_are_derived():
    rows = np.r_[0:70, 90:200]
    q, tau = (x[rows] for x in motion())
    assert said(T[rows], q, tau, derived=False) == {}
    messages = said(T[rows], q, tau)
    assert list(messages) == ["time-gaps"] and "1 gap of up to 0.21 s (t = 0.69 s)" in messages["time-gaps"]
