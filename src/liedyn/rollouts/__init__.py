"""Many runs in one batch from Python, and their adjoints. Entry points: `rollout.rollout`, `rollout.Rollout`."""
