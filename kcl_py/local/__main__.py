"""``python -m kcl_py.local`` is ``kcl local``."""

import sys

from kcl_py.cli.app import main

if __name__ == "__main__":
    main(["local", *sys.argv[1:]])
