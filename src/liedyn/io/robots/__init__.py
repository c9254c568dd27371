"""Robot files: URDF, YAML, MJCF, and their shapes. Entry points: `urdf`, `robot_yaml`, `mjcf`."""

# Parts of MJCF files that change the motion, and that a `Robot` does not have: errors, unless the caller has them left out.
IGNORABLE = {"fluid": "forces of a fluid", "gravcomp": "compensation of gravity", "tendons": "forces of tendons",
             "free-joints": "armature and friction of free joints",
             "springs": "springs of ball and free joints, springdamper and springyield",
             "couplings": "constraints that are not linear", "plugins": "plugins of bodies", "flex": "deformable bodies"}
