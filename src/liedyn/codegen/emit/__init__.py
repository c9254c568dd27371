"""From tapes to code: LLVM and C text, machine code, calls from Python."""
