"""Time derivatives of any order."""
