"""The step by the error: its norm, and a first step."""
from liedyn.jit import primitive
from liedyn.kernels.loops.by_parts import copy
from liedyn.lie.lanes import sqrt

# As in SciPy, but for the first: with 0.9 a fifth of dop853's steps are rejected where a humanoid tumbles. At the same error this
# takes an eighth fewer evaluations of dop853, a fiftieth of dopri5.
SAFETY, LEAST_FACTOR, MOST_FACTOR = 0.75, 0.2, 10.0
LEAST_FIRST = 1e-9         # of the time until the next break: states that are zero but for rounding ask for much less


@primitive
def error_norm(method, state, stages, h):
    """Root mean square of the error estimate against atol + rtol size, over x, v and z. Of two estimates E5, E3, as of dop853:
    E5^2 / sqrt(E5^2 + 0.01 E3^2) (Hairer, Norsett, Wanner, II.10). The work follows the motion; but where motions are
    prescribed, which a step may integrate without an error, however long it is, its error counts, too. Overwrites stages.y and
    stages.output."""
    n, nv, total, other = state.y.size - 1, stages.q.size, 0.0, 0.0
    estimate(method, stages)
    for k in range(n):
        scale = h / (method.control[2] + method.control[1] * size_of(state, stages, k, nv))
        total += (scale * stages.y[k])**2
        other += (scale * stages.output[k])**2
    error = combined(total, other) / sqrt(max(1.0 * n, 1.0))
    if method.control[4] > 0.0:
        error = max(error, error_of_work(method, stages, n, h))
    return error


@primitive
def error_of_work(method, stages, k, h):
    """Against the work that the step exchanges."""
    exchanged = 0.0
    for s in range(method.b.size):
        exchanged += abs(h * method.b[s] * stages.K[s, k])
    scale = h / (method.control[2] + method.control[4] * exchanged)
    return combined((scale * stages.y[k])**2, (scale * stages.output[k])**2)


@primitive
def estimate(method, stages):
    """The first estimate into stages.y, a second one, or zero, into stages.output. Row by row: by coordinates it takes 4 % of a
    step of dop853."""
    count = method.b.size + 1
    for k in range(stages.y.size):
        stages.y[k] = stages.output[k] = 0.0
    for s in range(count):
        for k in range(stages.y.size):
            stages.y[k] += method.error[s] * stages.K[s, k]
    for s in range(count, method.error.size):
        for k in range(stages.y.size):
            stages.output[k] += method.error[s] * stages.K[s - count, k]


@primitive
def combined(e, e3):
    """Of squares."""
    return sqrt(e) if e3 == 0.0 else e / sqrt(e + 0.01 * e3)


@primitive
def size_of(state, stages, k, nv):
    """What a coordinate's error is relative to: its value; 1 rad or 1 m for ball and free joints."""
    if k >= nv:
        return max(abs(state.y[k]), abs(stages.end[k]))
    return max(abs(stages.q[k]), abs(stages.q[k] + stages.end[k]))


@primitive
def first_step(method, state, stages, span):
    """A first step from the size of the rates (Hairer, Norsett, Wanner, II.4, without the second evaluation)."""
    n, nv, d0, d1 = state.y.size - 1, stages.q.size, 0.0, 0.0
    copy(state.y, stages.end)
    for k in range(n):
        scale = method.control[2] + method.control[1] * size_of(state, stages, k, nv)
        x = stages.q[k] if k < nv else state.y[k]
        d0 += (x / scale) ** 2
        d1 += (stages.K[0, k] / scale) ** 2
    d0, d1 = sqrt(d0 / max(nv, 1)), sqrt(d1 / max(nv, 1))
    h = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    return min(max(h, LEAST_FIRST * span), span, method.control[0])


@primitive
def chart_origin(q_of_v, state, stages):
    """stages.q: values of 1-DoF coordinates, 1 for the others, by velocity coordinate."""
    for k in range(q_of_v.size):
        stages.q[k] = state.q[q_of_v[k]] if q_of_v[k] >= 0 else 1.0
