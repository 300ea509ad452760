"""`progress=`: what it takes, and that nothing that goes wrong in it ends the work."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tqdm import tqdm

from timediff.errors import Stopped, TimeDiffError
from timediff.runtime import bars
from timediff.runtime.progress import silent
from timediff.runtime.watching import watched


def work(given: object, steps: int = 3) -> list[int]:
    done = []
    with watched(given, "working") as progress:
        for step in range(1, steps + 1):
            done.append(step)
            progress(step, steps, loss=0.5, rate=9.0)
    return done


def test_a_function_is_told_what_it_takes() -> None:
    everything: list[tuple[Any, ...]] = []
    positions: list[tuple[int, int]] = []
    losses: list[float] = []
    work(lambda done, total, **values: everything.append((done, total, values)))
    work(lambda *given: positions.append(given))
    work(lambda done, total, loss=0.0: losses.append(loss))
    assert everything[-1] == (3, 3, {"loss": 0.5, "rate": 9.0})
    assert positions == [(1, 3), (2, 3), (3, 3)]
    assert losses == [0.5, 0.5, 0.5]


def test_print_is_a_function_too(capsys: pytest.CaptureFixture[str]) -> None:
    work(print)
    assert capsys.readouterr().out == "1 3\n2 3\n3 3\n"


def test_a_class_of_tqdm_and_a_bar_of_tqdm_are_filled(capsys: pytest.CaptureFixture[str]) -> None:
    work(tqdm)
    assert "working: 100%" in capsys.readouterr().err
    mine = tqdm(file=io.StringIO())
    work(mine)
    assert (mine.n, mine.total, mine.disable) == (3, 3, False)
    assert "loss=0.5" in str(mine)
    mine.close()


def test_an_error_in_a_callback_ends_the_callback_alone() -> None:
    calls: list[int] = []

    def broken(done: int, total: int) -> None:
        calls.append(done)
        raise KeyError("loss")

    with pytest.warns(RuntimeWarning, match=r"raised KeyError \('loss'\): working goes on without it") as warned:
        assert work(broken) == [1, 2, 3]
    assert calls == [1]
    assert len(warned) == 1


def test_a_bar_that_cannot_be_closed_does_no_harm() -> None:
    class Unclosable:
        n = total = 0

        def __init__(self, total: int, desc: str) -> None: ...
        def set_postfix(self, values: dict[str, float], refresh: bool) -> None: ...
        def update(self, more: int) -> None:
            self.n += more

        def close(self) -> None:
            raise OSError("closed already")

    assert work(Unclosable) == [1, 2, 3]


@pytest.mark.parametrize("wish", [Stopped("enough"), KeyboardInterrupt()])
def test_who_wants_to_stop_can(wish: BaseException) -> None:
    def stop(done: int, total: int) -> None:
        raise wish

    with pytest.raises(type(wish)):
        work(stop)


@pytest.mark.parametrize("given", ["yes", 3, lambda done: None])
def test_what_cannot_be_told_is_refused_before_the_work(given: object) -> None:
    with pytest.raises(TimeDiffError, match="expected True, False, a tqdm class or bar, or a function"):
        work(given)


def test_without_a_screen_nothing_is_shown_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    work(None)
    work(False)
    assert capsys.readouterr() == ("", "")
    work(True)
    assert "working: 100%" in capsys.readouterr().err


def test_in_a_terminal_a_bar_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    work(None)
    shown = capsys.readouterr().err
    assert "working" in shown
    assert "100%" in shown


def test_in_a_notebook_html_is_drawn_again_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    shell = type("ZMQInteractiveShell", (), {})()
    place = SimpleNamespace(update=lambda data, raw: drawn.append(data["text/html"]))
    display = SimpleNamespace(display=lambda data, raw, display_id: drawn.append(data["text/html"]) or place)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert bars.in_notebook()
    work(None)
    assert drawn[0] == '<progress value="0" max="1"></progress> working'
    assert '<progress value="3" max="3">' in drawn[-1]
    assert "loss 0.500" in drawn[-1]


def test_who_is_guarded_already_is_not_guarded_twice() -> None:
    with watched(lambda done, total: None, "outer") as outer, watched(outer, "inner") as inner:
        assert inner is outer
    with watched(silent, "nothing") as nobody:
        assert nobody is silent
