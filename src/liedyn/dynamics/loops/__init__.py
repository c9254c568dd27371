"""Closed loops and couplings: configurations, motions, forces, their derivatives."""
