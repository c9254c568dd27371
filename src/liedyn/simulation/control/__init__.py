"""Control laws of a scenario bound to a model: of joints, elastic joints and task spaces, sampled, and their derivatives."""
