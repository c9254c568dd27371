"""The public functions: check, broadcast, allocate, call a kernel."""
