"""Simulation of one run: from a scenario to a `Result`.

Entry points are `run.run_scenario` and `run.simulate`. `hybrid_simulation` simulates segments between events.
"""
