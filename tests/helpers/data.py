"""Where the open data sets lie that some tests read."""

import os
from pathlib import Path

DATA = Path(os.environ.get("TIMEDIFF_DATA", Path(__file__).parents[3] / "shared" / "data"))
