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

# Marks of bodies, a bit each: it has children; it is the child of its parent that a backward pass meets first; its screw turns
# about its axis; moves along it; turns only, without armature: free of it, the body has no inertia about the axis.
HAS_CHILDREN, LAST_CHILD, TURNS, SLIDES, BARE = 1, 2, 4, 8, 16

SINGULAR = 1e-13         # a pivot below this part of the inertia that it is made of is rounding: the joint has nothing to act on
FRICTION_SPEED = 1e-2    # rad/s or m/s, a number of the model of friction, in SI units as files are: Coulomb friction is smoothed
                         # below it, so that it has derivatives

# Kinds of constraint. A closure joins frame A to frame B; its rows are components, in frame B, of the twist of B relative to A.
WELD, REVOLUTE, PRISMATIC, CYLINDRICAL, PLANAR, BALL_CLOSURE, UNIVERSAL, DISTANCE, ROLLING, COUPLING = range(10)
ROWS = (6, 5, 5, 4, 3, 3, 4, 1, 3, 1)
# name in files -> kind, and a label a row; the empty label where there is one row only
LOOP_KINDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "weld": (WELD, ("wx", "wy", "wz", "vx", "vy", "vz")),
    "revolute": (REVOLUTE, ("wx", "wy", "vx", "vy", "vz")),         # axis z of both frames
    "prismatic": (PRISMATIC, ("wx", "wy", "wz", "vx", "vy")),       # axis z
    "cylindrical": (CYLINDRICAL, ("wx", "wy", "vx", "vy")),         # axis z
    "planar": (PLANAR, ("wx", "wy", "vz")),                         # normal z
    "ball": (BALL_CLOSURE, ("vx", "vy", "vz")),
    "universal": (UNIVERSAL, ("w", "vx", "vy", "vz")),              # x of A stays perpendicular to y of B
    "distance": (DISTANCE, ("",)),                                  # between the origins: a rod
    "rolling": (ROLLING, ("vx", "vy", "vz")),                       # a disc about z of B, or a sphere, on the plane z = 0 of A
    "coupling": (COUPLING, ("",)),                                  # of coordinates: gears, mimic
}
