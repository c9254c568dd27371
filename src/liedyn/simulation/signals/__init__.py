"""Signals of a scenario: compilation of expressions and curves into arrays for the kernels."""
