"""The datasheet of the synthetic cohort, under the headings of Gebru et al. 2021, "Datasheets for Datasets"."""

from timediff.documents.answers import CONDITIONS, NO_USES, RESIDUAL, USES, answers, described, hashes, limits
from timediff.documents.known import Known
from timediff.documents.markdown import BLANK, escaped, facts, points, table


def datasheet(known: Known) -> str:
    parts = {
        "Motivation": _motivation(known),
        "Composition": _composition(known),
        "Collection process": _collection(known),
        "Preprocessing, cleaning, labelling": _preprocessing(known),
        "Uses": _uses(known),
        "Distribution": _distribution(known),
        "Maintenance": _maintenance(known),
    }
    body = "\n".join(f"## {heading}\n\n{text}" for heading, text in parts.items())
    return f"# Datasheet: {escaped(known.title)}\n\n{escaped(described(known))}\n\n{body}"


def _motivation(known: Known) -> str:
    about = known.about
    return facts({"For what purpose": about.purpose, "By whom": about.maker, "For which organisation":
                  about.organisation, "Funded by": ""})  # fmt: skip


def _composition(known: Known) -> str:
    schema = known.synthetic.schema
    rows = [
        [f.name, f.kind, f.role or f.scope, f.unit or "", ", ".join(map(str, f.classes))]
        for f in schema.features
        if f.generated
    ]
    said = {
        "Instances": f"{len(known.synthetic):,} synthetic stays on a grid of {schema.steps} steps of {schema.step}",
        "Is it a sample": "yes, drawn from a generative model; as many can be drawn as one likes",
        "Missing values": "generated like values; null is a measurement that was not taken",
        "Recommended splits": "none: test on real data",
        "Relations between instances": "none; every stay is drawn by itself",
        "Errors, noise, redundancy": f"{known.copies:,} stays equal a stay of the training data; for the rest see Uses",
        "Confidential or personal data": "health data, made by a model from what it learned of real "
        "patients; whether one of them can be recognised is answered under Uses",
        "Subpopulations": "by the static features below",
    }
    return facts(said) + "\n" + table(("feature", "kind", "role", "unit", "classes"), rows)


def _collection(known: Known) -> str:
    about, run = known.about, known.trained
    return facts({
        "How": f"sampled by {known.generator} (TimeDiff {known.provenance.version}) with seed "
               f"{known.provenance.seed} from the run {known.identity[:16]}",
        "Trained on": f"{len(known.train):,} real stays, SHA-256 {known.train.digest()}",
        "Training": f"seed {run.get('seed')}, begun {run.get('created')}, on {run.get('device')}",
        "Source of the real stays": about.source,
        "Whose stays": about.population,
        "Ethical review and legal basis": about.legal_basis,
    })  # fmt: skip


def _preprocessing(known: Known) -> str:
    found = {
        "Grid": f"{known.train.schema.steps} steps of {known.train.schema.step}",
        "Split of the real stays": known.split,
    }
    if known.extraction is not None:
        found["Extraction"] = "; ".join(f"{rule} {count}" for rule, count in known.extraction.rows())
    return facts(found) + f"- **Raw data kept**: {BLANK}\n"


def _uses(known: Known) -> str:
    about = known.about
    answered = points([f"{one.question} {one.sentence}" for one in answers(known)])
    uses = points([about.uses] if about.uses else USES)
    return (
        f"{answered}\nPermitted:\n\n{uses}\nNot for:\n\n{points(NO_USES)}\nKnown limits:\n\n{points(limits(known))}"
        f"\nRisk that is left:\n\n{points(RESIDUAL)}"
    )


def _distribution(known: Known) -> str:
    about = known.about
    said = {"To whom": about.recipients, "Where": about.url, "Licence": about.license, "Cite as": about.citation}
    conditions = points([about.conditions] if about.conditions else CONDITIONS)
    rows = [[f.name, f"{f.size:,}", f.sha256] for f in known.files]
    return facts(said) + f"\nConditions:\n\n{conditions}\n" + table(("file", "bytes", "SHA-256"), rows)


def _maintenance(known: Known) -> str:
    about = known.about
    together = ", ".join(f"{name} {digest}" for name, digest in hashes(known).items())
    return facts({"Contact": about.contact, "Expires": about.expires, "Errata": "", "Version": about.version,
                  "This sheet holds for": together})  # fmt: skip
