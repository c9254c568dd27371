"""Tuples in arrays: twist i of a (6 n,) array, pose i of a (12 n,) array, and so on. Only these touch memory."""
from liedyn.jit import primitive
from liedyn.lie.lanes import load, store


@primitive
def clear(x):
    """Zeros everywhere."""
    for k in range(x.shape[0]):
        store(x, k, 0.0)


@primitive
def load3(x, o): return (load(x, o), load(x, o + 1), load(x, o + 2))


@primitive
def load6(x, o): return (load(x, o), load(x, o + 1), load(x, o + 2), load(x, o + 3), load(x, o + 4), load(x, o + 5))


@primitive
def load9(x, o):
    return (load(x, o), load(x, o + 1), load(x, o + 2), load(x, o + 3), load(x, o + 4), load(x, o + 5),
            load(x, o + 6), load(x, o + 7), load(x, o + 8))


@primitive
def store3(x, o, y): store(x, o, y[0]); store(x, o + 1, y[1]); store(x, o + 2, y[2])


@primitive
def load_apart(x, o, step): return load(x, o), load(x, o + step), load(x, o + 2 * step)


@primitive
def store_apart(x, o, step, y): store(x, o, y[0]); store(x, o + step, y[1]); store(x, o + 2 * step, y[2])


@primitive
def store6(x, o, y): store3(x, o, (y[0], y[1], y[2])); store3(x, o + 3, (y[3], y[4], y[5]))


@primitive
def store9(x, o, y): store6(x, o, (y[0], y[1], y[2], y[3], y[4], y[5])); store3(x, o + 6, (y[6], y[7], y[8]))


@primitive
def load_twist(x, i): return load3(x, 6 * i), load3(x, 6 * i + 3)


@primitive
def store_twist(x, i, V): store3(x, 6 * i, V[0]); store3(x, 6 * i + 3, V[1])


@primitive
def add_to_twist(x, i, V):
    """x[i] += V."""
    for k in range(3):
        store(x, 6 * i + k, load(x, 6 * i + k) + V[0][k])
        store(x, 6 * i + 3 + k, load(x, 6 * i + 3 + k) + V[1][k])


@primitive
def load_pose(x, i): return load9(x, 12 * i), load3(x, 12 * i + 9)


@primitive
def store_pose(x, i, T): store9(x, 12 * i, T[0]); store3(x, 12 * i + 9, T[1])


@primitive
def load_rigid(x, i): return load(x, 10 * i), load3(x, 10 * i + 1), load6(x, 10 * i + 4)


@primitive
def store_rigid(x, i, I): store(x, 10 * i, I[0]); store3(x, 10 * i + 1, I[1]); store6(x, 10 * i + 4, I[2])


@primitive
def load_sym6(x, i): return load6(x, 21 * i), load9(x, 21 * i + 6), load6(x, 21 * i + 15)


@primitive
def store_sym6(x, i, X): store6(x, 21 * i, X[0]); store9(x, 21 * i + 6, X[1]); store6(x, 21 * i + 15, X[2])
