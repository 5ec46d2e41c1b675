import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cache_callers import ask, ask_in_a_process, counting_arrivals
from hypothesis import given, settings
from hypothesis import strategies as st

from genm import cache
from genm.errors import GenmWarning, InputError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GENM_CACHE", str(tmp_path / "store"))
    return tmp_path / "store"


def never():
    raise AssertionError("the entry was there, it should not be built again")


def the_entry(folder):
    (path,) = folder.glob("*/*/*.zip")
    return path


class TestContentKey:
    def test_types_of_equal_values_are_told_apart(self):
        values = [
            1,
            1.0,
            True,
            "1",
            b"1",
            None,
            "None",
            [1],
            [[1]],
            {"1": 1},
            {1},
            np.array(1),
            np.array([1]),
        ]
        assert len({cache.content_key(v) for v in values}) == len(values)

    def test_parts_do_not_run_into_each_other(self):
        assert cache.content_key("ab", "c") != cache.content_key("a", "bc")
        assert cache.content_key(["a"], "b") != cache.content_key("a", ["b"])
        assert cache.content_key("a", "b") != cache.content_key(["a", "b"])

    def test_dtype_and_shape_count_but_layout_does_not(self):
        a = np.arange(6.0).reshape(2, 3)
        same = [np.asfortranarray(a), a.astype(">f8"), np.repeat(a, 2, axis=1)[:, ::2]]
        assert {cache.content_key(b) for b in same} == {cache.content_key(a)}
        other = [a.T, a.reshape(3, 2), a.astype(np.float32), a.view(np.int64), a.ravel()]
        assert cache.content_key(a) not in {cache.content_key(b) for b in other}
        assert cache.content_key(np.zeros((0, 3))) != cache.content_key(np.zeros((3, 0)))

    def test_mappings_and_sets_have_no_order(self):
        assert cache.content_key({"a": 1, "b": 2}) == cache.content_key({"b": 2, "a": 1})
        assert cache.content_key({"a": 1, "b": 2}) != cache.content_key({"a": 2, "b": 1})
        words = [f"w{i}" for i in range(50)]
        assert cache.content_key(set(words)) == cache.content_key(frozenset(reversed(words)))

    def test_key_is_the_same_in_another_process(self):
        code = "from genm.cache import content_key as k; print(k({'x', 'y', 'z'}, {'b': 1.5}, '\\xe9'))"
        env = {**os.environ, "PYTHONHASHSEED": "77"}
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
        assert out.stdout.strip() == cache.content_key({"x", "y", "z"}, {"b": 1.5}, "é")

    def test_nan_and_signed_zero_are_values_like_others(self):
        assert cache.content_key(float("nan")) == cache.content_key(float("nan"))
        assert cache.content_key(0.0) != cache.content_key(-0.0)
        assert cache.content_key(np.float64(0.1)) == cache.content_key(0.1)

    @pytest.mark.parametrize("part", [object(), Path("x"), np.array([object()], dtype=object)])
    def test_what_has_no_content_is_refused(self, part):
        with pytest.raises(InputError, match="content_key: expected"):
            cache.content_key(part)

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
    def test_lists_of_text_share_a_key_only_if_they_are_equal(self, a, b):
        assert (cache.content_key(*a) == cache.content_key(*b)) == (a == b)


class TestFolder:
    def test_variable_overrides(self, own_cache):
        assert cache.cache_folder() == own_cache

    @pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG is the rule on other systems")
    def test_xdg_and_home(self, monkeypatch):
        monkeypatch.delenv("GENM_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/else")
        assert cache.cache_folder() == Path("/somewhere/else/genm")
        monkeypatch.setenv("XDG_CACHE_HOME", "")
        monkeypatch.setenv("HOME", "/home/of-two")
        assert cache.cache_folder() == Path("/home/of-two/.cache/genm")
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", "/home/of-one")
        assert cache.cache_folder() == Path("/home/of-one/.cache/genm")


