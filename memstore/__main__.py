"""`python -m memstore` is the command `memstore`, which begins here."""

import sys


def main() -> None:
    """Run the command line; a hook without it, since that takes longer to import than a hook may take."""
    if sys.argv[1:2] == ["hook"] and {"--serve", "--help", "-h"}.isdisjoint(sys.argv):
        from memstore.hook import main as run_hook  # noqa: PLC0415

        run_hook(sys.argv[2:])
    else:
        from memstore.cli import main as run_command  # noqa: PLC0415

        run_command()


if __name__ == "__main__":
    main()
