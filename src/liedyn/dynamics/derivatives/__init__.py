"""Dynamics differentiated by the state, the inputs and the model."""
