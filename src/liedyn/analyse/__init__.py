"""What is done with motions and models."""
