"""What a trace is written as: text of a compiler, or expressions of another library."""
