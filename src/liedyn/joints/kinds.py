"""The three kinds of joint that kernels know. Every other joint is expanded into screws by the model builder.

| kind  | nq | nv | motion T = T0 · M(q)                    | S in the body frame |
|-------|----|----|-----------------------------------------|---------------------|
| SCREW | 1  | 1  | exp((0 0 a, 0 0 b) q)                   | (0 0 a, 0 0 b)      |
| BALL  | 4  | 3  | (R(q), 0), q = qx qy qz qw              | [1; 0]              |
| FREE  | 7  | 6  | (R(q), p), q = px py pz qx qy qz qw     | 1                   |

All three have a constant S in the body frame, so dS/dt = 0 and eta = ad_V S dq.
"""
SCREW, BALL, FREE = 0, 1, 2
NQ = (1, 4, 7)
NV = (1, 3, 6)

SINGULAR = 1e-13         # a pivot below this part of the inertia that it is made of is rounding: the joint has nothing to act on
FRICTION_SPEED = 1e-2    # rad/s or m/s: Coulomb friction is smoothed below it, so that it has derivatives
