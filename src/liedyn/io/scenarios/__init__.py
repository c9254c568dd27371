"""Scenario files. Entry point: `scenario_file`, which reads them as the data classes of `scenario`."""
