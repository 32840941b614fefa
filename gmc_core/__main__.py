"""``python -m gmc_core``: the same as the installed command ``gmc``."""

import sys

from gmc_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
