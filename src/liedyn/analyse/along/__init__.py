"""What is computed along the rows of a trajectory file."""
