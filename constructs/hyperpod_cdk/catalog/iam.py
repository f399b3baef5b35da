"""What a deployment uses in IAM: CDK's bootstrap roles and the service-linked roles of the services."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.arns import IAM_PATH
from hyperpod_cdk.catalog.rules import Pattern

_DATA = _data.load("iam")

AS_OF: date = _data.as_of("iam")

BOOTSTRAP_QUALIFIER: str = _DATA["bootstrap"]["qualifier"]
"""CDK's default, part of the name of everything that ``cdk bootstrap`` creates."""

MINIMUM_BOOTSTRAP_VERSION: int = _DATA["bootstrap"]["minimum_version"]
"""The oldest bootstrap stack that the templates accept; with an older one, CloudFormation refuses them."""


MOST_INLINE_CHARACTERS = 10_240
"""Most characters of all inline policies of a role; white space does not count (IAM user guide, IAM and AWS STS
quotas, role inline policy size)."""

MOST_MANAGED_CHARACTERS = 6_144
"""Limit in characters of a managed policy; white space does not count (as above, managed policy size)."""

_POLICY_NAME = r"[A-Za-z0-9_+=,.@-]{1,128}"
_POLICY_SOURCE = "IAM API reference, CreatePolicy, Path and PolicyName, 2026-11; botocore"

MANAGED_POLICY_NAME = Pattern(
    regex=f"{IAM_PATH}{_POLICY_NAME}",
    maximum=639,
    describes="the name of a managed policy of AWS, with its path",
    refers=True,
    example="service-role/AmazonEBSCSIDriverPolicy",
    source=_POLICY_SOURCE,
)
PERMISSIONS_BOUNDARY = Pattern(
    regex=rf"arn:aws[a-z-]*:iam::([0-9]{{12}}|aws):policy/{IAM_PATH}{_POLICY_NAME}|{_POLICY_NAME}",
    maximum=2048,
    describes="the name or the ARN of an IAM policy",
    refers=True,
    example="developer-boundary",
    source=_POLICY_SOURCE,
)


@dataclass(frozen=True, kw_only=True)
class ServiceLinkedRole:
    """A role that a service creates for itself at its first use, with the permissions of the caller.

    ``when`` is a word for the environments that use the service, as in ``deployer_actions``. A name that ends in ``*``
    is created for each resource. ``unsure`` says why the service may not need it, and is empty if it does.
    """

    name: str
    service: str
    needed_for: str
    when: str
    source: str
    unsure: str = ""

    @property
    def is_made_anew(self) -> bool:
        """Whether each resource gets its own role, so that none can exist before."""
        return self.name.endswith("*")

    def arn(self, *, partition: str, account: str) -> str:
        """Return the role's ARN, with the star if the name has one."""
        return f"arn:{partition}:iam::{account}:role/aws-service-role/{self.service}/{self.name}"


SERVICE_LINKED_ROLES: tuple[ServiceLinkedRole, ...] = tuple(
    ServiceLinkedRole(**row) for row in _DATA["service_linked_roles"]
)


def bootstrap_role_arn(
    role: str, *, partition: str, account: str, region: str, qualifier: str = BOOTSTRAP_QUALIFIER
) -> str:
    """Return the ARN of a bootstrap role by its part of the name: ``deploy``, ``file-publishing``, ``cfn-exec``."""
    return f"arn:{partition}:iam::{account}:role/cdk-{qualifier}-{role}-role-{account}-{region}"


def bootstrap_bucket(*, account: str, region: str, qualifier: str = BOOTSTRAP_QUALIFIER) -> str:
    """Return the name of the bucket for templates and assets."""
    return f"cdk-{qualifier}-assets-{account}-{region}"
