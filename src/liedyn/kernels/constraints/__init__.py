"""Equations of loops and couplings, their solution, and constrained motion in stages.

Entry points: `driver` and `kinematics`, called by `dynamics.constraints` and by the right-hand side of simulations.
"""
