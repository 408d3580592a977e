import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "python")]
for needed in ("numpy", "pyarrow"):
    pytest.importorskip(needed)
