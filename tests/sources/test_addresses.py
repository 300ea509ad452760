"""A password in an address is never shown, written or hashed into what is written."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timediff import cli
from timediff.errors import TimeDiffError
from timediff.runtime.cell_values import show_values
from timediff.sources.addresses import public, without_secrets
from timediff.sources.base import local
from timediff.sources.engines import Database, connect

MARK = "hunter2"
PASSWORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8).map(lambda t: MARK + t)
RAW = st.tuples(st.text("ab/@:?#&=%1 ", max_size=4), st.text("ab/@:?#&=%1 ", max_size=4)).map(MARK.join)
FORMS = {
    "after the user": "postgresql://bob:{}@127.0.0.1:1/mimic",
    "in the query": "postgresql://bob@127.0.0.1:1/mimic?password={}",
    "with the user in the query": "postgresql://127.0.0.1:1/mimic?user=bob&password={}",
    "without a host": "postgresql://bob:{}",
    "of a short scheme": "postgres://bob:{}@127.0.0.1:1/mimic?sslmode=disable",
    "of a key": "postgresql://bob@127.0.0.1:1/mimic?sslpassword={}&application_name=x",
    "of Spark": "spark://bob:{}@host:7077?path=/data",
    "of something else": "mysql://bob:{}@host/db",
}


@pytest.mark.parametrize("form", FORMS)
@given(one=PASSWORDS, other=PASSWORDS)
def test_what_is_shown_does_not_depend_on_the_password(form: str, one: str, other: str) -> None:
    shown = {public(FORMS[form].format(quote(password, safe=""))) for password in (one, other)}
    assert len(shown) == 1
    assert MARK not in shown.pop()


@pytest.mark.parametrize("form", FORMS)
@given(password=RAW)
def test_a_password_that_is_not_quoted_is_not_shown_either(form: str, password: str) -> None:
    if form == "without a host" and re.search("[/@]", password):
        return  # such an address is that of another host or database
    assert MARK not in public(FORMS[form].format(password))


@pytest.mark.parametrize("form", FORMS)
@given(password=st.one_of(PASSWORDS, RAW))
def test_a_drivers_words_lose_the_password(form: str, password: str) -> None:
    for written in (password, quote(password, safe="")):
        address = FORMS[form].format(written)
        if "@" in password and written is password:  # then nobody can tell where it ends, and nothing is shown
            continue
        said = f'connection to "{address}" failed: "{password}" and {written!r} for user bob'
        assert MARK not in without_secrets(said, address) or re.search(r"[/?#&]", password)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shown", [False, True])
def test_an_address_that_fails_is_told_without_its_password(
    form: str, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "environment2")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")
    with (
        show_values(shown),
        pytest.raises(TimeDiffError, match=r"no connection|is not known|the master is not one") as caught,
        connect(FORMS[form].format(MARK)),
    ):
        pass
    assert MARK not in str(caught.value)
    assert "environment2" not in str(caught.value)


def test_what_may_be_shown_is_shown() -> None:
    assert (
        public("postgresql://bob:x@db.example.org:5433/mimic?sslmode=require")
        == "postgresql://db.example.org:5433/mimic"
    )
    assert public("postgresql://localhost:5432/mimic") == "postgresql://localhost:5432/mimic"
    assert public("postgresql://u:p@[::1]:5432/mimic") == "postgresql://[::1]:5432/mimic"
    assert public("postgresql:///mimic") == "postgresql:///mimic"
    assert public("postgresql://bob:1234") == "postgresql://bob"
    assert public("duckdb:///a/b.duckdb") == "duckdb:///a/b.duckdb"
    assert public("a/folder") == "a/folder"


@pytest.mark.parametrize(
    "form",
    [
        "host=127.0.0.1 user=bob password={}",
        "dbname=mimic PASSWORD = '{}'",
        "spark://bob:{}",
        "spark://bob:{}?schema=x",
    ],
)
def test_other_forms_are_not_shown_either(form: str) -> None:
    with (
        pytest.raises(TimeDiffError, match=r"is not known|the master is not one") as caught,
        connect(form.format(MARK)),
    ):
        pass
    assert MARK not in str(caught.value)


@given(one=PASSWORDS, other=PASSWORDS)
@settings(max_examples=20)
def test_the_hash_of_a_database_is_not_of_its_password(one: str, other: str) -> None:
    hashes = {
        Database(FORMS["after the user"].format(quote(password, safe="")), None).fingerprint()
        for password in (one, other)
    }
    assert len(hashes) == 1


@pytest.mark.parametrize("address", [FORMS["after the user"].format(MARK), f"postgresql:/bob:{MARK}@host/db"])
@pytest.mark.parametrize("name", ["physionet2012", "physionet2019", "stocks", "meds", "table", "eicu"])
def test_a_source_of_files_refuses_an_address_without_showing_it(
    name: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["timediff", "extract", name, address, "out"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert MARK not in json.dumps(capsys.readouterr())
    assert not list(tmp_path.iterdir())


def test_a_path_is_a_path() -> None:
    assert local("some/folder") == Path("some/folder")
