"""The access keys of one run of the embedded AWS: its user's, its own, and that of its Lambda functions."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

_KEY_ID_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_KEY_ID_LENGTH = 20


@dataclass(frozen=True)
class AccessKey:
    """An access key; a temporary one is good only with its session token."""

    key_id: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def random(cls, prefix: str, *, is_temporary: bool = False) -> AccessKey:
        """Make a key that nobody can guess; ``prefix`` tells it from a real one in a log."""
        rest = "".join(secrets.choice(_KEY_ID_LETTERS) for _ in range(_KEY_ID_LENGTH - len(prefix)))
        return cls(prefix + rest, secrets.token_urlsafe(30), secrets.token_urlsafe(30) if is_temporary else None)


CALLER = AccessKey.random("REHEARSAL")
"""The user's key, for whoever started this process."""

INTERNAL = AccessKey.random("EMBEDDED")
"""Signs what the embedded AWS asks of itself: neither counted nor delayed nor broken."""

FUNCTION = AccessKey.random("FUNCTION", is_temporary=True)
"""Signs what a Lambda function asks while it runs."""
