"""Public functions of dynamics: they check and broadcast arguments, allocate results and call kernels."""
