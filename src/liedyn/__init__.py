"""liedyn: from a robot file to its motion and forces."""
