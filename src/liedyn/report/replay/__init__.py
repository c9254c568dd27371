"""A motion as one HTML file: `run_data` says what is shown, `page` writes it, the scripts beside it draw it in the browser."""
