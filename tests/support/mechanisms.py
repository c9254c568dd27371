"""Linkages in closed form and published answers, in plain NumPy: what the mechanisms of robots/ are compared with.

Bars of plane linkages are complex numbers, x + i z (x + i y where the linkage lies in x-y); angles turn the first axis towards
the second.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import cos, exp, pi, sin

G = 9.81


@dataclass(frozen=True)
class Turning:
    """An angle with its first two time derivatives; a bar of length r along it is r exp(i q)."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray

    def point(self, z: complex) -> np.ndarray:
        """Return [position, velocity, acceleration] about its origin of a point z of the rotating frame."""
        turned = z * exp(1j * self.q)
        return np.array([turned, 1j * self.v * turned, (1j * self.a - self.v**2) * turned])


def power(mass: float, inertia: float, centre: np.ndarray, turn: Turning | None = None, gravity: float = 0.0) -> np.ndarray:
    """Return the rate of the energy of a bar. centre: as from `Turning.point`; gravity acts along -i."""
    _, v, a = centre
    rate = mass * ((a * v.conj()).real + gravity * v.imag)
    return rate if turn is None else rate + inertia * turn.v * turn.a


# four-bar --------------------------------------------------------------------------------------------------------------


def four_bar(ground: float, crank: float, coupler: float, rocker: float, q, v, a, sign: int = 1):
    """Crank, coupler and rocker of crank + coupler = ground + rocker, by Freudenstein's equation.

    sign chooses the branch: 1 has the pin to the left of the way from the crank's end to the rocker's pivot.
    """
    one = Turning(np.asarray(q, float), np.asarray(v, float), np.asarray(a, float))
    way = ground - crank * exp(1j * one.q)                              # from the crank's end to the rocker's pivot
    span = np.abs(way)
    corner = np.arccos((span**2 + coupler**2 - rocker**2) / (2 * span * coupler))
    phi = np.angle(way) + sign * corner
    psi = np.angle(coupler * exp(1j * phi) - way)
    dphi = -crank * one.v * sin(one.q - psi) / (coupler * sin(phi - psi))
    dpsi = -crank * one.v * sin(one.q - phi) / (rocker * sin(phi - psi))
    # acceleration: i r2 ddphi e^(i phi) - i r3 ddpsi e^(i psi) = rest
    rest = -one.point(crank)[2] + dphi**2 * coupler * exp(1j * phi) - dpsi**2 * rocker * exp(1j * psi)
    ddphi = (rest * exp(-1j * psi)).real / (-coupler * sin(phi - psi))
    ddpsi = (rest * exp(-1j * phi)).real / (-rocker * sin(phi - psi))
    return one, Turning(phi, dphi, ddphi), Turning(psi, dpsi, ddpsi)


# Jansen's leg ----------------------------------------------------------------------------------------------------------

# a to m, T. Jansen, The Great Pretender (2007), in units of 10 mm
JANSEN = dict(zip("abcdefghijklm", (38, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49, 50, 61.9, 7.8, 15), strict=True))


def jansen_foot(crank) -> np.ndarray:
    """The foot of Jansen's leg, from the axis of the crank: each pin is the corner of a triangle on two others."""
    a, b, c, d, e, f, g, h, i, j, k, l, m = (0.01 * JANSEN[name] for name in "abcdefghijklm")
    end = m * exp(1j * np.asarray(crank, float))
    pivot = -a - 1j * l + 0 * end
    top, knee = _corner(end, j, pivot, b, -1), _corner(end, k, pivot, c, 1)
    ankle = _corner(_corner(pivot, d, top, e, 1), f, knee, g, -1)
    return _corner(knee, i, ankle, h, 1)


def _corner(p, r: float, q, s: float, side: int):
    """The point at distance r from p and s from q, to the left of the way from p to q for side 1."""
    way = np.abs(q - p)
    along = (way**2 + r**2 - s**2) / (2 * way)
    return p + (q - p) / way * (along + side * 1j * np.sqrt(r**2 - along**2))


# slider-crank ----------------------------------------------------------------------------------------------------------

