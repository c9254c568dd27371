"""Control laws of a scenario, bound to a model: for joints, elastic joints and task space, sampled control, and derivatives."""
