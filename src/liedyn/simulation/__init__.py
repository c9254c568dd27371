"""One run of a scenario: from its file to a `Result`.

Entry points: `run.run_scenario`, `run.simulate`; `hybrid_simulation` goes from event to event.
"""
