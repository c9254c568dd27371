"""Reading, checking and writing of files. Warnings have the line and key. Imports only `errors` and `model.description`."""
