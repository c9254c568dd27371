"""Characteristic lengths of a robot: by them quantities in metres and in radians are compared (ranks, pivots, residuals).

A lever arm is the distance between two anchors on one rigid body: axes that turn, and frames of closures. The ground counts only
within a loop, so that lengths do not depend on where the robot stands; axes that slide have no place.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from liedyn.model.description import FREE, ONE_DOF

_ROUNDING = 1e-9         # of the largest number among positions: lever arms that are shorter are zero (axes through one point)


@dataclass(slots=True)
class LeverArms:
    """Of a tree of bodies, body 0 the ground: parent and kind of each joint, (angular, linear) part of its screw, its pose (4, 4)
    in the parent at zero coordinates, and the ten numbers of the body's inertia."""

    parent: Sequence[int]
    kind: Sequence[int]
    S: Sequence[tuple[float, float]]
    T0: Sequence[np.ndarray]
    I: Sequence[np.ndarray]

    def closure_lengths(self, closures: Iterable[tuple[tuple[int, int], int, Sequence[np.ndarray], float]]
                        ) -> tuple[list[float], float]:
        """A length [m] of each closure, given by its two bodies, the last body that moves both, the poses of its frames in them
        and its radius or zero, and one of the robot. That of a closure is the longest lever arm of the loop; where all are zero,
        that of the robot: its longest lever arm, else the longest radius of gyration, else one metre."""
        closures = list(closures)
        arms = [max(self._longest_arm(*closure[:3]), closure[3]) for closure in closures]
        on_bodies = [np.linalg.norm(self.T0[i][:3, 3]) for i in range(1, len(self.parent))
                     if self.parent[i] > 0 and self._rotates(i) and self._rotates(self.parent[i])]
        gyration = [np.sqrt(max(I[4] + I[7] + I[9], 0.0) / (2.0 * I[0])) for I in self.I[1:] if I[0] > 0.0]
        places = [np.linalg.norm(T[:3, 3]) for T in (*self.T0, *(T for closure in closures for T in closure[2]))]
        least = _ROUNDING * max(places, default=0.0)
        others = max(max([*arms, *on_bodies], default=0.0), least), max(gyration, default=0.0), 1.0
        *lengths, of_robot = (float(next(x for x in (arm, *others) if x > least)) for arm in (*arms, 0.0))
        return lengths, of_robot

    def _rotates(self, body: int) -> bool:
        """Whether its joint has an axis, or a point, about which it turns."""
        return body > 0 and (self.kind[body] != ONE_DOF or self.S[body][0] != 0.0)

    def _longest_arm(self, bodies: tuple[int, int], common: int, poses: Sequence[np.ndarray]) -> float:
        longest, ends = 0.0, []
        for body, pose in zip(bodies, poses, strict=True):
            place, turns = pose[:3, 3], True
            while body != common:
                if turns and self._rotates(body):
                    longest = max(longest, float(np.linalg.norm(place)))
                place, turns = self.T0[body][:3, 3], self._rotates(body) and self.kind[body] != FREE
                body = self.parent[body]
            ends.append((place, turns))
        (a, a_turns), (b, b_turns) = ends
        return max(longest, float(np.linalg.norm(a - b))) if a_turns and b_turns else longest
