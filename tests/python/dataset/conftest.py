import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
for needed in ("numpy", "pyarrow"):
    pytest.importorskip(needed)
