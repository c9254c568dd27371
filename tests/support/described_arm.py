"""An arm that is described in Python."""
import liedyn as ld


def arm(**changes) -> ld.Robot:
    """Return an arm of four joints whose links are capsules."""
    links = [ld.Link("turret", density=2700, com=[0, 0, 0.05], shape=ld.Shape.cylinder(radius=0.06, length=0.1)),
             ld.Link("upper", density=2700, com=[0, 0, 0.2], shape=ld.Shape.capsule(radius=0.03, length=0.4)),
             ld.Link("lower", density=2700, com=[0, 0, 0.15], shape=ld.Shape.capsule(radius=0.025, length=0.3)),
             ld.Link("hand", mass=0.3, com=[0, 0, 0.05], inertia=[4e-4, 4e-4, 1e-4])]
    drive = {"damping": 0.1, "friction": 0.05, "armature": 0.02}
    joints = [ld.Joint("yaw", "revolute", parent="world", child="turret", axis=[0, 0, 1], limits=(-3, 3), **drive),
              ld.Joint("shoulder", "revolute", "turret", "upper", origin=[0, 0, 0.1], axis=[0, 1, 0], limits=(-2, 2), **drive),
              ld.Joint("elbow", "revolute", "upper", "lower", origin=[0, 0, 0.4], axis=[0, 1, 0], limits=(-2, 2), **drive),
              ld.Joint("wrist", "revolute", "lower", "hand", origin=[0, 0, 0.3], axis=[1, 0, 0], limits=(-2, 2), damping=0.01)]
    return ld.Robot("arm", links=links, joints=joints, **changes)
