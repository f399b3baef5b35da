"""Sections of the account file about an environment's surroundings: zones, other clusters, IAM, leftovers, faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from hyperpod_cdk_rehearsal.embedded.published import addons


def _addon_version(text: str) -> str:
    """Refuse values that no response of DescribeAddonVersions contains."""
    if addons.VERSION.fullmatch(text):
        return text
    said = 'must be an add-on version as EKS writes it, such as v1.20.4-eksbuild.1, got "{got}"'
    raise PydanticCustomError("addon_version", said, {"got": text})


AddonVersions = tuple[Annotated[str, AfterValidator(_addon_version)], ...]


class Section(BaseModel):
    """One mapping of the account file; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LocalZone(Section):
    """A Local Zone of the Region: its name (``us-east-1-dfw-2a``), and whether the account has opted in to it."""

    name: str
    opted_in: bool = False


class Zones(Section):
    """Differences from the Region's usual zones.

    ``missing`` zones are not available in this account; ``states`` are EC2's, by zone ID; ``local`` are Local Zones by
    ID, which require an opt-in; with ``from_environment``, the account has opted in to those in the environment.
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
    """An existing HyperPod cluster; ``eks_cluster`` (default: a separate one) orchestrates it."""

    name: str
    status: str = "InService"
    groups: tuple[NeighbourGroup, ...] = ()
    eks_cluster: str = ""
    tags: Mapping[str, str] = {}


class NeighbourFileSystem(Section):
    """An existing FSx for Lustre file system; ``tags`` show the owner."""

    capacity_gib: Annotated[int, Field(ge=1)]
    deployment_type: Literal["SCRATCH_1", "SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2"] = "PERSISTENT_2"
    tags: Mapping[str, str] = {}


class InUse(Section):
    """The number of other resources, in addition to those in every account (one VPC with its security group)."""

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
    """What EKS offers, if it differs from what is published.

    ``versions`` maps a Kubernetes version to its status, or to ``gone`` if EKS no longer lists it. ``addons`` maps an
    add-on to its versions, the newest first and the first the default; an empty list means that EKS has no such add-on.
    ``addons_for`` maps a Kubernetes version to such a map, which takes precedence over ``addons``.
    ``api`` is how the API servers of clusters with a public endpoint respond. ``webhook_seconds`` is the time between
    an add-on being ACTIVE and the first response of its webhook, for Kueue and cert-manager.
    """

    versions: Mapping[str, Literal["STANDARD_SUPPORT", "EXTENDED_SUPPORT", "UNSUPPORTED", "gone"]] = {}
    addons: Mapping[str, AddonVersions] = {}
    addons_for: Mapping[str, Mapping[str, AddonVersions]] = {}
    api: Literal["unreachable", "answers", "unknown_caller", "forbidden"] = "unreachable"
    webhook_seconds: Annotated[float, Field(ge=0)] = 1.0


class Denied(Section):
    """Actions that the policy simulator refuses; action, principal and resource are patterns (``ec2:Create*``).

    ``principal`` is a role's or user's name, ``resource`` the resource in the simulator's request: ``[*]`` refuses
    requests for all resources, but not for specific ones.
    """

    action: str
    principal: str = "*"
    resource: str = "*"
    by: Literal["nobody_allows", "policy", "organization", "boundary"] = "nobody_allows"


class Iam(Section):
    """The caller, its permissions, and existing resources of IAM.

    ``caller`` is the ARN that GetCallerIdentity returns. ``denied_actions`` are refused by the policy simulator, but
    the calls succeed; ``denied_calls`` are patterns of actions whose calls are denied.
    ``service_linked_roles`` maps names (``AWSServiceRoleForAmazonEKS``) to services (``eks.amazonaws.com``).
    ``policies`` are ARNs of managed policies, in addition to those of AWS.
    """

    caller: str = ""
    service_linked_roles: Mapping[str, str] = {}
    policies: tuple[str, ...] = ()
    denied_actions: tuple[Denied, ...] = ()
    denied_calls: tuple[str, ...] = ()


class Bootstrap(Section):
    """The CDK bootstrap stack of the Region; ``version`` None: it does not exist."""

    version: int | None
    qualifier: str = "hnb659fds"


class NodesOf(Section):
    """What happens to the nodes of an instance group, in their order.

    The first ``never`` nodes are never launched, for ``reason`` (default: no capacity). The next ``failing`` are
    launched and fail ``failures`` times with ``message`` (default: the lifecycle script's); each time HyperPod tries a
    new instance. All others run ``delay_seconds`` later; a second of a rehearsal is about a minute on AWS.
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
            raise ValueError("reason needs nodes that are never launched; add never")
        if (self.message or "failures" in self.model_fields_set) and not self.failing:
            raise ValueError("message and failures need nodes that fail; add failing")
        if "all" in {self.never, self.failing} and self.never and self.failing:
            raise ValueError("never and failing are both all nodes; remove one of the two")
        return self

    def most(self) -> int:
        """Return the number of nodes that the group must have for this."""
        return sum(number for number in (self.never, self.failing) if isinstance(number, int))


class Fault(Section):
    """A fault between a caller and AWS.

    ``service`` is boto3's name or IAM's prefix, ``operation`` an API operation; ``*`` matches all. The first ``after``
    calls succeed; then every ``every``-th call fails, ``times`` in total (default: without a limit). ``seconds`` is how
    long ``timeout`` keeps the caller waiting before the connection closes. ``truncated`` cuts a response in half,
    ``garbage`` returns a page that is not from AWS, ``no_endpoint`` closes the connection at once.
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
