"""A dossier says what its folders say, refuses what does not belong together, and guesses nothing."""

import html
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.pages import Elements
from helpers.released import Released
from timediff.cli.check import check
from timediff.data.cohort import read_cohort
from timediff.data.provenance import CohortProvenance
from timediff.documents.about import About
from timediff.documents.answers import answers, limits
from timediff.documents.dossier import dossier
from timediff.errors import TimeDiffError
from timediff.evaluation.audit_results import Audit
from timediff.report.audit_verdicts import audit_verdicts

FILES = {"dossier.html", "dossier.json", "model_card.md", "model_card.json", "datasheet.md", "croissant.json"}
HOSTILE = "<script>alert(1)</script>\n---\n# Not a heading"
HEADINGS = [
    "1. In one sentence each",
    "2. What it is, who made it and how",
    "3. What was tested against which attacker",
    "4. What it is good for",
    "5. Groups of patients",
    "6. Known limits and what risk is left",
    "7. Permitted uses, conditions, expiry",
    "8. Decision",
]


def test_it_is_a_folder_with_every_document_and_a_manifest_of_all(release: Released, tmp_path: Path) -> None:
    dossier(tmp_path / "out", **release.given(results="results"), audit=release.home / "audit")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES | {"manifest.json"}
    assert set(json.loads((tmp_path / "out" / "manifest.json").read_text())["files"]) == FILES
    assert check(tmp_path / "out").intact
    for name in sorted(FILES):
        shutil.copytree(tmp_path / "out", tmp_path / name)
        (tmp_path / name / name).write_text((tmp_path / name / name).read_text() + " ")
        assert not check(tmp_path / name).intact, name


def test_the_page_has_its_parts_in_order_and_needs_no_network_nor_script(release: Released, tmp_path: Path) -> None:
    dossier(tmp_path / "out", **release.given(results="results"), audit=release.home / "audit")
    text = (tmp_path / "out" / "dossier.html").read_text()
    assert re.findall(r"<h2>(.*?)</h2>", text) == HEADINGS
    for tag, attributes in Elements(text).found:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base", "details")  # paper opens nothing
        assert not {"src", "href"} & attributes.keys()
    assert "plotly.js v" not in text
    assert text.count('<span class="box"></span> yes</td>') == 2
    assert str(release.home) not in text


def test_it_says_which_run_seed_and_version_made_it_and_from_which_stays(release: Released, tmp_path: Path) -> None:
    found = dossier(tmp_path / "out", **release.given())
    text = (tmp_path / "out" / "dossier.html").read_text()
    digests = [read_cohort(release.home / name).digest() for name in ("train", "test", "synthetic")]
    for said in (*digests, found.identity, "seed 1", "model.hidden = 8", "200 real stays"):
        assert said in text, said
    table = json.loads((tmp_path / "out" / "dossier.json").read_text())
    assert list(table["hashes"].values()) == [one[:16] for one in (digests[2], found.identity, *digests[:2])]


def test_without_results_and_audit_it_says_so_and_how_to_make_them(release: Released, tmp_path: Path) -> None:
    found = dossier(tmp_path / "out", **release.given())
    assert [one.word for one in answers(found)] == ["not evaluated"] * 2 + ["not audited"] * 2
    assert [one.sentence.split(":")[0] for one in answers(found)] == ["Not evaluated"] * 2 + ["Not audited"] * 2
    assert list(found.missing) == ["not evaluated", "synthetic cohort and run folder not audited"]
    assert all(str(release.home) in command for command in found.missing.values())
    text = html.unescape((tmp_path / "out" / "dossier.html").read_text())
    assert "timediff evaluate --train TRAIN --test TEST --synthetic SYN --out RESULTS" in text
    assert "timediff audit TRAIN TEST AUDIT --run RUN" in text


def test_answers_are_the_verdicts_of_what_was_given(release: Released, tmp_path: Path) -> None:
    audits = [release.home / name for name in ("audit", "audit-run")]
    found = dossier(tmp_path / "out", **release.given(results="results"), audit=audits)
    cohort, run = answers(found)[2:]
    own = [audit_verdicts(Audit.read(path)) for path in audits]
    assert (cohort.word, run.word) == (own[0][0].word, own[1][1].word)
    assert f"Audit: {own[0][0].sentences[0]}" in cohort.reasons
    assert found.missing == {}
    alone = dossier(tmp_path / "alone", **release.given(), audit=audits[0])
    assert answers(alone)[2].word == own[0][0].word
    assert not any("not audited: no attack" in one for one in limits(found))
    assert any("The run folder was not audited" in one for one in limits(alone))


