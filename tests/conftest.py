import os
from pathlib import Path

import pytest
from hypothesis import settings

# A random test says whether something is right, never whether it is quick: machines differ, and kernels compile.
settings.register_profile("genm", deadline=None)
settings.load_profile("genm")


@pytest.fixture(scope="session")
def smart_data():
    """The folder of the SMART collections; they are third-party data and no part of the project."""
    beside = Path(__file__).parents[2] / "shared" / "collections"
    folder = Path(os.environ.get("GENM_DATA") or beside)
    if not (folder / "med" / "MED.ALL").is_file():
        pytest.skip("needs the SMART collections: set GENM_DATA to the folder that holds med/, cran/, cisi/, cacm/")
    return folder
