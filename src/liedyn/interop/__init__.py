"""Other libraries' arrays and derivatives. Each module needs its library, which liedyn does not install."""
