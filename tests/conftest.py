import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smart_data():
    """The folder of the SMART collections; they are third-party data and no part of the project."""
    beside = Path(__file__).parents[2] / "shared" / "collections"
    folder = Path(os.environ.get("GENM_DATA") or beside)
    if not (folder / "med" / "MED.ALL").is_file():
        pytest.skip("needs the SMART collections: set GENM_DATA to the folder that holds med/, cran/, cisi/, cacm/")
    return folder
