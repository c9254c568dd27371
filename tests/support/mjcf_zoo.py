"""Seeded random MJCF texts over all that is read: nested bodies and frames, every orientation, default classes with inheritance,
inertias given or from geoms, several joints a body with anchors and `ref`, springs, rotors, limits, sites, actuators, equality
constraints. Bodies are sturdy, so that a tolerance speaks of the reader and not of the configuration."""
from __future__ import annotations

import mujoco
import numpy as np

PASSIVE_MOTORS = hasattr(mujoco.MjModel, "actuator_damping")         # since MuJoCo 4
ORIENTATIONS = ("quat", "euler", "axisangle", "xyaxes", "zaxis", "none")


def text(values) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(values))


class Writer:
    def __init__(self, seed: int, constraints: bool):
        self.rng = np.random.default_rng([seed, 5])
        self.degrees = bool(self.rng.random() < 0.7)
        self.sequence = "".join(self.rng.choice(list("xyzXYZ"), 3))
        self.constraints = constraints
        self.bodies, self.joints, self.sites = [], [], []
        self.count = 0

    def often(self, probability=0.5) -> bool:
        return bool(self.rng.random() < probability)

    def angle(self, size=np.pi):
        return self.rng.uniform(-size, size) * (180 / np.pi if self.degrees else 1.0)

    def angles(self) -> str:
        return text([self.angle() for _ in range(3)])

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def orientation(self) -> str:
        kind = self.pick(*ORIENTATIONS)
        if kind == "quat":
            return f' quat="{text(self.rng.standard_normal(4))}"'
        if kind == "euler":
            return f' euler="{self.angles()}"'
        if kind == "axisangle":
            return f' axisangle="{text([*self.rng.standard_normal(3), self.angle()])}"'
        if kind == "xyaxes":
            return f' xyaxes="{text(self.rng.standard_normal(6))}"'
        if kind == "zaxis":
            return f' zaxis="{text(self.pick(self.rng.standard_normal(3), [0, 0, -2], [0, 0, 1]))}"'
        return ""

    def place(self, size=0.4) -> str:
        return f' pos="{text(self.rng.uniform(-size, size, 3))}"' + self.orientation()

    # --- a body -------------------------------------------------------------------------------------------------------

    def inertial(self) -> str:
        mass = self.rng.uniform(0.5, 3)
        x, y, z = self.rng.uniform(0.05, 0.3, 3)**2 * mass / 5
        if self.often():
            return f'<inertial mass="{mass!r}"{self.place(0.2)} diaginertia="{text([y + z, x + z, x + y])}"/>'
        R = np.linalg.qr(self.rng.standard_normal((3, 3)))[0]
        I = R @ np.diag([y + z, x + z, x + y]) @ R.T
        six = I[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        return f'<inertial mass="{mass!r}" pos="{text(self.rng.uniform(-0.2, 0.2, 3))}" fullinertia="{text(six)}"/>'

    def geom(self) -> str:
        kind = self.pick("sphere", "capsule", "ellipsoid", "cylinder", "box")
        count = {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)
        sizes = self.rng.uniform(0.05, 0.2, count)
        weight = self.pick("", f' mass="{self.rng.uniform(0.5, 2)!r}"', f' density="{self.rng.uniform(500, 3000)!r}"')
        more = weight + self.pick("", ' class="heavy"', ' group="1"', ' contype="0" conaffinity="0"')
        if kind != "sphere" and self.often(0.3):
            ends = self.rng.uniform(-0.3, 0.3, 6)
            return f'<geom type="{kind}" fromto="{text(ends)}" size="{text(sizes[:1])}"{more}/>'
        turn = f' euler="{self.angles()}"' if self.often() else ""     # as classes have: before MuJoCo 4, theirs wins over a quat
        place = f' pos="{text(self.rng.uniform(-0.2, 0.2, 3))}"' + turn
        return f'<geom type="{kind}" size="{text(sizes)}"{place}{more}/>'

    def joint(self, kind: str) -> str:
        name = f"j{len(self.joints)}"
        self.joints.append((name, kind))
        given = [f'<joint name="{name}"', f'type="{kind}"']
        if kind in ("hinge", "slide"):
            given.append(f'axis="{text(self.rng.standard_normal(3))}"')
            turn = self.angle if kind == "hinge" else lambda size: self.rng.uniform(-size, size) / 3
            given += [f'ref="{turn(1.0)!r}"'] * self.often() + [f'springref="{turn(1.0)!r}"'] * self.often()
            given += [f'stiffness="{self.rng.uniform(0, 5)!r}"'] * self.often()
            if self.often():
                low = turn(1.0)
                given.append(f'range="{low!r} {low + abs(turn(2.0)) + 0.01!r}"')
        if kind == "ball":
            given.append('stiffness="0"')                          # classes may give one
        given += [f'pos="{text(self.rng.uniform(-0.2, 0.2, 3))}"'] * self.often(0.7)
        if kind != "free":
            given += [f'armature="{self.rng.uniform(0, 0.2)!r}"'] * self.often()
            given.append(self.pick("", 'class="stiff"', 'class="main"'))
        else:
            given.append('class="main" armature="0"')
        given += [f'damping="{self.rng.uniform(0, 0.5)!r}"'] * self.often()
        return " ".join(given) + "/>"

    def moves(self, top: bool) -> list[str]:
        if top and self.often(0.25):
            return [self.joint("free")] if self.often() else [self.freejoint()]
        count = int(self.rng.integers(4))
        kinds = [self.pick("hinge", "slide") for _ in range(count)]
        if self.often(0.2):
            kinds = [*("slide",) * (count // 2), "ball"]
        return [self.joint(kind) for kind in kinds]

    def freejoint(self) -> str:
        self.joints.append((f"j{len(self.joints)}", "free"))
        return f'<freejoint name="{self.joints[-1][0]}"/>'

    def frame(self, inner: str) -> str:
        return f"<frame{self.place()}{self.pick('', ' childclass=' + chr(34) + 'stiff' + chr(34))}>{inner}</frame>"

    def site(self) -> str:
        self.sites.append(f"s{len(self.sites)}")
        return f'<site name="{self.sites[-1]}"{self.place(0.2)}/>'

    def body(self, depth: int, top: bool = False) -> str:
        name = f"b{self.count}"
        self.count += 1
        self.bodies.append(name)
        moves = self.moves(top)
        inner = [self.frame(one) if self.often(0.2) and "free" not in one else one for one in moves]
        inner += [self.inertial()] if self.often(0.6) else [self.geom(), self.frame(self.geom())]
        inner += [self.site()] if self.often(0.3) else []
        for _ in range(self.rng.integers(3) if depth else 0):
            child = self.body(depth - 1)
            inner.append(self.frame(child) if self.often(0.3) else child)
        childclass = self.pick("", "", ' childclass="stiff"', ' childclass="heavy"')
        return f'<body name="{name}"{childclass}{self.place()}>' + "\n".join(inner) + "</body>\n"

    # --- the rest -----------------------------------------------------------------------------------------------------

    def actuators(self) -> str:
        out = []
        for name, kind in self.joints:
            if kind in ("hinge", "slide") and self.often(0.3):
                gear = self.rng.uniform(-3, 3)
                more = ' armature="0.02" damping="0.1"' if PASSIVE_MOTORS else ""
                out.append(f'<motor joint="{name}" gear="{gear!r}" ctrlrange="-2 1.5"{more}/>')
        return f"<actuator>{''.join(out)}</actuator>"

    def equality(self) -> str:
        out, scalar = [], [name for name, kind in self.joints if kind in ("hinge", "slide")]
        for kind in self.rng.permutation(["connect", "weld", "relpose", "joint", "lock", "tendon", "sites"])[:3]:
            a, b = self.rng.choice([*self.bodies, "world"], 2, replace=False)
            a, b = (b, a) if a == "world" else (a, b)
            anchor = text(self.rng.uniform(-0.3, 0.3, 3))
            if kind == "connect":
                out.append(f'<connect body1="{a}" body2="{b}" anchor="{anchor}"/>')
            elif kind == "weld":
                out.append(f'<weld body1="{a}" body2="{b}" anchor="{anchor}"/>')
            elif kind == "relpose":
                pose = text([*self.rng.uniform(-0.3, 0.3, 3), *self.rng.standard_normal(4)])
                out.append(f'<weld body1="{a}" body2="{b}" anchor="{anchor}" relpose="{pose}"/>')
            elif kind == "sites" and len(self.sites) > 1:
                s, t = self.rng.choice(self.sites, 2, replace=False)
                out.append(f'<{self.pick("connect", "weld")} site1="{s}" site2="{t}"/>')
            elif kind == "joint" and len(scalar) > 1:
                i, j = self.rng.choice(scalar, 2, replace=False)
                out.append(f'<joint joint1="{i}" joint2="{j}" polycoef="{text(self.rng.uniform(-1, 1, 2))} 0 0 0"/>')
            elif kind == "lock" and scalar:
                out.append(f'<joint joint1="{self.rng.choice(scalar)}" polycoef="0.1 0 0 0 0"/>')
            elif kind == "tendon" and len(scalar) > 2:
                out.append('<tendon tendon1="t" tendon2="u" polycoef="0.2 0.7 0 0 0"/>')
        return f"<equality>{''.join(out)}</equality>"

    def tendons(self) -> str:
        scalar = [name for name, kind in self.joints if kind in ("hinge", "slide")]
        if len(scalar) < 3:
            return ""
        i, j, k = self.rng.choice(scalar, 3, replace=False)
        return (f'<tendon><fixed name="t"><joint joint="{i}" coef="0.5"/><joint joint="{j}" coef="-2"/></fixed>'
                f'<fixed name="u"><joint joint="{k}" coef="1.5"/></fixed></tendon>')

    def file(self) -> str:
        world = "".join(self.frame(self.body(2, True)) if self.often(0.3) else self.body(3, True) for _ in range(2))
        compiler = self.pick("", ' boundmass="0.6" boundinertia="0.01"', ' balanceinertia="true"', ' inertiafromgeom="auto"')
        rest = self.actuators() + (self.tendons() + self.equality() if self.constraints else "")
        return f"""<mujoco model="zoo">
  <compiler angle="{'degree' if self.degrees else 'radian'}" eulerseq="{self.sequence}"{compiler}/>
  <option gravity="{text(self.rng.uniform(-10, 10, 3))}"><flag contact="disable" energy="enable"/></option>
  <default>
    <joint damping="0.05" armature="0.01"/>
    <geom density="800" euler="{self.angles()}"/>
    <default class="stiff"><joint stiffness="1.5" springref="{self.angle(0.3)!r}"/>
      <default class="heavy"><geom density="4000" euler="{self.angles()}"/><joint damping="0.2" type="hinge"/></default>
    </default>
  </default>
  <worldbody><geom type="plane" size="1 1 1"/>{world}</worldbody>
  {rest}
</mujoco>
"""


def random_mjcf(seed: int, constraints: bool = False) -> str:
    return Writer(seed, constraints).file()
