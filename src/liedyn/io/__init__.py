"""Files: reading, checking and writing, with the line and key of each finding. Imports `errors` and `model.description` only."""
