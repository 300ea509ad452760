"""Addresses of databases: what of them may be shown, and what never."""

import os
import re
from urllib.parse import parse_qsl, quote, quote_plus, unquote, unquote_plus, urlsplit

HIDDEN = "…"
KEYWORDS = re.compile(r"(?i)\b(ssl)?password\s*=")  # of PostgreSQL's other form: "host=… user=… password=…"
ENVIRONMENT = ("PGPASSWORD", "PGSSLPASSWORD")  # variables that hold a password


def public(source: str) -> str:
    """SOURCE as a message or a file may have it: of an address only scheme, host, port and database."""
    scheme, separator, rest = source.partition("://")
    if not separator:
        return source
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]{0,30}", scheme):
        return HIDDEN
    if scheme == "duckdb":
        return source
    if scheme == "spark":
        return f"spark://{rest.rpartition('@')[2]}"
    netloc, tail = _parts(rest)
    place = netloc.rpartition("@")[2]
    found = re.fullmatch(r"([\w.-]*|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?", place, re.ASCII)
    if "@" in tail or found is None:  # an @ or a / of a password that is not quoted: nobody can tell where it ends
        return f"{scheme}://{HIDDEN}"
    database = re.match(r"/[\w.-]+", tail)
    # postgresql://bob:1234 may be meant as a name and a password.
    port = found[2] if found[2] and (database or "@" in netloc) else ""
    return f"{scheme}://{found[1]}{port}{database[0] if database else ''}"


def without_secrets(text: str, source: str) -> str:
    """A driver's words with no password in them, as it stands in SOURCE or in the environment, quoted or not."""
    secrets = {os.environ.get(name, "") for name in ENVIRONMENT}
    _, separator, rest = source.partition("://")
    if separator:
        netloc, _ = _parts(rest)
        query = rest.partition("?")[2]
        secrets |= {rest, rest.rpartition("@")[0].partition(":")[2], netloc.rpartition("@")[0].partition(":")[2]}
        if "@" not in netloc and f":{netloc.partition(':')[2]}" not in public(source):
            secrets.add(netloc.partition(":")[2])
        secrets |= {value for key, value in parse_qsl(query) if "pass" in key.lower()}
        secrets |= {item.partition("=")[2] for item in query.split("&") if "pass" in item.partition("=")[0].lower()}
    forms = {
        form(secret) for secret in secrets - {""} for form in (str, unquote, unquote_plus, quote, quote_plus, repr)
    }
    for secret in sorted(forms, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _parts(rest: str) -> tuple[str, str]:
    """What names the server, and the path, query and fragment after it."""
    netloc = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return netloc, rest[len(netloc) :]


def is_address(source: str) -> bool:
    """Whether SOURCE names a server or a database rather than a file."""
    scheme = re.match(r"(postgres|postgresql|duckdb|spark|jdbc|mysql|sqlite):", source)
    return "://" in source or bool(scheme or KEYWORDS.search(source))


def port_is_a_number(source: str) -> bool:
    try:
        urlsplit(source).port  # noqa: B018
    except ValueError:
        return False
    return True
