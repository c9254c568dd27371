"""Many runs side by side from Python, and their adjoints. Entry points: `rollout.rollout`, `rollout.Rollout`."""
