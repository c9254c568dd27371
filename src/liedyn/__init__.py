"""liedyn: from a robot file (URDF, YAML or MJCF) to its motion and forces, on SE(3).

    import liedyn as ld
    model = ld.load("robot.urdf")
    tau = ld.inverse_dynamics(model, q, v, a)

Names are imported on first use, so that `import liedyn` is quick. `__init__.pyi` lists them.
"""
import ast
from importlib import import_module
from pathlib import Path
from types import FunctionType

__version__ = "0.2.0"


def _homes() -> dict[str, str]:
    """The module of each public name, from the stub next to this file."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    return {name.name: node.module.removeprefix("liedyn.") for node in imports for name in node.names}


_HOME = _homes()

__all__ = [*_HOME, "__version__"]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'liedyn' has no attribute {name!r}")
    value = getattr(import_module(f"liedyn.{_HOME[name]}"), name)
    if isinstance(value, FunctionType):
        from liedyn.public_calls import explained
        value = explained(value, __name__)
    globals()[name] = value            # so that the next look-up does not come here
    return value


def __dir__():
    return sorted(__all__)
