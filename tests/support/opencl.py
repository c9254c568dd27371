"""Whether this machine has a device of OpenCL, such as Debian's pocl-opencl-icd."""
from functools import cache


@cache
def has_opencl() -> bool:
    """Return whether `ld.to_device(model, "opencl")` finds a device."""
    try:
        import pyopencl
        return bool(pyopencl.get_platforms())
    except (ImportError, RuntimeError):                    # of the package: no driver
        return False
