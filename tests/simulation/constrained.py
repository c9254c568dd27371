"""Small mechanisms for the tests of constrained simulation, as robot files."""

# crank 1, coupler 3, rocker 2.5, ground 3.2: Grashof, the crank turns round. Bars in x-y, gravity along -y.
FOUR_BAR = """
name: linkage
gravity: [0, -9.81, 0]
links:
  crank: {mass: 1.0, com: [0.5, 0, 0], inertia: [0.01, 0.1, 0.1]}
  coupler: {mass: 2.0, com: [1.5, 0, 0], inertia: [0.02, 1.5, 1.5]}
  rocker: {mass: 1.5, com: [1.25, 0, 0], inertia: [0.02, 0.8, 0.8]}
joints:
  crank: {type: continuous, parent: world, child: crank, axis: [0, 0, 1]}
  knee: {type: continuous, parent: crank, child: coupler, axis: [0, 0, 1], origin: {xyz: [1, 0, 0]}}
  rocker: {type: continuous, parent: world, child: rocker, axis: [0, 0, 1], origin: {xyz: [3.2, 0, 0]}}
loops:
  pin: {type: revolute, a: {link: coupler, xyz: [3, 0, 0]}, b: {link: rocker, xyz: [2.5, 0, 0]}}
"""

# A parallelogram: all bars lie in one line at crank = 0 and pi, where it may turn into an antiparallelogram.
PARALLELOGRAM = FOUR_BAR.replace("xyz: [3.2, 0, 0]", "xyz: [2, 0, 0]").replace("xyz: [3, 0, 0]", "xyz: [2, 0, 0]").replace(
    "xyz: [2.5, 0, 0]", "xyz: [1, 0, 0]")

FIVE_BAR = """
name: five_bar
gravity: [0, -9.81, 0]
links:
  a1: {mass: 1.0, com: [0.5, 0, 0], inertia: [0.01, 0.1, 0.1]}
  a2: {mass: 0.8, com: [0.6, 0, 0], inertia: [0.01, 0.1, 0.1]}
  b1: {mass: 1.0, com: [0.5, 0, 0], inertia: [0.01, 0.1, 0.1]}
  b2: {mass: 0.8, com: [0.6, 0, 0], inertia: [0.01, 0.1, 0.1]}
joints:
  left: {type: continuous, parent: world, child: a1, axis: [0, 0, 1], damping: 0.1}
  left_elbow: {type: continuous, parent: a1, child: a2, axis: [0, 0, 1], origin: {xyz: [1, 0, 0]}}
  right: {type: continuous, parent: world, child: b1, axis: [0, 0, 1], origin: {xyz: [1, 0, 0]}}
  right_elbow: {type: continuous, parent: b1, child: b2, axis: [0, 0, 1], origin: {xyz: [1, 0, 0]}}
loops:
  pin: {type: revolute, a: {link: a2, xyz: [1.2, 0, 0]}, b: {link: b2, xyz: [1.2, 0, 0]}}
"""

# A body that hangs by a ball closure, which a scenario may move; the closure's frame is turned against the link's.
HANGING = """
name: hanging
links: {bob: {mass: 2.0, com: [0.1, 0, -0.5], inertia: [0.05, 0.06, 0.02]}}
joints: {bob: {type: free, parent: world, child: bob}}
loops:
  hand: {type: ball, a: {link: world, xyz: [0, 0, 1], rpy: [0.3, -0.2, 0.5]}, b: {link: bob, xyz: [0.05, 0, 0.1]}, driven: true}
"""
