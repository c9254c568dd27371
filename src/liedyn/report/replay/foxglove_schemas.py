"""JSON schemas of the messages that Foxglove draws, as far as they are written here. It knows them by their names.

Fields as in https://docs.foxglove.dev/docs/sdk/schemas.
"""
from __future__ import annotations

_NUMBER, _INTEGER, _TEXT, _TRUTH = ({"type": kind} for kind in ("number", "integer", "string", "boolean"))


def _record(title: str, **fields) -> dict:
    return {"title": title, "type": "object", "properties": fields}


def _many(items: dict) -> dict:
    return {"type": "array", "items": items}


_TIME, _DURATION = (_record(title, sec=_INTEGER, nsec=_INTEGER) for title in ("time", "duration"))
_VECTOR, _POINT = (_record(f"foxglove.{title}", x=_NUMBER, y=_NUMBER, z=_NUMBER) for title in ("Vector3", "Point3"))
_TURN = _record("foxglove.Quaternion", x=_NUMBER, y=_NUMBER, z=_NUMBER, w=_NUMBER)
_POSE = _record("foxglove.Pose", position=_VECTOR, orientation=_TURN)
_COLOUR = _record("foxglove.Color", r=_NUMBER, g=_NUMBER, b=_NUMBER, a=_NUMBER)
_SOLID = {"pose": _POSE, "size": _VECTOR, "color": _COLOUR}

_FRAME = _record("foxglove.FrameTransform", timestamp=_TIME, parent_frame_id=_TEXT, child_frame_id=_TEXT, translation=_VECTOR,
                 rotation=_TURN)
_ARROW = _record("foxglove.ArrowPrimitive", pose=_POSE, shaft_length=_NUMBER, shaft_diameter=_NUMBER, head_length=_NUMBER,
                 head_diameter=_NUMBER, color=_COLOUR)
_MANY_POINTS = {"points": _many(_POINT), "color": _COLOUR, "colors": _many(_COLOUR), "indices": _many(_INTEGER)}
_ENTITY = _record(
    "foxglove.SceneEntity", timestamp=_TIME, frame_id=_TEXT, id=_TEXT, lifetime=_DURATION, frame_locked=_TRUTH,
    metadata=_many(_record("foxglove.KeyValuePair", key=_TEXT, value=_TEXT)),
    arrows=_many(_ARROW),
    cubes=_many(_record("foxglove.CubePrimitive", **_SOLID)),
    spheres=_many(_record("foxglove.SpherePrimitive", **_SOLID)),
    cylinders=_many(_record("foxglove.CylinderPrimitive", **_SOLID, bottom_scale=_NUMBER, top_scale=_NUMBER)),
    lines=_many(_record("foxglove.LinePrimitive", type=_INTEGER, pose=_POSE, thickness=_NUMBER, scale_invariant=_TRUTH,
                        **_MANY_POINTS)),
    triangles=_many(_record("foxglove.TriangleListPrimitive", pose=_POSE, **_MANY_POINTS)),
    texts=_many({"type": "object"}), models=_many({"type": "object"}))
_DELETION = _record("foxglove.SceneEntityDeletion", timestamp=_TIME, type=_INTEGER, id=_TEXT)

TRANSFORMS = _record("foxglove.FrameTransforms", transforms=_many(_FRAME))
SCENE = _record("foxglove.SceneUpdate", deletions=_many(_DELETION), entities=_many(_ENTITY))
LOG = _record("foxglove.Log", timestamp=_TIME, level=_INTEGER, message=_TEXT, name=_TEXT, file=_TEXT, line=_INTEGER)


def columns_schema(names: list[str]) -> dict:
    """Of a message with a number for each name."""
    return {"title": "liedyn.Columns", "type": "object", "properties": {name: _NUMBER for name in names}}
