"""Parameters of a model, by which its dynamics is differentiated, or in which it is linear."""
