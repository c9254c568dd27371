"""Joints as kernels see them: three kinds of one table, their motion, elimination, manifold and passive forces.

The only place with an `if kind ==`. A new kind is a row in `kinds`, a branch in each function here, a test parameter.
"""
