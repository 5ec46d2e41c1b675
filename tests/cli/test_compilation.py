import pytest
from numba.core import event
from thread_counts import use_threads

from genm.cli import compilation, warmup
from genm.cli.compilation import MESSAGE, announce_compilation, compile_in_background

KIND = "numba:compile"


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(compilation, "time", clock)
    return clock


def start():
    event.start_event(KIND, data={})


def end():
    event.end_event(KIND, data={})


def test_says_nothing_where_nothing_is_compiled():
    said = []
    with announce_compilation(said.append):
        pass
    assert said == []


def test_says_it_once_when_compiling_takes_its_time(clock):
    said = []
    with announce_compilation(said.append):
        for _ in range(8):
            start()
            clock.now += 0.3
            end()
    assert said == [MESSAGE]


def test_a_moment_passes_without_a_word(clock):
    said = []
    with announce_compilation(said.append):
        for _ in range(3):
            start()
            clock.now += 0.2
            end()
    assert said == []


def test_work_between_compilations_does_not_count(clock):
    said = []
    with announce_compilation(said.append):
        for _ in range(3):
            start()
            clock.now += 0.1
            end()
            clock.now += 60.0
    assert said == []


def test_kernels_inside_kernels_count_once_and_may_tell(clock):
    said = []
    with announce_compilation(said.append):
        start()
        clock.now += 0.4
        start()
        assert said == []
        clock.now += 0.4
        start()
        assert said == [MESSAGE]


def test_stops_listening(clock):
    said = []
    with announce_compilation(said.append):
        pass
    start()
    clock.now += 9.0
    start()
    assert said == []


def test_a_real_compilation_is_heard(monkeypatch):
    import numba

    monkeypatch.setattr(compilation, "PATIENCE", -1.0)
    said = []
    with announce_compilation(said.append):
        assert numba.njit(lambda x: x + 1)(1) == 2
    assert said == [MESSAGE]


@pytest.mark.parametrize("exact", [False, True])
def test_no_process_is_started_for_kernels_that_are_on_disk(monkeypatch, exact):
    """The kernels of the exact search are kept in another folder than those of the smooth fusers."""
    warmup.compile_learning()
    if exact:
        warmup.compile_exact()
    monkeypatch.setattr(compilation.subprocess, "Popen", None)
    with compile_in_background(exact=exact) as wait:
        wait()


def test_no_process_is_started_on_one_core(monkeypatch, tmp_path):
    use_threads(monkeypatch, "1")
    monkeypatch.setattr(compilation, "Path", lambda _: tmp_path)
    monkeypatch.setattr(compilation.subprocess, "Popen", None)
    with compile_in_background() as wait:
        wait()


@pytest.mark.parametrize("exact", [False, True])
def test_a_process_is_started_for_kernels_that_are_not(monkeypatch, tmp_path, exact):
    class Worker:
        waited = 0

        def wait(self):
            self.waited += 1

        def poll(self):
            return 0 if self.waited else None

    started, worker = [], Worker()
    use_threads(monkeypatch, "2")
    monkeypatch.setattr(compilation, "Path", lambda _: tmp_path)
    monkeypatch.setattr(compilation.subprocess, "Popen", lambda words, **_: started.append(words) or worker)
    with compile_in_background(exact=exact) as wait:
        if compilation._is_cached(exact):
            pytest.skip("no folder can keep kernels here")
        wait()
    assert [words[1:] for words in started] == [["-m", "genm.cli.warmup", *(["exact"] if exact else [])]]
    assert worker.waited == 1
