"""Kernels as straight lines for one robot: recorded, written as LLVM, compiled, kept."""
