"""Texts that have the form of a secret; reports their kind, never the text itself."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Form:
    """How one kind of secret looks. ``source`` says where its issuer or another source describes it."""

    kind: str
    regex: str
    source: str


FORMS = (
    Form(
        kind="an AWS access key ID",
        regex=r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        source="IAM user guide, unique identifiers: AKIA and ASIA",
    ),
    Form(
        kind="an AWS secret access key",
        regex=r"(?i:aws_?secret_?access_?key)[\"']?[ \t]*[:=][ \t]*[\"']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
        source="IAM user guide: 40 characters of base 64",
    ),
    Form(
        kind="a private key",
        regex=r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
        source="RFC 7468, and PGP's RFC 9580",
    ),
    Form(
        kind="a GitHub token",
        regex=r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255})\b",
        source="GitHub documentation, token formats",
    ),
    Form(
        kind="a Hugging Face token",
        regex=r"\bhf_[A-Za-z]{34}\b",
        source="observed in public secret scanners, Hugging Face states only the prefix",
    ),
    Form(
        kind="a Slack token",
        regex=r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
        source="Slack documentation, token types",
    ),
    Form(
        kind="a Slack webhook",
        regex=r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{30,}",
        source="Slack documentation, incoming webhooks",
    ),
    Form(
        kind="an NVIDIA NGC key",
        regex=r"\bnvapi-[A-Za-z0-9_-]{40,}",
        source="observed in public secret scanners",
    ),
)

_EXAMPLE = re.compile(r"EXAMPLE(?:KEY)?(?![A-Za-z0-9])")
_PATTERNS = tuple((form.kind, re.compile(form.regex)) for form in FORMS)


def secrets(text: str) -> list[tuple[int, str]]:
    """Return line and kind of everything in ``text`` that looks like a secret, each kind once a line, by line."""
    found = {
        (text.count("\n", 0, match.start()) + 1, kind)
        for kind, pattern in _PATTERNS
        for match in pattern.finditer(text)
        if not _EXAMPLE.search(match[0])
    }
    return sorted(found)
