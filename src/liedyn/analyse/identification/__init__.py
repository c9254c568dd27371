"""Parameters of a robot from a recorded motion."""
