"""Files: reading, checking and writing, with the line and key of each warning. Imports `errors` and `model.description` only."""
