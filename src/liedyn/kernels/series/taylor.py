"""Between time derivatives, as users have them, and Taylor coefficients, as kernels have them: x_k = x^(k) / k!."""
from liedyn.jit import primitive
from liedyn.lie.lanes import load, store


@primitive
def to_series(x, K, n, out):
    """Derivatives x (K rows of n) to coefficients out (n series of K)."""
    scale = 1.0
    for k in range(K):
        if k > 1:
            scale = scale / k
        for c in range(n):
            store(out, c * K + k, load(x, k * n + c) * scale)


@primitive
def scale_rows(x, K, n, up):
    """x (K rows of n) times k! in place, or by 1 / k! where not `up`."""
    scale = 1.0
    for k in range(2, K):
        scale = scale * k
        s = scale if up else 1.0 / scale
        for c in range(k * n, (k + 1) * n):
            store(x, c, load(x, c) * s)