# Simeon (1996) and the Test Set for IVP Solvers: lengths, masses, inertias about bearing and crank pin
CRANK, ROD, M1, M2, M3, J1, J2 = 0.15, 0.30, 0.36, 0.151104, 0.075552, 0.002727, 0.0045339259


def slider_crank(q, v, a) -> tuple[Turning, Turning, np.ndarray]:
    """Return crank, rod (its angle from the rail) and [x, dx, ddx] of the block."""
    one = Turning(np.asarray(q, float), np.asarray(v, float), np.asarray(a, float))
    phi = -np.arcsin(CRANK / ROD * sin(one.q))
    dphi = -CRANK * one.v * cos(one.q) / (ROD * cos(phi))
    ddphi = (-CRANK * (one.a * cos(one.q) - one.v**2 * sin(one.q)) / ROD + dphi**2 * sin(phi)) / cos(phi)
    two = Turning(phi, dphi, ddphi)
    return one, two, (one.point(CRANK) + two.point(ROD)).real


def slider_crank_torque(q, v, a) -> np.ndarray:
    """Return the torque of the crank from the rate of the energy, without gravity."""
    one, two, block = slider_crank(q, v, a)
    rates = (J1 * one.v * one.a                                          # about the bearing, which rests
             + power(M2, J2 - M2 * ROD**2 / 4, one.point(CRANK) + two.point(ROD / 2), two) + M3 * block[1] * block[2])
    return rates / one.v


# Andrews' squeezer mechanism -------------------------------------------------------------------------------------------

# Test Set for IVP Solvers (W. Lioen, J. de Swart; CWI and Bari), problem "Andrews' squeezing mechanism": start, and reference
# solution at t = 0.03 s (PSIDE, quadruple-like tolerances of 1e-14 on a Cray C90). Order of the joints as in the test set.
ANDREWS = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
ANDREWS_START = (-0.0617138900142764496, 0.0, 0.455279819163070380, 0.222668390165885885, 0.487364979543842550,
                 -0.222668390165885885, 1.23054744454982119)
ANDREWS_START_A = (14222.4439199541138706, -10666.8329399655854029, 0.0, 0.0, 0.0, 0.0, 0.0)
ANDREWS_END = (0.1581077119629904e2, -0.1575637105984298e2, 0.4082224013073101e-1, -0.5347301163226948, 0.5244099658805304,
               0.5347301163226948, 0.1048080741042263e1)
ANDREWS_END_V = (0.1139920302151208e4, -0.1424379294994111e4, 0.1103291221937134e2, 0.1929337464421385e2, 0.5735699284790808,
                 -0.1929337464421385e2, 0.3231791658026955)
ANDREWS_END_A = (-0.2463176316945196e5, 0.5185037701610329e5, 0.3241025686413781e6, 0.5667493645176213e6, 0.1674362929479361e5,
                 -0.5667493645176222e6, 0.9826520791458422e4)
ANDREWS_END_FORCES = ((0.1991753333731910e3, -0.2975531228015052e2), (0.2306654119098399e2, 0.3145271365475927e2),
                      (0.2264249232082739e2, 0.1161740700019673e2))      # multipliers of K2 - K3, K2 - K4, K2 - K6 in x, y


def andrews_spring(gamma) -> np.ndarray:
    """Return the torque of the spring on gamma, from the distance of its ends."""
    end = -0.03635 + 0.03273j + (0.02 - 0.018j) * exp(1j * gamma)
    way = end - (0.014 + 0.072j)
    pull = -4530 * (np.abs(way) - 0.07785) * way / np.abs(way)
    return (pull * (1j * (0.02 - 0.018j) * exp(1j * gamma)).conj()).real


# overconstrained linkages ----------------------------------------------------------------------------------------------


def turn(axis: int, angle: float) -> np.ndarray:
    """Return the rotation about x, y or z."""
    c, s, R = cos(angle), sin(angle), np.eye(3)
    j, k = (axis + 1) % 3, (axis + 2) % 3
    R[[j, k, j, k], [j, k, k, j]] = c, c, -s, s
    return R


