"""Integrators on the configuration manifold: tableaux, steppers, step control, SciPy's solvers through charts.

Importing a module of this package makes `liedyn.integrate` this package, where users mean the function of that name
(`dynamics.manifold.integrate`): so calling the package is calling the function.
"""
import sys
from types import ModuleType


class _CallablePackage(ModuleType):
    def __call__(self, model, q0, dv):
        from liedyn.dynamics.manifold import integrate
        return integrate(model, q0, dv)


sys.modules[__name__].__class__ = _CallablePackage