class TestCached:
    def test_second_call_reads_the_same_arrays(self):
        made = {
            "scores": np.random.default_rng(1).normal(size=(5, 7)),
            "codes": np.arange(4, dtype=np.int32),
            "empty": np.zeros((0, 3), np.float32),
            "single": np.array(3.5),
            "names": np.array(["a", "bcd"]),
            "flags": np.array([True, False]),
        }
        first = cache.cached("scores", ("med", 3), lambda: made)
        second = cache.cached("scores", ("med", 3), never)
        assert first.keys() == second.keys() == made.keys()
        for name, array in made.items():
            assert second[name].dtype == array.dtype
            np.testing.assert_array_equal(second[name], array)

    def test_key_and_kind_both_count(self):
        calls = []

        def build():
            calls.append(1)
            return {"a": np.array([len(calls)])}

        for kind, key in [("x", (1,)), ("x", (2,)), ("y", (1,)), ("x", (1,))]:
            cache.cached(kind, key, build)
        assert len(calls) == 3

    def test_bytes_and_arrays_of_one_key_live_side_by_side(self):
        assert cache.cached_bytes("x", (1,), lambda: b"\0text") == b"\0text"
        assert cache.cached("x", (1,), lambda: {"a": np.ones(2)})["a"].tolist() == [1, 1]
        assert cache.cached_bytes("x", (1,), never) == b"\0text"

    def test_entry_tells_what_it_is_and_holds_no_pickle(self, own_cache):
        cache.cached("x", (1,), lambda: {"a": np.ones(2)})
        with zipfile.ZipFile(the_entry(own_cache)) as entry:
            meta = json.loads(entry.read("meta.json"))
        assert meta["kind"] == "x"
        assert meta["key"] == cache.content_key(1)
        assert meta["members"] == ["a.npy"]
        with pytest.raises(ValueError, match="pickle"):
            cache.cached("x", (2,), lambda: {"a": np.array([{}], dtype=object)})
        assert len(list(own_cache.glob("*/*/*.part"))) == 0

    def test_a_failing_build_leaves_nothing_and_frees_the_lock(self, own_cache):
        with pytest.raises(ZeroDivisionError):
            cache.cached("x", (1,), lambda: {"a": np.array([1 // 0])})
        assert cache.cache_size().entries == 0
        assert cache.cached("x", (1,), lambda: {"a": np.ones(1)})["a"].tolist() == [1]

    def test_builds_may_nest(self):
        def outer():
            inner = cache.cached("x", (1,), lambda: {"a": np.ones(1)})
            return {"b": inner["a"] + 1}

        assert cache.cached("x", (2,), outer)["b"].tolist() == [2]

    @pytest.mark.parametrize("kind", ["", "a/b", "..", "a b"])
    def test_kind_is_a_plain_name(self, kind):
        with pytest.raises(InputError, match="kind"):
            cache.cached(kind, (1,), never)

    def test_names_of_arrays_are_plain(self):
        with pytest.raises(InputError, match="plain name"):
            cache.cached("x", (1,), lambda: {"../a": np.ones(1)})


class TestBrokenEntries:
    @pytest.mark.parametrize(
        "damage",
        [
            lambda raw: b"",
            lambda raw: raw[: len(raw) // 2],
            lambda raw: b"not a zip at all",
            lambda raw: raw.replace(b"meta.json", b"atem.json"),
        ],
        ids=["empty", "cut", "foreign", "renamed"],
    )
    def test_is_built_again_and_said(self, own_cache, damage):
        cache.cached("x", (1,), lambda: {"a": np.arange(100)})
        path = the_entry(own_cache)
        path.write_bytes(damage(path.read_bytes()))
        with pytest.warns(GenmWarning, match="cannot be read") as said:
            again = cache.cached("x", (1,), lambda: {"a": np.arange(100)})
        assert len(said) == 1
        assert said[0].filename == __file__
        np.testing.assert_array_equal(again["a"], np.arange(100))
        cache.cached("x", (1,), never)

    @settings(deadline=None, max_examples=80)
    @given(st.integers(0, 10**6), st.integers(1, 255))
    @pytest.mark.filterwarnings("ignore::genm.errors.GenmWarning")
    def test_one_changed_byte_never_gives_other_numbers(self, place, change):
        array = np.arange(40, dtype=np.float64)
        cache.clear_cache()
        cache.cached("x", (1,), lambda: {"a": array})
        path = the_entry(cache.cache_folder())
        raw = bytearray(path.read_bytes())
        raw[place % len(raw)] ^= change  # the length differs by a digit of the time that building took
        path.write_bytes(raw)
        np.testing.assert_array_equal(cache.cached("x", (1,), lambda: {"a": array})["a"], array)

    def test_a_pickled_array_put_there_by_someone_is_not_loaded(self, own_cache):
        cache.cached("x", (1,), lambda: {"a": np.ones(1)})
        path = the_entry(own_cache)
        with zipfile.ZipFile(path, "w") as entry, entry.open("a.npy", "w") as member:
            np.lib.format.write_array(member, np.array([{}], dtype=object), allow_pickle=True)
        with zipfile.ZipFile(path, "a") as entry:
            entry.writestr("meta.json", json.dumps({"members": ["a.npy"]}))
        with pytest.warns(GenmWarning, match="pickle"):
            assert cache.cached("x", (1,), lambda: {"a": np.ones(1)})["a"].tolist() == [1]

    def test_a_cache_that_cannot_be_made_does_not_stop_the_work(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("GENM_CACHE", str(tmp_path / "file" / "below"))
        with pytest.warns(GenmWarning, match="not kept.*GENM_CACHE"):
            assert cache.cached("x", (1,), lambda: {"a": np.ones(1)})["a"].tolist() == [1]

    @pytest.mark.parametrize("fault", [OSError(37, "No locks available"), NotImplementedError("no flock")])
    def test_a_file_system_without_locks_still_keeps_the_entry(self, monkeypatch, fault):
        def refuse(*_, **__):
            raise fault

        monkeypatch.setattr(cache.FileLock, "acquire", refuse)
        assert cache.cached("x", (1,), lambda: {"a": np.ones(1)})["a"].tolist() == [1]
        cache.cached("x", (1,), never)

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_cannot_be_written_does_not_stop_the_work(self, own_cache):
        cache.cached("x", (1,), lambda: {"a": np.ones(1)})
        folder = the_entry(own_cache).parent
        folder.chmod(0o500)
        try:
            with pytest.warns(GenmWarning, match="Permission denied.*not kept.*GENM_CACHE") as said:
                assert cache.cached("x", (2,), lambda: {"a": np.ones(1)})["a"].tolist() == [1]
        finally:
            folder.chmod(0o700)
        assert len(said) == 1

    def test_a_full_disk_does_not_stop_the_work(self, monkeypatch, own_cache):
        def full(*args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(cache.np.lib.format, "write_array", full)
        with pytest.warns(GenmWarning, match="No space left on device"):
            assert cache.cached("x", (1,), lambda: {"a": np.ones(1)})["a"].tolist() == [1]
        assert list(own_cache.glob("*/*/*.part")) == []
        assert cache.cache_size().entries == 0


class TestTogether:
    def test_two_processes_build_once(self, tmp_path):
        context = multiprocessing.get_context("spawn")
        given = (str(tmp_path / "ledger"), 2, context.Semaphore(0))
        workers = [context.Process(target=ask_in_a_process, args=given) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [w.exitcode for w in workers] == [0, 0]
        assert (tmp_path / "ledger").read_text() == "built\n"

    def test_threads_build_once(self, tmp_path, monkeypatch):
        arrived = threading.Semaphore(0)
        monkeypatch.setattr(cache, "_locked", counting_arrivals(arrived))
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, str(tmp_path / "ledger"), 4, arrived) for _ in range(4)]
        for one in asked:
            one.result()
        assert (tmp_path / "ledger").read_text() == "built\n"


class TestSizeAndClear:
    def test_counts_entries_and_bytes_and_clears_them_only(self, own_cache):
        assert cache.cache_size() == cache.CacheSize(0, 0)
        assert cache.clear_cache() == cache.CacheSize(0, 0)
        cache.cached("x", (1,), lambda: {"a": np.zeros(1000)})
        cache.cached_bytes("y", (1,), lambda: b"z" * 500)
        (own_cache / "mine.txt").write_text("a file of the user")
        size = cache.cache_size()
        assert size.entries == 2
        assert 8500 < size.bytes < 11000
        assert cache.clear_cache() == size
        assert cache.cache_size() == cache.CacheSize(0, 0)
        assert [p.name for p in own_cache.iterdir()] == ["mine.txt"]


class TestDamage:
    """An entry is used only if it is what was stored under its key."""

    def stored(self, folder: Path, kind: str = "scores") -> Path:
        cache.cached(kind, ["key"], lambda: {"a": np.arange(6.0)})
        return the_entry(folder)

    def rewritten(
        self, path: Path, members: dict[str, Any], packing: int = zipfile.ZIP_STORED, **meta: Any
    ) -> None:
        """Write the entry again, whole and with right checksums."""
        with zipfile.ZipFile(path) as entry:
            known = json.loads(entry.read("meta.json")) | meta
        with zipfile.ZipFile(path, "w", packing) as entry:
            for name, array in members.items():
                with entry.open(name, "w") as file:
                    np.lib.format.write_array(file, array)
            entry.writestr("meta.json", json.dumps(known))

    @pytest.mark.parametrize(
        "array", [np.arange(6.0) + 1e-12, np.arange(6.0).reshape(2, 3), np.arange(6), np.zeros(0)]
    )
    def test_changed_content_is_built_again(self, own_cache: Path, array: Any) -> None:
        self.rewritten(self.stored(own_cache), {"a.npy": array})
        with pytest.warns(GenmWarning, match="its content has changed"):
            found = cache.cached("scores", ["key"], lambda: {"a": np.arange(6.0)})
        assert found["a"].tolist() == list(range(6))
        assert cache.cached("scores", ["key"], never)["a"].shape == (6,)

    def test_an_entry_under_another_key_is_built_again(self, own_cache: Path) -> None:
        path = self.stored(own_cache)
        other = path.with_name(f"{cache.content_key('other')}.zip")
        path.rename(other)
        with pytest.warns(GenmWarning, match="it belongs to another key"):
            found = cache.cached("scores", ["other"], lambda: {"a": np.zeros(1)})
        assert found["a"].tolist() == [0.0]

    def test_a_compressed_entry_is_not_unpacked(self, own_cache: Path) -> None:
        self.rewritten(self.stored(own_cache), {"a.npy": np.arange(6.0)}, zipfile.ZIP_DEFLATED)
        with pytest.warns(GenmWarning, match="it is compressed"):
            cache.cached("scores", ["key"], lambda: {"a": np.arange(6.0)})

    @settings(deadline=None, max_examples=150)
    @given(st.data())
    def test_whatever_stands_there_the_result_is_right(self, data: Any) -> None:
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
            patch.setenv("GENM_CACHE", folder)
            path = self.stored(Path(folder))
            content = bytearray(path.read_bytes())  # its length varies: it says how many seconds it took to build
            place = st.integers(0, 999)
            for _ in range(data.draw(st.integers(1, 4))):
                content[data.draw(place) % len(content)] = data.draw(st.integers(0, 255))
            path.write_bytes(content[: data.draw(place)])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GenmWarning)
                found = cache.cached("scores", ["key"], lambda: {"a": np.arange(6.0)})
            assert found["a"].tolist() == list(range(6))

    def test_what_a_killed_writer_left_is_removed(self, own_cache: Path) -> None:
        path = self.stored(own_cache)
        path.unlink()
        left = path.with_name(f"{path.stem[:16]}abcd.part")
        left.touch()
        self.stored(own_cache)
        assert not left.exists()

    def test_entries_of_an_older_layout_are_counted_and_cleared(self, own_cache: Path) -> None:
        old = own_cache / "v1" / "scores" / "x.zip"
        old.parent.mkdir(parents=True)
        old.write_bytes(b"old")
        assert cache.cache_size() == cache.CacheSize(1, 3)
        assert cache.clear_cache().entries == 1
        assert not old.parent.parent.exists()
