"""Units of foreign columns: their factors to SI and their names in our own files."""
import math

import numpy as np
import pytest

from liedyn.io.units import UNITS, resembles_unit, unit_in_name, unit_name, unit_of


def to_si(text: str) -> tuple[float, str]:
    unit = unit_of(text)
    return unit.multiply / unit.divide, unit_name(unit.exponents)


@pytest.mark.parametrize("text, factor, name", [
    ("rad", 1, "rad"), ("deg", math.pi / 180, "rad"), ("°", math.pi / 180, "rad"), ("mrad", 1e-3, "rad"),
    ("rev", 2 * math.pi, "rad"), ("rpm", 2 * math.pi / 60, "rad/s"), ("rev/min", 2 * math.pi / 60, "rad/s"),
    ("deg/s", math.pi / 180, "rad/s"), ("°/s²", math.pi / 180, "rad/s^2"), ("deg/s/s", math.pi / 180, "rad/s^2"),
    ("deg s^-1", math.pi / 180, "rad/s"), ("rpm/s", 2 * math.pi / 60, "rad/s^2"),
    ("mm", 1e-3, "m"), ("mm/s^2", 1e-3, "m/s^2"), ("µm", 1e-6, "m"), ("in", 0.0254, "m"),
    ("ms", 1e-3, "s"), ("us", 1e-6, "s"), ("μs", 1e-6, "s"), ("ns", 1e-9, "s"), ("min", 60, "s"),
    ("N m", 1, "N m"), ("N·m", 1, "N m"), ("N*m", 1, "N m"), ("Nm", 1, "N m"), ("mNm", 1e-3, "N m"), ("Ncm", 1e-2, "N m"),
    ("N mm", 1e-3, "N m"), ("N m/s", 1, "N m/s"), ("kN", 1e3, "N"), ("mA", 1e-3, "A"), ("N m/A", 1, "N m/A"),
    ("rad/ms", 1e3, "rad/s"), ("1/s", 1, "1/s"), ("m/m", 1, ""),
    ("kg", 1, "kg"), ("g", 1e-3, "kg"), ("kg m^2", 1, "kg m^2"), ("kg m/s^2", 1, "N"), ("N s/m", 1, "N s/m"), ("J", 1, "N m"),
    ("kJ", 1e3, "N m"), ("kW", 1e3, "N m/s"), ("mW", 1e-3, "N m/s"), ("%", 1e-2, ""), ("%/s", 1e-2, "1/s")])
def test_factors_and_names(text, factor, name):
    assert to_si(text) == (pytest.approx(factor, rel=1e-15), name)


@pytest.mark.parametrize("text", ["", "degs", "counts", "Deg", "N m)", "3", "deg//s", "s^x", "m^", "V"])
def test_unknown_units(text):
    assert unit_of(text) is None


def test_decimal_fractions_round_as_their_text():
    """300 ms is exactly the number 0.3, which 300 * 0.001 need not be."""
    for text, digits in (("ms", 3), ("us", 6), ("ns", 9), ("mm", 3), ("cm", 2), ("mA", 3)):
        unit, numbers = UNITS[text], np.arange(1, 5000)
        expected = [float(f"{number}e-{digits}") for number in numbers]
        assert (numbers * unit.multiply / unit.divide).tolist() == expected


@pytest.mark.parametrize("name, unit", [
    ("base_deg", "deg"), ("q1.deg", "deg"), ("q1 Degrees", "degrees"), ("PosDeg", "deg"), ("vel_deg_s", "deg/s"),
    ("vel_deg_per_s", "deg/s"), ("acc deg/s^2", "deg/s^2"), ("vel_rad_s", "rad/s"), ("a_mm_s2", "mm/s^2"), ("speed_RPM", "rpm"),
    ("stamp_us", "us"), ("tau_mNm", "mNm"), ("x_mm", "mm"),
    ("deg", ""), ("q_min", ""), ("v_in", ""), ("left_arms", ""), ("comm", ""), ("t_s", ""), ("f_N", ""), ("knee_degraded", "")])
def test_units_at_the_end_of_names(name, unit):
    assert unit_in_name(name) == unit and (not unit or unit_of(unit) is not None)


def test_misspelt_units_are_recognized():
    assert all(map(resembles_unit, ("deg", "degs", "Grad", "Degrees", "degr/s", "N·m")))
    assert not any(map(resembles_unit, ("left", "raw", "mean", "link", "2", "filtered")))
