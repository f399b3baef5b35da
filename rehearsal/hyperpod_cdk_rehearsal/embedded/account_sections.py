"""Sections of the account file about what stands around an environment: zones, neighbours, IAM, leftovers, faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from hyperpod_cdk.catalog import addons


def _addon_version(text: str) -> str:
    """Refuse what no answer of DescribeAddonVersions holds."""
    if addons.VERSION.matches(text):
        return text
    told = {"describes": addons.VERSION.describes, "example": addons.VERSION.example, "got": text}
    raise PydanticCustomError("addon_version", 'must be {describes}, such as {example}, got "{got}"', told)


AddonVersions = tuple[Annotated[str, AfterValidator(_addon_version)], ...]


class Section(BaseModel):
    """One mapping of the account file; a key that it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LocalZone(Section):
    """A local zone of the region: its name (``us-east-1-dfw-2a``), and whether the account has opted in to it."""

    name: str
    opted_in: bool = False


class Zones(Section):
    """What differs from the region's usual zones.

    ``missing`` zones are not this account's; ``states`` are EC2's, by zone ID; ``local`` are local zones by ID, which
    an account has to opt in to; with ``from_environment`` it has opted in to those that the environment names.
    """

    from_environment: bool = False
    missing: tuple[str, ...] = ()
    states: Mapping[str, Literal["available", "information", "impaired", "unavailable", "constrained"]] = {}
    local: Mapping[str, LocalZone] = {}


class NeighbourGroup(Section):
    """An instance group of another HyperPod cluster; ``training_plan`` is a plan's name."""

    name: str
    instance_type: str
    count: Annotated[int, Field(ge=0)]
    spot: bool = False
    training_plan: str = ""


class NeighbourCluster(Section):
    """A HyperPod cluster that stands in the account; ``eks_cluster`` (default: one of its own) orchestrates it."""

    name: str
    status: str = "InService"
    groups: tuple[NeighbourGroup, ...] = ()
    eks_cluster: str = ""
    tags: Mapping[str, str] = {}


class NeighbourFileSystem(Section):
    """An FSx for Lustre file system that stands in the account; ``tags`` tell whose it is."""

    capacity_gib: Annotated[int, Field(ge=1)]
    deployment_type: Literal["SCRATCH_1", "SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2"] = "PERSISTENT_2"
    tags: Mapping[str, str] = {}


class InUse(Section):
    """How many of each others have, beside what AWS puts into every account (one VPC with its security group)."""

    vpcs: Annotated[int, Field(ge=0)] = 0
    elastic_ips: Annotated[int, Field(ge=0)] = 0
    internet_gateways: Annotated[int, Field(ge=0)] = 0
    nat_gateways: Mapping[str, int] = {}
    network_interfaces: Annotated[int, Field(ge=0)] = 0
    security_groups: Annotated[int, Field(ge=0)] = 0
    gateway_endpoints: Annotated[int, Field(ge=0)] = 0
    eks_clusters: Annotated[int, Field(ge=0)] = 0
    file_systems: tuple[NeighbourFileSystem, ...] = ()


class KubernetesOffer(Section):
    """What EKS offers today where it differs from the catalog.

    ``versions`` maps a Kubernetes version to its status, or to ``gone`` where EKS no longer lists it. ``addons`` maps
    an add-on to its versions, the newest first and the first the default; an empty list: EKS has no such add-on.
    ``addons_for`` maps a Kubernetes version to such a map, which counts before ``addons`` for it.
    ``api`` is what the API servers of clusters with a public endpoint do with whoever asks them. ``webhook_seconds`` is
    how long after its add-on is ACTIVE a webhook of Kueue or cert-manager begins to answer.
    """

    versions: Mapping[str, Literal["STANDARD_SUPPORT", "EXTENDED_SUPPORT", "UNSUPPORTED", "gone"]] = {}
    addons: Mapping[str, AddonVersions] = {}
    addons_for: Mapping[str, Mapping[str, AddonVersions]] = {}
    api: Literal["unreachable", "answers", "unknown_caller", "forbidden"] = "unreachable"
    webhook_seconds: Annotated[float, Field(ge=0)] = 1.0