def bennett_angles(pin_1: float) -> np.ndarray:
    """pin_1, pin_2, pin_3 of robots/bennett.yaml: tan(q1/2) tan(q2/2) = sin((90 + 30)/2 deg) / sin((90 - 30)/2 deg), q3 = -q1.

    J. M. McCarthy and G. S. Soh, Geometric Design of Linkages, 2011; q2 is taken without jumps, between 0 and 2 pi.
    """
    ratio = sin(pi / 3) / sin(pi / 6)
    turns, rest = np.divmod(pin_1, 2 * pi)
    return np.array([pin_1, 2 * np.arctan2(ratio * cos(rest / 2), sin(rest / 2)) - 2 * pi * turns, -pin_1])


def bricard_angles(along: float) -> np.ndarray:
    """Five angles of robots/bricard.yaml on their closed curve, by its polar angle; pi / 4 is the cube, q = 0.

    The hexagon of bars keeps its threefold symmetry: every other dihedral is a, the others b, with (1 + cos a)(1 + cos b) = 1.
    """
    r = 2.0
    for _ in range(50):
        a, b = r * cos(along), r * sin(along)
        step = ((1 + cos(a)) * (1 + cos(b)) - 1) / (sin(a) * (1 + cos(b)) * cos(along) + (1 + cos(a)) * sin(b) * sin(along))
        r += step
        if abs(step) < 1e-15:
            break
    return pi / 2 - np.array([a, b, a, b, a])


def bennett_bars(along: float) -> list[tuple]:
    """(rotation, centre, mass, principal inertia along the bar's axes) of the three bars that move; world frame."""
    R, p, bars = turn(0, pi / 2), np.array([0.3, 0, 0.4]), []
    for q, length, mass, twist in zip(bennett_angles(along), (0.3, 0.6, 0.3), (0.3, 0.6, 0.3), (pi / 6, pi / 2, 0), strict=True):
        R = R @ turn(2, q)
        squares = np.array([length, 0.03, 0.02])**2
        bars.append((R, p + R[:, 0] * length / 2, mass, mass / 12 * (squares.sum() - squares)))
        p, R = p + R[:, 0] * length, R @ turn(0, twist)
    return bars


def bricard_bars(along: float) -> list[tuple]:
    """As `bennett_bars`: five bars of 1 m, 1 kg and 0.1 m square."""
    R, p, bars = np.eye(3), np.zeros(3), []
    ways = np.array([[1, 0, 0], [0, -1, 0], [0, 0, 1], [-1, 0, 0], [0, 1, 0]])
    for q, way, axis in zip(bricard_angles(along), ways, (1, 2, 0, 1, 2), strict=True):
        R = R @ turn(axis, q)
        bars.append((R, p + R @ way / 2, 1.0, (0.1**2 + np.where(way == 0, 1, 0.1**2)) / 12))
        p = p + R @ way
    return bars


class Cycle:
    """A mechanism of one degree of freedom whose configurations are a closed curve: T = J(s) ds^2 / 2, V(s), both periodic.

    J and V come from the poses of the bars by trigonometric interpolation, so J' and V' too, to rounding.
    """

    def __init__(self, bars, gravity, points: int = 512):
        self.samples = 2 * pi * np.arange(points) / points
        placed = [bars(s) for s in self.samples]
        self.J, self.V = np.zeros(points), np.zeros(points)
        for bar in range(len(placed[0])):
            R, c = (np.array([row[bar][k] for row in placed]) for k in (0, 1))
            mass, inertia = placed[0][bar][2:]
            spin = R.swapaxes(1, 2) @ _derivative(R)
            w = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], 1)
            self.J += mass * (_derivative(c)**2).sum(1) + (inertia * w**2).sum(1)
            self.V -= mass * c @ np.asarray(gravity)
        self._J, self._V = (np.fft.rfft(x) / points for x in (self.J, self.V))

    def J_V(self, s) -> np.ndarray:
        """Return [J, J', V, V'] at s."""
        k = np.arange(len(self._J))
        waves = exp(1j * k * s) * np.where(k == 0, 1, 2)
        return np.array([(f * waves * d).sum().real for f in (self._J, self._V) for d in (1, 1j * k)])

    def acceleration(self, s, ds) -> float:
        """Return s'' of J s'' + J' s'^2 / 2 + V' = 0."""
        J, dJ, _, dV = self.J_V(s)
        return -(dJ * ds**2 / 2 + dV) / J

    def motion(self, s, ds, times) -> np.ndarray:
        """Return s at the times, by SciPy's DOP853 with tolerance 1e-12."""
        from scipy.integrate import solve_ivp
        return solve_ivp(lambda t, y: (y[1], self.acceleration(*y)), (times[0], times[-1]), (s, ds), method="DOP853",
                         t_eval=times, rtol=1e-12, atol=1e-13).y[0]


