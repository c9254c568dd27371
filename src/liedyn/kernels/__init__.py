"""Algorithms over trees, one a file: pure functions of arrays, one source for float64 and Lanes, no allocation."""
