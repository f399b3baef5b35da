"""AWS's own managed policies that contain an action which a person must review (``catalog.grave_actions``)."""

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
    """Whether a managed policy that is not in a template allows such an action, or may allow it.

    ``arn`` is its ARN or name. A policy that is not AWS's, or that is not in the table, may allow it: its content is
    unknown.
    """
    name = arn.rpartition("/")[2]
    is_of_aws = arn_parts(arn).account in ("", "aws")
    return name in _GRAVE or not (is_of_aws and name in _OTHERS)


def tagging(arn: str) -> frozenset[str]:
    """Return the services in which a managed policy of AWS allows any tag of existing resources to be changed."""
    return _TAGGING.get(arn.rpartition("/")[2], frozenset()) if arn_parts(arn).account in ("", "aws") else frozenset()