def _derivative(samples: np.ndarray) -> np.ndarray:
    """Return the derivative with respect to s of one period, sampled along axis 0."""
    k = np.fft.fftfreq(len(samples), 1 / len(samples)).reshape(-1, *[1] * (samples.ndim - 1))
    return np.fft.ifft(1j * k * np.fft.fft(samples, axis=0), axis=0).real


def pendulum_of_windows(windows: int, t) -> np.ndarray:
    """Angle of the uprights of the N-four-bar mechanism (A02), 0 when upright: one pendulum, whatever N.

    N + 1 uprights turn about their ends, N beams go along without turning; the upper ends start at 1 m/s.
    """
    from scipy.integrate import solve_ivp
    inertia, lever = (windows + 1) / 3 + windows, (windows + 1) / 2 + windows
    return solve_ivp(lambda t, y: (y[1], G * lever / inertia * sin(y[0])), (0, t[-1]), (0.0, 1.0), method="DOP853", t_eval=t,
                     rtol=1e-13, atol=1e-14).y[0]


# rolling disc ----------------------------------------------------------------------------------------------------------


def rolling_disc_rates(mass: float, r: float, y) -> tuple[float, ...]:
    """Rates of [tilt of the axle from the vertical, its rate, rate of the precession, spin about the axle] of a thin disc.

    Routh's equations: balance of momentum and moments in the frame of the horizontal tangent, the way uphill and the axle.
    """
    th, dth, turning, spin = y
    A, C = mass * r**2 / 4, mass * r**2 / 2
    return (dth,
            (A * turning**2 * sin(th) * cos(th) - (C + mass * r**2) * spin * turning * sin(th) - mass * G * r * cos(th))
            / (A + mass * r**2),
            dth * (C * spin - 2 * A * turning * cos(th)) / (A * sin(th)),
            mass * r**2 * dth * turning * sin(th) / (C + mass * r**2))


def rolling_disc(mass: float, r: float, start, t) -> np.ndarray:
    """Return the solution of `rolling_disc_rates` from `start` at the times t."""
    from scipy.integrate import solve_ivp
    return solve_ivp(lambda _, y: rolling_disc_rates(mass, r, y), (t[0], t[-1]), start, method="DOP853", t_eval=t, rtol=1e-12,
                     atol=1e-13).y


# parallel robots -------------------------------------------------------------------------------------------------------


def delta_arm(angle: float, place: np.ndarray) -> float:
    """Angle of an arm of robots/delta.yaml, `angle` about z, for a place of the platform: the arm's end is 0.8 m from its pin."""
    x, y, z = turn(2, -angle) @ place + [0.05 - 0.2, 0, 0]
    # |(x - 0.3 cos q, y, z + 0.3 sin q)| = 0.8
    A, B, C = -0.6 * x, 0.6 * z, 0.8**2 - (x**2 + y**2 + z**2) - 0.3**2
    return np.arctan2(B, A) + np.arccos(C / np.hypot(A, B))


def stewart_legs(place, rotation) -> np.ndarray:
    """Return the six lengths of the legs of robots/stewart.yaml for a pose of the platform."""
    k = np.arange(6)
    base, top = np.radians(120 * (k // 2) + np.where(k % 2, 15, -15)), np.radians(120 * (k // 2) + np.where(k % 2, 45, -45))
    feet = 0.5 * np.stack([cos(base), sin(base), 0 * base], 1)
    balls = 0.35 * np.stack([cos(top), sin(top), 0 * top], 1)
    return np.linalg.norm(np.asarray(place) + balls @ np.asarray(rotation).T - feet, axis=1)
