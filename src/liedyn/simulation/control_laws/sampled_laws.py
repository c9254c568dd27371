"""Laws of a sampled controller, bound to a model: what it computes at a sample, and where its torque acts until the next.

Two problems are made of a scenario: that of the motion, in which the laws' torques are constants, and that of the laws, which
are continuous in it. The controller evaluates the second at its samples and writes the torques into the first.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from liedyn.codegen.steps.signals import instructions
from liedyn.errors import ScenarioError
from liedyn.integrators.problem import Problem
from liedyn.io.scenarios.sampling import MEASURED, Sampling
from liedyn.io.scenarios.scenario import Constant, Pd, Rule, Scenario, Torque
from liedyn.kernels.simulation.signals import OF_STATE, TORQUE
from liedyn.simulation.control_laws.control import drives_motors
from liedyn.simulation.joint_values import coordinates_of
from liedyn.simulation.names import bind_joints, phase_rules

_NOTHING = Torque(Constant(0.0))


@dataclass(frozen=True, eq=False)
class SampledLaws:
    """law     the problem whose torques at a state are those that the controller asks for, but for limits
    held       (nv,) bool: coordinates that it acts on
    signal     (nv,) int64: of the problem of the motion, its torques: constants, or straight lines; -1: none
    limit      (nv,) of the torque [N m | N]
    resolution   of q, v and tau, each (nv,); 0: exact
    all_along  whether the laws are those of the whole run, without other phases
    """

    law: Problem
    held: np.ndarray
    signal: np.ndarray
    limit: np.ndarray
    resolution: tuple[np.ndarray, np.ndarray, np.ndarray]
    all_along: bool

    def begun(self, begun: Mapping[str, float]) -> SampledLaws:
        """As `Problem.begun`."""
        return replace(self, law=self.law.begun(begun))

    @property
    def targets(self) -> np.ndarray:
        """(nv,) signals of the desired motions of pd, pid and computed torque, -1: none."""
        target, laws = self.law.schedule.target, self.law.joint_laws
        return target if laws is None else np.maximum(target, laws.signal)

    @property
    def references(self) -> np.ndarray:
        """The same, where they are functions of time."""
        return np.array([k if k >= 0 and not reads_state(self.law.signals, k) else -1 for k in self.targets])


def compile_sampled(compile_schedule: Callable, scenario: Scenario, model, rules: dict[str, Rule] | None, stops, resting,
                    initial: bool):
    """As `compile_schedule` with these arguments, which it is given, since it calls this."""
    sampling, control = scenario.sampling, scenario.control
    if control is not None and drives_motors(control, model):
        raise ScenarioError(f"sampling is not available for the law {control.law} of elastic joints", place=sampling.place,
                            expected="no key sampling")
    if scenario.limits is not None and scenario.limits.mode == "hard":
        raise ScenarioError("hard stops cannot be combined with sampling", place=scenario.limits.place,
                            expected="compliant stops, limits: stop")
    rules = phase_rules(scenario, model, scenario.phases[0].name if scenario.phases else None) if rules is None else rules
    feedback = {name: rule for name, rule in rules.items() if isinstance(rule.value, Pd)}
    unwatched = tuple(replace(event, when=None, touch=None) for event in scenario.events)          # their times may be read
    of_law = replace(scenario, sampling=None, forces=(), actuators=(), contacts=None, events=unwatched, limits=None)
    law, _, warnings = compile_schedule(of_law, model, rules, initial=initial)
    held = _driven(law.joint_laws, model) | coordinates_of(feedback, model)
    if sampling.function is not None:
        held |= np.asarray(law.schedule.level == TORQUE)
    added = {name: Rule(name, _NOTHING) for name in model.joint_names
             if held[model.v_index(name)].any() and name not in feedback and name in rules}
    if added:                                                  # torques of the schedule act continuously
        other = compile_schedule(of_law, model, rules | added, initial=False).problem
        law = replace(other, q=law.q, v=law.v)
    everywhere = (*scenario.joints, *(rule for phase in scenario.phases for rule in phase.joints))
    if not (held.any() or control or sampling.function or any(isinstance(rule.value, Pd) for rule in everywhere)):
        raise ScenarioError("the sampled controller has no law", place=sampling.place,
                            expected="control, a joint with torque: {pd: …} or {pid: …}, or run_scenario(…, controller=f)")
    limit = np.full(model.nv, np.inf) if law.joint_laws is None else law.joint_laws.limit.copy()
    if law.joint_laws is not None:
        law = replace(law, joint_laws=law.joint_laws._replace(limit=np.where(held, np.inf, limit)))
    motion_rules = rules | {name: Rule(name, _NOTHING) for name in feedback}
    motion, contact_names, more = compile_schedule(replace(scenario, sampling=None, control=None), model, motion_rules, stops,
                                                   resting, initial=False, held=held, ramps=sampling.hold == "first")
    sampled = SampledLaws(law, held, motion.joint_laws.held, limit, _resolutions(sampling, model),
                          not (scenario.phases or law.clocks))
    motion = replace(motion, q=law.q, v=law.v, sampled=sampled, clocks=tuple(dict.fromkeys((*motion.clocks, *law.clocks))))
    return motion, contact_names, tuple(dict.fromkeys((*warnings, *more)))


def reads_state(signals, k: int) -> bool:
    """Whether signal k is more than a function of time."""
    return bool(np.isin(instructions(signals, k) & 255, OF_STATE).any())


def _driven(laws, model) -> np.ndarray:
    """(nv,) coordinates on which `control` acts, or gravity of a pd law."""
    return np.zeros(model.nv, dtype=bool) if laws is None else laws.gravity | (laws.row >= 0) | laws.driven


def _resolutions(sampling: Sampling, model) -> tuple[np.ndarray, ...]:
    """Of joints of one coordinate where positions and velocities are measured: encoders."""
    found = []
    for key in MEASURED:
        values = np.zeros(model.nv)
        for name, rule in bind_joints(getattr(sampling, key), model).items():
            joint = model.joint(name)
            if key == "tau" or joint.screws is not None:
                values[joint.v] = rule.value
            elif rule.pattern == name:
                raise ScenarioError(f"joint {name} is a {joint.type} joint: what is measured of it is not quantized",
                                    place=rule.place)
        found.append(values)
    return tuple(found)
