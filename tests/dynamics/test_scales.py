"""Characteristic units of a robot: they change with its units, and with nothing else."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.scales import model_scales
from liedyn.model.description import WORLD, Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose
from other_units import in_units
from zoo import ROBOTS, model_of


@pytest.mark.parametrize("name", ["every kind", "every kind, floating", "a lone body", "no passive forces, floating"])
def test_they_scale_with_the_units(name):
    robot = ROBOTS[name]
    one, two = model_scales(model_of(name)), model_scales(ld.build(in_units(robot, 1e3, 1e-6, 1e2)))
    np.testing.assert_allclose(np.divide(two, one), [1e3, 1e-6, 1e2], rtol=1e-9)


def test_they_do_not_depend_on_the_place_or_the_orientation():
    robot = ROBOTS["every kind"]
    turned = Pose.from_xyz_quaternion((1e3, -2e3, 500.0), (0.1, 0.5, -0.3, float(np.sqrt(0.65))))
    R = np.reshape(turned.rotation, (3, 3))
    moved = replace(robot, gravity=tuple(R @ robot.gravity), joints=tuple(
        replace(j, origin=Pose(tuple((R @ np.reshape(j.origin.rotation, (3, 3))).ravel()),
                               tuple(R @ j.origin.translation + turned.translation))) if j.parent == WORLD else j
        for j in robot.joints))
    np.testing.assert_allclose(model_scales(ld.build(moved)), model_scales(ld.build(robot)), rtol=1e-9)


def test_units_are_products():
    units = model_scales(model_of("every kind"))._replace(length=2.0, mass=3.0, time=5.0)
    assert units.unit_scale("rad") == units.unit_scale("1") == 1.0 and units.unit_scale("rad/s^2") == 1 / 25
    assert units.unit_scale("kg m^2") == 12.0 and units.unit_scale("N m s/rad") == pytest.approx(3 * 4 / 5) and units.unit_scale(
        "N/m") == 3 / 25


def test_springs_give_the_time_where_there_is_no_gravity_and_else_a_second():
    links = (Link("a", 2.0, (0.5, 0.0, 0.0)),)
    slide = (Joint("j", "prismatic", WORLD, "a", axes=((1.0, 0.0, 0.0),), coordinates=(Coordinate(stiffness=8.0),)),)
    assert model_scales(ld.build(Robot("r", links, slide, gravity=(0.0, 0.0, 0.0)))) == (1.0, 2.0, 0.5)
    free = (replace(slide[0], coordinates=()),)
    assert model_scales(ld.build(Robot("r", links, free, gravity=(0.0, 0.0, 0.0)))) == (1.0, 2.0, 1.0)
