"""Recordings of simulations: right-hand sides, whole steps, their derivatives."""
