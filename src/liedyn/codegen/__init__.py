"""Code for one robot: kernels are traced with its constants, written as LLVM text, compiled and cached."""
