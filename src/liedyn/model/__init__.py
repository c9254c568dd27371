"""Robots as plain data: the description, its validation, and the model built from it.

Entry points: `model.Model`, `build`, `description.Robot`. This package uses no compiled code.
"""
