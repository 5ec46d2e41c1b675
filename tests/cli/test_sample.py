def test_the_files_are_written_and_kept(genm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = genm("sample", "demo")
    assert (found.code, found.out) == (0, "")
    assert found.err == "wrote demo/bm25.trec\nwrote demo/dense.trec\nwrote demo/qrels.txt\n"
    assert "genm: input: demo/bm25.trec: expected no such file; found one." in genm("sample", "demo").fault
    assert genm("sample", "demo", "--force") == found
    assert genm("evaluate", "demo/qrels.txt", "demo/bm25.trec").code == 0
