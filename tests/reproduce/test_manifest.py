"""What a run was made from."""

import json

from genm import __version__
from genm.reproduce.page import manifest_of


def test_versions_seeds_and_hashes(found):
    manifest = manifest_of(found, "genm reproduce")
    json.dumps(manifest)
    assert manifest["versions"]["genm"] == __version__
    assert manifest["seeds"] == [3, 4]
    (data,), (scores,) = manifest["data"].values(), manifest["scores"].values()
    assert data == found.collections[0].facts.sha256
    assert len(data) == len(scores) == 64
    assert data != scores
