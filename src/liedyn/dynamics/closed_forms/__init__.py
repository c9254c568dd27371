"""Equations of motion as dense matrices."""
