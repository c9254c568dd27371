"""Computations along recorded motions, identification, linearization, equilibria."""
