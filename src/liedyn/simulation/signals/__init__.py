"""Signals of a scenario: text and curves into arrays for compiled code."""
