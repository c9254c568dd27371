"""Frames as numbers, in the order of `dynamics.calling.frames.FRAMES`, which says what they are."""
LOCAL, LOCAL_WORLD_ALIGNED, WORLD = 0, 1, 2
