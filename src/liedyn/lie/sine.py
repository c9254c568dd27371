"""Sine and cosine by polynomials, for every number: plain Python, which `lanes` compiles and `recorded` runs.

The angle is reduced by Cody and Waite to at most pi/4; the polynomials are minimax. Error below 2.3e-16 absolute for |x| <
SINCOS_RANGE, beyond which the reduction loses digits."""

SINCOS_RANGE = 1e5
QUARTER_TURNS = 0.6366197723675814         # 2 / pi


def sincos_less_turns(x, k):
    """Sine and cosine of x - k pi/2, where k is the whole number nearest to x QUARTER_TURNS."""
    r = x - k * 1.5707963267341256
    r = r - k * 6.077100506303966e-11
    r = r - k * 2.0222662487959506e-21
    z = r * r
    s = r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (
        -1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * (
            -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))))
    c = 1.0 - 0.5 * z + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (
        2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 + z * (
            2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)))))
    return s, c
