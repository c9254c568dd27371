"""Public functions of robots with loops and couplings.

Entry points: `constraints`, `constrained_dynamics`, `assembly`, `mobility`. Code of open trees imports this package only to raise
errors.
"""
