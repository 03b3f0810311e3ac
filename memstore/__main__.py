"""`python -m memstore` is the command `memstore`."""

from memstore.cli import main

if __name__ == "__main__":
    main()
