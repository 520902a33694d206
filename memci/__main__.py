"""``python -m memci`` is the command ``memci``."""

import sys

from memci.cli.app import main

sys.exit(main())
