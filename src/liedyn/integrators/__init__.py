"""Integrators on the configuration manifold: tableaux, steppers, step control, SciPy's solvers through charts."""