def test_a_copied_stay_is_said_though_nothing_was_evaluated(release: Released, tmp_path: Path) -> None:
    """By hashes alone: this takes no time, and nobody should sign without it."""
    train, made = read_cohort(release.home / "train"), read_cohort(release.home / "synthetic")
    series = {name: np.concatenate([train.series[name][:3], made.series[name][3:]]) for name in made.series}
    static = {name: np.concatenate([train.static[name][:3], made.static[name][3:]]) for name in made.static}
    replace(made, series=series, static=static).write(tmp_path / "copied")
    found = dossier(tmp_path / "out", **release.given(synthetic=tmp_path / "copied"))
    assert found.copies == 3
    assert answers(found)[2].sentence.startswith("No: 3 of its stays equal a stay of the training data")
    clean = dossier(tmp_path / "clean", **release.given())
    assert clean.copies == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": "other"}, "the run was not trained on TRAIN"),
        ({"run": "run-2"}, "was not sampled from RUN: by its provenance it is from the run"),
        ({"synthetic": "test"}, "does not say that it is synthetic"),
        ({"test": "train"}, "TRAIN and TEST share what they must not"),
        ({"results": "results-2"}, "the results are of another synthetic cohort"),
        ({"results": "results-other"}, "the results are of another TEST"),
        ({"audit": "audit-2"}, "the audit is of another synthetic cohort"),
        ({"audit": "audit-other"}, "the audit is of another training cohort"),
        ({"audit": "audit-run-2"}, "the audit is of another run"),
        ({"run": "synthetic"}, "is not a run folder but a synthetic cohort"),
        ({"synthetic": "nowhere"}, "is not a folder"),
        ({"results": "audit"}, "holds no results"),
        ({"audit": "results"}, "holds no audit"),
        ({"horizon": 3}, "the run was not trained on TRAIN"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    release: Released, tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(TimeDiffError, match=re.escape(words)):
        dossier(tmp_path / "out", **release.given(**changes))
    assert list(tmp_path.iterdir()) == []


def test_two_audits_of_one_thing_are_refused(release: Released, tmp_path: Path) -> None:
    shutil.copytree(release.home / "audit", tmp_path / "again")
    with pytest.raises(TimeDiffError, match="two audits attacked the synthetic cohort"):
        dossier(tmp_path / "out", **release.given(), audit=[release.home / "audit", tmp_path / "again"])


def test_a_cohort_joined_of_several_runs_is_refused(release: Released, tmp_path: Path) -> None:
    made = read_cohort(release.home / "synthetic")
    replace(made, provenance=CohortProvenance(generator="timediff", derived=True)).write(tmp_path / "joined")
    with pytest.raises(TimeDiffError, match="several runs, or one that it does not name"):
        dossier(tmp_path / "out", **release.given(synthetic=tmp_path / "joined"))


def test_a_part_of_what_was_sampled_is_said_to_be_one(release: Released, tmp_path: Path) -> None:
    read_cohort(release.home / "synthetic").take(np.arange(60)).write(tmp_path / "part")
    found = dossier(tmp_path / "out", **release.given(synthetic=tmp_path / "part"))
    assert any("how the stays were chosen is unknown" in one for one in limits(found))


def test_an_edited_folder_is_refused_or_said(release: Released, tmp_path: Path) -> None:
    for name in ("synthetic", "run"):
        shutil.copytree(release.home / name, tmp_path / name)
    schema = tmp_path / "synthetic" / "schema.toml"
    schema.write_text(schema.read_text() + "\n")
    with pytest.raises(TimeDiffError, match=r"SYN, .* was edited or damaged since it was written"):
        dossier(tmp_path / "out", **release.given(synthetic=tmp_path / "synthetic"))
    found = dossier(tmp_path / "out", **release.given(synthetic=tmp_path / "synthetic"), allow_edited=True)
    assert limits(found)[0] == "SYN is not as it was written (changed: 'schema.toml')"
    assert "SYN is not as it was written" in (tmp_path / "out" / "dossier.html").read_text()
    settings = tmp_path / "run" / "settings.toml"
    settings.write_text(settings.read_text() + "\n")
    found = dossier(tmp_path / "again", **release.given(run=tmp_path / "run"), allow_edited=True)
    assert limits(found)[0] == "RUN is not as it was written (changed: 'settings.toml')"
    assert str(tmp_path) not in (tmp_path / "again" / "dossier.html").read_text()  # no folder of this machine


def test_what_people_say_fills_the_blanks_and_is_no_markup(release: Released, tmp_path: Path) -> None:
    blanks = dossier(tmp_path / "blank", **release.given())
    about = About(maker=HOSTILE, source="MIMIC-IV 3.1", title="Stays for teaching")
    dossier(tmp_path / "out", **release.given(), about=about)
    pages = [(tmp_path / name / "dossier.html").read_text() for name in ("blank", "out")]
    assert pages[0].count('<td><span class="blank">') - pages[1].count('<td><span class="blank">') == 2
    assert "<h1>Dossier: Stays for teaching</h1>" in pages[1]
    assert f"<h1>Dossier: {blanks.title}</h1>" in pages[0]
    for name in ("model_card.md", "datasheet.md", "dossier.html"):
        text = (tmp_path / "out" / name).read_text()
        assert "<script>alert" not in text
        assert name.endswith(".html") or "\n# Not a heading" not in text
    card = (tmp_path / "out" / "model_card.md").read_text()
    assert len(re.findall(r"^---$", card, re.MULTILINE)) == 2


def test_a_file_of_what_people_say_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "about.toml"
    path.write_text('maker = "A. Researcher"\nexpires = "2028-01-01"\n')
    assert About.read(path) == About(maker="A. Researcher", expires="2028-01-01")
    for text, words in (
        ('mkaer = "A"', "did you mean maker"),
        ("maker = 3", "maker"),
        ('maker = "a\\u0007"', "cannot be printed"),
        (f'maker = "{"a" * 2001}"', "longer than"),
        ("maker = ", "not valid TOML"),
    ):
        path.write_text(text)
        with pytest.raises(TimeDiffError, match=words):
            About.read(path)
