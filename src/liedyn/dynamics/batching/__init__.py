"""What is between a public function and a kernel: arguments, results, batches, threads.

Entry point: `calls`.
"""
