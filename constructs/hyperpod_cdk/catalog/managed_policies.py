"""Actions by which an identity can come to have more than its policies say, and AWS's own policies that hold one."""

from __future__ import annotations

from datetime import date
from typing import Final

from hyperpod_cdk.catalog import _data

AS_OF: date = _data.as_of("managed_policies")

_DATA: Final = _data.load("managed_policies")

ESCALATES: Final[frozenset[str]] = frozenset(_DATA["escalates"])
"""Actions that do so whatever resource they are allowed on."""

ESCALATES_ON_ANY: Final[frozenset[str]] = frozenset(_DATA["escalates_on_any"])
"""Actions that do so where they are allowed on a pattern of resources; on a single one they are what is meant."""

HARMS_ON_ANY: Final[frozenset[str]] = frozenset(_DATA["harms_on_any"])
"""Actions that end the record of what was done, or delete what holds data, where they are allowed on a pattern."""

READS_ON_ANY: Final[frozenset[str]] = frozenset(_DATA["reads_on_any"])
"""Actions that give data, or a login to it, where they are allowed on all of a kind: every key, bucket or table."""

_GRAVE: Final = frozenset(_DATA["grave"])
_OTHERS: Final = frozenset(_DATA["others"])


def is_grave(arn: str) -> bool:
    """Whether a managed policy that no template holds allows one of these actions, or may for all that is known.

    ``arn`` is its ARN or name. Of a policy that is not AWS's, or that the table does not have, nobody knows.
    """
    parts = arn.split(":", 5)
    name = arn.rpartition("/")[2]
    is_of_aws = len(parts) < 5 or parts[4] == "aws"
    return name in _GRAVE or not (is_of_aws and name in _OTHERS)
