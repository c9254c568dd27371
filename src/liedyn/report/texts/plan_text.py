"""What a run would do, in a few lines."""
from __future__ import annotations


def plan_text(plan: dict) -> str:
    """Of `Prepared.report`."""
    robot, joints, size = plan["robot"], plan["joints"], plan["bytes"]
    closed = f", {robot['constraint_rows']} constraint rows" if robot["constraint_rows"] else ""
    modes = {"prescribed": "prescribed", "given_force": "with a given force", "free": "without force"}
    counts = [f"{len(joints[mode])} {told}" for mode, told in modes.items() if joints[mode]]
    counts += [f"law {joints['law']}"] if joints["law"] else []
    integrator = dict(plan["integrator"])
    method = integrator.pop("method")
    options = ", ".join(f"{key} {value:g}" for key, value in integrator.items())
    rows = [("robot", f"{robot['name']} from {robot['file']}: nq {robot['nq']}, nv {robot['nv']}, {robot['base']} base{closed}"),
            ("joints", ", ".join(counts) or "none"),
            ("motion", f"{plan['duration']:g} s, {plan['rows']} rows, {steps_text(plan['steps'])}"),
            ("integrator", f"{method}: {options}; {plan['why']}"),
            ("size", f"about {_size(size['memory'])} of memory, {_size(size['disk'])} of disk")]
    if plan["events"]:
        rows.insert(2, ("events", ", ".join(plan["events"])))
    if plan["folder"] is not None:
        rows.append(("folder", f"{plan['folder']} would be written"))
    return "\n".join(f"{name:12}{text}" for name, text in rows)


def steps_text(steps: int | None) -> str:
    """steps: None for an adaptive method."""
    return "as many steps as the tolerances ask for" if steps is None else f"{steps} steps"


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
