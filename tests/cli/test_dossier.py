"""`timediff dossier`: from folders to what a steward signs; mistakes are one sentence."""

from pathlib import Path

from helpers.command_line import Run
from helpers.released import Released


def test_the_answers_and_what_is_missing_are_said(release: Released, tmp_path: Path, run: Run) -> None:
    code, out, _ = run("dossier", tmp_path / "out", *release.options(results="results", audit="audit"))
    assert code == 0
    assert "May the synthetic cohort leave the house?" in out
    lines = " ".join(out.split())
    assert "Run folder not audited. Give what this writes: timediff audit" in lines
    assert "Not evaluated. Give" not in lines
    assert (tmp_path / "out" / "dossier.html").is_file()
    code, out, _ = run("check", tmp_path / "out")
    assert code == 0
    assert "a dossier, as it was written" in " ".join(out.split())


def test_the_names_in_a_file_are_on_the_page(release: Released, tmp_path: Path, run: Run) -> None:
    (tmp_path / "about.toml").write_text('maker = "A. Researcher"\n')
    code, _, error = run("dossier", tmp_path / "out", *release.options(), "--about", tmp_path / "about.toml")
    assert (code, error) == (0, "")
    assert "A. Researcher" in (tmp_path / "out" / "dossier.html").read_text()


def test_mistakes_are_one_sentence(release: Released, tmp_path: Path, run: Run) -> None:
    (tmp_path / "about.toml").write_text("mkaer = 3")
    for options, words in (
        (release.options(run="run-2"), "was not sampled from RUN"),
        ([*release.options(), "--about", tmp_path / "about.toml"], "there is no setting mkaer"),
        ([*release.options(), "--about", tmp_path / "none.toml"], "could not be read"),
        (release.options(results="results-other"), "the results are of another TEST"),
    ):
        code, _, error = run("dossier", tmp_path / "out", *options)
        assert code == 2
        assert words in error
        assert "Traceback" not in error
        assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    code, _, error = run("dossier", tmp_path / "out", *release.options())
    assert code == 2
    assert "exists already" in error
