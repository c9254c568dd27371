"""Arrays and derivatives of other libraries. Each module needs its library, which liedyn does not install."""
