"""Sweeps over scenarios and trajectories. Entry point: `run_batch`."""
