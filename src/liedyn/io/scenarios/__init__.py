"""Scenario files. Entry point: `scenario_file`; `scenario` holds what it reads, as data."""
