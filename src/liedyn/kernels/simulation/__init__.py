"""What a time step calls: signals, laws, accelerations."""
