"""Between Python's arrays and the kernels: arguments, batches, threads, results, errors."""
