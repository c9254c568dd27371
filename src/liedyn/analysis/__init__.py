"""What is computed along recorded motions, identification, linearization, equilibria."""
