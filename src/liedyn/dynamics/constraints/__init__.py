"""Public functions of robots with loops and couplings.

Entry points: `constraints`, `constrained_dynamics`, `assembly`. Open trees do not import it but to refuse constraints by name.
"""
