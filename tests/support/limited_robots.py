"""Robots with position limits, and an integrator that is tight."""

SLIDER = {"name": "slider", "gravity": [0, 0, 0], "links": {"s": {"mass": 2.0, "inertia": [0.01, 0.01, 0.01]}},
          "joints": {"x": {"type": "prismatic", "parent": "world", "child": "s", "axis": [1, 0, 0],
                           "limits": {"lower": -0.4, "upper": 0.5}}}}
ARM = {"name": "arm", "links": {
    "upper": {"mass": 1.0, "com": [0, 0, -0.5], "inertia": [0.08, 0.08, 0.001]},
    "lower": {"mass": 0.7, "com": [0, 0, -0.4]},
    "hand": {"mass": 0.3, "com": [0, 0, -0.2], "inertia": [0.01, 0.01, 0.001]}}, "joints": {
    "shoulder": {"type": "revolute", "parent": "world", "child": "upper", "axis": [0, 1, 0],
                 "limits": {"lower": -0.6, "upper": 2, "effort": 50}},
    "elbow": {"type": "revolute", "parent": "upper", "child": "lower", "origin": {"xyz": [0, 0, -1]}, "axis": [0, 1, 0],
              "limits": {"lower": -1.2, "upper": 0.3}},
    "wrist": {"type": "continuous", "parent": "lower", "child": "hand", "origin": {"xyz": [0, 0, -0.8]}, "axis": [0, 1, 0]}}}
TIGHT = {"method": "dop853", "rtol": 1e-13, "atol": 1e-14}
