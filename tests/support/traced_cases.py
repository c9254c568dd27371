"""Functions that are traced for other languages: a robot for each, and what the public function returns."""
import numpy as np

import liedyn as ld
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.interop.traced_functions import FUNCTIONS
from zoo import model_of, state

OF_LOOPS = tuple(name for name in FUNCTIONS if name.startswith("constraint_"))


def robot_of(function: str, name: str = "ball") -> ld.Model:
    """Return a robot of the zoo, or one with a loop for functions of constraints."""
    return ld.load("robots/four_bar.yaml") if function in OF_LOOPS else model_of(name)


def function_options(model, function: str) -> dict:
    options = {"link": model.link_names[-1], "frame": "world", "prescribed": np.arange(model.nv) % 2 == 0}
    return {option: options[option] for option in FUNCTIONS[function].options if option in options}


def inputs_of(model, function: str, seed: int = 2) -> dict[str, np.ndarray]:
    q, v, a, tau = (x[0] for x in state(model, seed, (1,)))
    if model.nc and function not in OF_LOOPS:
        q, v, a = follow_couplings(model, q, v, a)
    values = {"q": q, "v": v, "a": a, "tau": tau, "x": v, "q0": q, "q1": ld.integrate(model, q, v), "v_r": a, "a_r": v}
    return {name: values[name] for name in FUNCTIONS[function].inputs}


def expected_of(model, function: str, inputs, options) -> tuple:
    """Return the results of the public function."""
    arguments = [options["prescribed"]] if "prescribed" in options else []
    others = {name: x for name, x in options.items() if name != "prescribed"}
    result = getattr(ld, function)(model, *inputs.values(), *arguments, **others)
    return tuple(result)[:len(FUNCTIONS[function].results)] if isinstance(result, tuple) else (result,)
