"""Joints for kernels: three kinds in one table, with their motion, elimination, manifold and passive forces.

Only this package has an `if kind ==`.
"""
