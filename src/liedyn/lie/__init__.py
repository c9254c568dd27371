"""Algebra of SO(3) and SE(3) on numbers that are float64 or SIMD numbers (`Lanes`). It does not depend on robots.

Conventions, for the whole package:

| thing                | convention                                                                                    |
|----------------------|-----------------------------------------------------------------------------------------------|
| twist, wrench        | angular first: V = [w; v], F = [m; f]; in the frame of the body, unless the name has a suffix |
| pose T = (R, p)      | T_ab maps b to a: p_a = R p_b + p                                                             |
| rotation             | nine numbers by rows                                                                          |
| quaternion           | x y z w, unit norm, Hamilton product                                                          |
| symmetric 3x3        | xx, xy, xz, yy, yz, zz                                                                        |
| symmetric 6x6 X      | (A, H, M): X V = (A w + H v, H^T w + M v)                                                     |
| rigid body I         | (m, h, A): mass, first moment m c, second moment about the frame's origin                     |
| joint screw S        | (a, b): the twist (0 0 a, 0 0 b), about and along the z axis of the body                      |
| exponential          | on the right: q (+) x = q exp(x); x = [w; v] a body twist                                     |
| order of a free joint| q = px py pz qx qy qz qw, v = wx wy wz vx vy vz                                               |

Modules: `simd` numbers, `vectors`, `so3`, `se3`, `inertia`.
"""
