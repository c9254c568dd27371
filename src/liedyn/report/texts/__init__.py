"""Words for people and plain data for programs."""
