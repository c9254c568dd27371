"""A robot or a scenario about one instant: at rest, linear systems, their checks."""
