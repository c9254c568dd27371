"""`python -m liedyn`."""
from liedyn.cli.app import main

if __name__ == "__main__":
    main()
