"""Robots that laws of joints control, and an integrator that is tight."""

CART = """\
links:
  cart: {mass: 2}
joints:
  x: {type: prismatic, parent: world, child: cart, axis: [1, 0, 0], damping: 0.3, stiffness: 5,
      limits: {lower: -9, upper: 9, effort: 4}}
"""
ARM = """\
links:
  upper: {mass: 3, com: [0.02, 0.01, 0.2], inertia: [0.05, 0.06, 0.01]}
  lower: {mass: 2, com: [0, 0.03, 0.15], inertia: [0.03, 0.02, 0.01]}
  hand: {mass: 0.5, com: [0, 0, 0.1], inertia: [0.004, 0.005, 0.001]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], damping: 0.4, armature: 0.1,
             limits: {lower: -9, upper: 9, effort: 12}}
  elbow: {type: revolute, parent: upper, child: lower, axis: [1, 0, 0], origin: {xyz: [0, 0, 0.4]},
          limits: {lower: -9, upper: 9, effort: 5}}
  slide: {type: prismatic, parent: lower, child: hand, axis: [0, 0.6, 0.8], origin: {xyz: [0, 0, 0.3]}}
"""
FINE = {"method": "dopri5", "rtol": 1e-12, "atol": 1e-13}
INERTIA, GEAR, ROTOR = 0.8, 50.0, 2e-4
WHEEL = """\
links:
  wheel: {mass: 1, inertia: [0.5, 0.5, 0.8]}
joints:
  axle: {type: continuous, parent: world, child: wheel, axis: [0, 0, 1]}
"""
FORCES = {"shoulder": {"torque": "20*sin(9*t)"}, "elbow": {"torque": {"pd": {"kp": 60, "kd": 2, "target": "1.5*sin(7*t)"}}},
          "slide": {"torque": "30*cos(8*t)"}}
