"""The IAM actions that CloudFormation's handlers ask for to make the resources of the stacks.

The lists are the handler permissions of the registry's schemas, without those of features that no stack uses. They
are wider than one deployment: a schema names what its handler may ever call. ``certain`` is what it calls for each
resource.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from hyperpod_cdk.catalog import _data

AS_OF: date = _data.as_of("deployer_actions")


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """One type with its actions, sorted.

    ``when`` is a word for the environments that make such a resource: ``always``, ``new_network``, ``lustre`` and the
    like; ``checks/iam.py`` knows what each means. ``resource`` is the ARN of such a resource as an environment would
    name it, with ``{partition}``, ``{region}``, ``{account}`` and ``{name}`` to fill in, or ``*``.
    """

    name: str
    when: str
    certain: tuple[str, ...]
    resource: str
    actions: tuple[str, ...]


TYPES: tuple[ResourceType, ...] = tuple(
    ResourceType(**{**row, "certain": tuple(row["certain"]), "actions": tuple(row["actions"])})
    for row in _data.load("deployer_actions")["types"]
)
