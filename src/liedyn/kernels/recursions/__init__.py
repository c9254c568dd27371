"""Recursions over bodies: dynamics, inertia, kinematics of one state."""
