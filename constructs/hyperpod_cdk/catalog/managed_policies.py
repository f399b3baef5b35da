"""AWS's own managed policies that hold an action which a person must look at (``catalog.grave_actions``)."""

from __future__ import annotations

from datetime import date
from typing import Final

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.arns import arn_parts

AS_OF: date = _data.as_of("managed_policies")

_DATA: Final = _data.load("managed_policies")

_GRAVE: Final = frozenset(_DATA["grave"])
_OTHERS: Final = frozenset(_DATA["others"])
_TAGGING: Final[dict[str, frozenset[str]]] = {name: frozenset(each.split()) for name, each in _DATA["tagging"].items()}


def is_grave(arn: str) -> bool:
    """Whether a managed policy that no template holds allows such an action, or may for all that is known.

    ``arn`` is its ARN or name. Of a policy that is not AWS's, or that the table does not have, nobody knows.
    """
    name = arn.rpartition("/")[2]
    is_of_aws = arn_parts(arn).account in ("", "aws")
    return name in _GRAVE or not (is_of_aws and name in _OTHERS)


def tagging(arn: str) -> frozenset[str]:
    """Give the services of which a managed policy of AWS lets its holder change any tag of what is there."""
    return _TAGGING.get(arn.rpartition("/")[2], frozenset()) if arn_parts(arn).account in ("", "aws") else frozenset()
