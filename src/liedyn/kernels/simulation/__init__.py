"""Right-hand side of a simulation: signals, control laws, contacts, accelerations."""
