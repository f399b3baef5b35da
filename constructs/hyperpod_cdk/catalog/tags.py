"""Tags of resources: what AWS accepts of their keys and values."""

from __future__ import annotations

import unicodedata

from hyperpod_cdk.catalog import hyperpod

_OWN = next(iter(hyperpod.REQUIRED_TAGS))
# of AWS::EKS::Addon, whose schema (cfn-lint) allows one character less than all others
KEY_LENGTH = 127
VALUE_LENGTH = 255
_MARKS = " _.:/=+-@"
# JSON Schema can exclude the ASCII marks that AWS refuses; the check itself decides which other characters are letters
NO_OTHER_MARK = r"[^!\"#$%&'()*,;<>?\[\\\]^`{|}~\u0000-\u001f\u007f]"


def _allowed(text: str) -> bool:
    return all(mark in _MARKS or unicodedata.category(mark)[0] in "LNZ" for mark in text)


def of_path(path: str) -> str:
    """Return the path of a construct as the value of a tag: with hyphens for what AWS refuses, its end if too long."""
    return "".join(mark if _allowed(mark) else "-" for mark in path)[-VALUE_LENGTH:]


def key_problem(tag_key: str, key: str) -> str | None:  # noqa: ARG001 - a key is renamed, not set
    """Say why ``tag_key`` cannot be a tag's key, or return None."""
    if not 1 <= len(tag_key) <= KEY_LENGTH:
        return f"a tag key must have 1 to {KEY_LENGTH} characters, got {len(tag_key)}; shorten it"
    if not _allowed(tag_key):
        return f'a tag key may hold letters, digits, blanks and _.:/=+-@, got "{tag_key}"; rename it'
    if tag_key.lower().startswith("aws:"):
        return f'a tag key may not begin with "aws:", which AWS reserves, got "{tag_key}"; rename it'
    if tag_key == _OWN:
        return (
            f'"{tag_key}" is set by this library on the HyperPod cluster, where the training operator looks'
            " for it; remove the tag"
        )
    return None


def value_problem(value: str, key: str) -> str | None:
    """Say why ``value`` cannot be a tag's value, or return None."""
    if not value:
        return f"a tag value must not be empty, which EKS add-ons refuse, got nothing; write a value after {key}"
    if len(value) > VALUE_LENGTH:
        return f"a tag value must have at most {VALUE_LENGTH} characters, got {len(value)}; shorten it"
    if not _allowed(value):
        return f'a tag value may hold letters, digits, blanks and _.:/=+-@, got "{value}"; change {key}'
    return None