class Denied(Section):
    """Actions that the policy simulator refuses; action, principal and resource are patterns (``ec2:Create*``).

    ``principal`` is a role's or user's name, ``resource`` what the simulator is asked about: ``[*]`` is a refusal for
    all resources that lets named ones pass.
    """

    action: str
    principal: str = "*"
    resource: str = "*"
    by: Literal["nobody_allows", "policy", "organization", "boundary"] = "nobody_allows"


class Iam(Section):
    """Who asks, what they may do, and what stands in IAM.

    ``caller`` is the ARN that GetCallerIdentity gives. ``denied_actions`` are refused by the policy simulator, though
    the calls go through; ``denied_calls`` are patterns of actions whose calls end in access denied.
    ``service_linked_roles`` maps names (``AWSServiceRoleForAmazonEKS``) to services (``eks.amazonaws.com``).
    ``policies`` are ARNs of managed policies, beside those of AWS.
    """

    caller: str = ""
    service_linked_roles: Mapping[str, str] = {}
    policies: tuple[str, ...] = ()
    denied_actions: tuple[Denied, ...] = ()
    denied_calls: tuple[str, ...] = ()


class Bootstrap(Section):
    """The CDK bootstrap stack of the region; ``version`` None: there is none."""

    version: int | None
    qualifier: str = "hnb659fds"


class NodesOf(Section):
    """What becomes of the nodes of an instance group, the first of them first.

    ``never`` of them are never launched, for ``reason`` (default: no capacity). The next ``failing`` are launched and
    fail ``failures`` times with ``message`` (default: the lifecycle script's); each time HyperPod tries a new instance.
    All others run ``delay_seconds`` later than they would; a second of a rehearsal is about a minute of AWS's.
    """

    delay_seconds: Annotated[float, Field(ge=0, le=3600)] = 0
    never: Annotated[int, Field(ge=0)] | Literal["all"] = 0
    reason: str = ""
    failing: Annotated[int, Field(ge=0)] | Literal["all"] = 0
    failures: Annotated[int, Field(ge=1)] | Literal["always"] = 1
    message: str = ""

    @model_validator(mode="after")
    def _says_whom_it_is_about(self) -> NodesOf:
        if self.reason and not self.never:
            raise ValueError("reason needs nodes that never come; add never")
        if (self.message or "failures" in self.model_fields_set) and not self.failing:
            raise ValueError("message and failures need nodes that fail; add failing")
        if "all" in {self.never, self.failing} and self.never and self.failing:
            raise ValueError("never and failing name more nodes than all; remove one of the two")
        return self

    def most(self) -> int:
        """Return how many nodes the group must have for this."""
        return sum(number for number in (self.never, self.failing) if isinstance(number, int))


class Fault(Section):
    """Something that goes wrong between a caller and AWS.

    ``service`` is boto3's name or IAM's prefix, ``operation`` an API operation; ``*`` stands for all. The first
    ``after`` calls are answered; of those that follow every ``every``-th suffers, ``times`` altogether (default:
    without end). ``seconds`` is how long ``timeout`` keeps the caller waiting before the connection closes.
    ``truncated`` cuts an answer in half,
    ``garbage`` answers with a page that is not AWS's, ``no_endpoint`` closes the connection at once.
    """

    service: str
    operation: str = "*"
    kind: Literal[
        "throttle", "access_denied", "timeout", "expired_token", "truncated", "server_error", "garbage", "no_endpoint"
    ]
    times: Annotated[int, Field(ge=1)] | Literal["always"] = "always"
    after: Annotated[int, Field(ge=0)] = 0
    every: Annotated[int, Field(ge=1)] = 1
    seconds: Annotated[float, Field(gt=0)] = 30.0

    @model_validator(mode="after")
    def _says_what_is_hit(self) -> Fault:
        if self.service == "*" and self.operation != "*":
            raise ValueError("an operation needs the name of its service")
        return self
