"""Closed loops, couplings: rows, wrenches, solvers."""
