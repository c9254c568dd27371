"""`python -m liedyn`."""
from liedyn.cli import main

if __name__ == "__main__":
    main()
