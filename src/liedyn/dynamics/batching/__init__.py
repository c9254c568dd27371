"""Arguments, results, batches and threads of public functions that call kernels.

Entry point: `calls`.
"""
