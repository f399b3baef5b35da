"""The report as data: what ``--out report.json`` holds and what every rendering reads. Its schema is published."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from hyperpod_cdk.json_schema import Model


class Effect(StrEnum):
    """What a change does to one resource, or one of its properties. There is no "safe"."""

    REPLACED = "replaced"
    DELETED = "deleted"
    REFUSED = "refused by the service"
    INTERRUPTED = "nodes interrupted"
    UNKNOWN = "unknown"
    LEFT_BEHIND = "left behind"
    IN_PLACE = "in place"
    ADDED = "added"


class Level(StrEnum):
    """The gravest that a change does, gravest first."""

    REPLACED = "replaced"
    DELETED = "deleted"
    REFUSED = "refused by the service"
    INTERRUPTED = "nodes interrupted"
    UNKNOWN = "unknown"
    IN_PLACE = "in place"
    ADDED = "added"
    NONE = "no change"


class Side(Model):
    """One of the two things that are compared."""

    label: str
    """What it is to a reader: a revision, a folder, ``deployed``, ``nothing``."""
    commit: str | None = None
    """The commit behind a git revision."""
    environment_file: str | None = None
    """The environment file, as findings show it."""
    stacks: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each stack's template, by the stack's name: ``review --still`` holds a deployment to it."""
    assembly: str | None = None
    """SHA-256 over the names and contents of all files of a cloud assembly that lay there, assets included."""


class Cause(Model):
    """A line of the environment file that caused a change."""

    file: str
    line: int | None = None
    path: str
    """The place in the environment file (``hyperpod.instance_groups[1].count``), in the base's where it is gone."""
    before: str | None = None
    after: str | None = None


Part = Literal["property", "metadata", "export"]
"""What of a template changes: a property or policy of a resource, its metadata that cfn-init reads, an export."""

EXPORT_PREFIX: Final = "Export "
"""What stands before the name of an export where the path of a property does."""


class PropertyEffect(Model):
    """One property that changes."""

    path: str
    of: Part = "property"
    before: str | None = None
    """None where there was none."""
    after: str | None = None
    """None where there is none any more."""
    effect: Effect
    reason: str
    """Why it has this effect, in one sentence."""
    source: str | None = None
    """Where that is said: an address, or ``CloudFormation schema``."""
    interrupts: bool = False
    """Whether the resource stays in place, and is not reachable, or slower for hours, meanwhile."""
    is_indirect: bool = False
    """Whether it only follows from the replacement of what it refers to."""
    causes: tuple[Cause, ...] = ()


class ResourceEffect(Model):
    """One resource that changes, and what that does to it."""

    stack: str
    logical_id: str
    type: str
    name: str
    """The construct path below the stack, or the logical id."""
    effect: Effect
    stateful: bool
    """Whether it holds data, nodes, an address or a key that others know: one to lose sleep over."""
    summary: str
    """What happens, in one sentence."""
    properties: tuple[PropertyEffect, ...] = ()
    causes: tuple[Cause, ...] = ()


class LeftBehind(Model):
    """A resource that leaves its stack, or is replaced, and stays in the account."""

    stack: str
    logical_id: str
    type: str
    name: str
    why: str
    costs_money: bool | None
    """None where that is not known."""


class BlastRadius(Model):
    """Every resource that changes, gravest first."""

    resources: tuple[ResourceEffect, ...] = ()
    left_behind: tuple[LeftBehind, ...] = ()
    counts: dict[Effect, int] = Field(default_factory=dict)
    schemas_as_of: str = ""
    """The date of the CloudFormation schemas that decided."""


class Attention(Model):
    """One thing that a reviewer must look at."""

    effect: Effect | None
    """What happens to the resource, None where ``about`` is no change to a resource."""
    about: Literal[
        "change", "protection", "fabric", "quota", "plan", "addresses", "access", "policy", "cost", "left behind"
    ] = "change"
    """Which part of the report tells more: ``change`` is the blast radius."""
    resource: str
    """``stack / name`` of the resource (``... and 3 more``), or the group, statement, proof that it is about."""
    property: str | None = None
    before: str | None = None
    after: str | None = None
    message: str
    causes: tuple[Cause, ...] = ()


class ReasonKind(StrEnum):
    """Why a person must approve. ``review.yaml`` names who approves what by these words."""

    REPLACEMENT = "replacement"
    DELETION = "deletion"
    REFUSAL = "refusal"
    INTERRUPTION = "interruption"
    UNKNOWN = "unknown"
    ACCESS = "access"
    PROTECTION = "protection"
    COST = "cost"
    PROOF = "proof"
    QUOTA = "quota"
    PLAN = "plan"
    ADDRESSES = "addresses"
    REVIEW_FILE = "review"


class Reason(Model):
    """One reason for which a person must approve the change."""

    kind: ReasonKind
    resource: str
    """``stack / name`` of the resource (``... and 3 more``), or the group, statement, proof that it is about."""
    property: str | None = None
    sentence: str
    causes: tuple[Cause, ...] = ()
    """Lines of the environment file behind it, empty where none is known to be."""
    approvers: tuple[str, ...] = ()
    """Who approves such a reason by ``review.yaml``; empty where it names nobody."""


class Excepted(Model):
    """A reason that an exception of ``review.yaml`` answers, so that nobody is asked again."""

    reason: Reason
    because: str
    """What the exception gives as its reason."""
    owner: str
    expires: str
    """The last day on which the exception counts."""


class Verdict(Model):
    """The one line, and what stands behind it."""

    level: Level
    approval: str
    """The report's first line: who has to look at what, or why nobody has to."""
    sentence: str
    needs_approval: tuple[Reason, ...] = ()
    """Why a pipeline must ask a person before it deploys, gravest first; empty where it need not."""
    excepted: tuple[Excepted, ...] = ()
    """What would need approval but for an exception that has not expired."""
    reviewed_on: str | None = None
    """The day on which exceptions were judged, None where none was given; then no exception counts."""
    is_wrong: bool = False
    """Whether the service certainly refuses, a network is broken, or the policy has an error: exit code 1."""
    attention: tuple[Attention, ...] = ()


class Change(Model):
    """A number before and after; None where it is not known, 0 where there is none."""

    before: float | None
    after: float | None


class GroupCapacity(Model):
    """What one instance group has."""

    name: str
    instance_types: tuple[str, ...]
    zone_ids: tuple[str, ...]
    """AZ IDs of its subnets, empty where the template does not show."""
    capacity: str
    """``training plan h100-april``, ``on-demand``, ``spot``, ``flexible``."""
    nodes: Change
    accelerator: str | None
    """``H100 80 GB``, None without one."""
    accelerators: Change
    efa_interfaces: Change


class CapacityTotal(Model):
    """Groups of one instance type in one zone, together."""

    instance_type: str
    zone_id: str
    nodes: Change
    accelerators: Change
    efa_interfaces: Change


class PlanSeats(Model):
    """How many instances of a training plan the groups take."""

    plan: str
    instance_type: str
    used: Change
    seats: int | None
    """None where no record tells."""
    recorded_on: str | None
    problem: str | None = None


class BlockAddresses(Model):
    """The addresses of one subnet."""

    subnet: str
    cidr: str
    zone_id: str
    used: Change
    usable: int | None
    note: str = ""


class QuotaNeed(Model):
    """One quota that the environment needs."""

    name: str
    code: str | None
    needed: Change
    recorded: float | None
    """What the account had when it was recorded, else AWS's default; None where neither is known."""
    recorded_on: str | None
    """The date of the record, None for AWS's default."""
    result: Literal["enough", "short", "unknown"]


class Capacity(Model):
    """Nodes, accelerators, plans, addresses and quotas, before and after."""

    groups: tuple[GroupCapacity, ...] = ()
    totals: tuple[CapacityTotal, ...] = ()
    plans: tuple[PlanSeats, ...] = ()
    blocks: tuple[BlockAddresses, ...] = ()
    quotas: tuple[QuotaNeed, ...] = ()
    notes: tuple[str, ...] = ()


class Paid(Model):
    """What of a template is paid for: a resource, and of a cluster one of its instance groups."""

    stack: str
    logical_id: str
    item: str = ""
    properties: tuple[str, ...] = ()
    """The properties that decide how much it costs, as those of a grant."""


class CostLine(Model):
    """What one resource costs."""

    resource: str
    of: Paid | None = None
    """The resource in the template, None for all of a type together."""
    kind: Literal["nodes", "volumes", "storage", "network", "control plane", "logs", "other"]
    what: str
    """``8 x ml.p5.48xlarge, on demand``"""
    unit_price: float | None
    """US dollars per unit, None where the price file has none."""
    unit: str
    """``instance-hour``, ``GB-month``, ..."""
    monthly: Change
    """US dollars per month of 730 hours."""
    quantity: Change = Change(before=None, after=None)
    """How many units (of ``unit`` without its time: instances, GB) are paid; None where that is not known."""
    missing: str = ""
    """Which price is not known, and the command that brings it; empty where nothing is missing."""
    is_confirmed: bool = True
    """Whether no doubt is left about the price that it is counted at."""
    note: str = ""


class Unpriced(Model):
    """So much of something that has no known price: what the known part of the cost leaves out."""

    what: str
    """What is sold: ``ml.p5en.48xlarge``, ``FSx for Lustre, SSD at 500 MB/s per TiB``."""
    kind: Literal["nodes", "volumes", "storage", "network", "control plane", "logs", "other"]
    unit: str
    """What is counted: ``instance``, ``GB``; empty where it is single things."""
    quantity: Change
    """None where the number itself is not known."""
    is_accelerated: bool = False
    """Whether it is nodes with accelerators, or of a type of which that is not known."""
    missing: str
    """Why there is no price, and the command that brings it where there is one."""
    of: tuple[Paid, ...] = ()
    """The resources of which there is more or less, or another number that is not known."""


class PlanFee(Model):
    """A training plan's upfront fee, paid once for its window and not again by the hour."""

    plan: str
    fee: Change
    starts: str | None
    ends: str | None
    environment_during_window: Change
    """US dollars that everything else costs while the plan runs."""
    note: str = ""


class Cost(Model):
    """US dollars per month, and for the window of each training plan."""

    region: str
    prices_as_of: str
    lines: tuple[CostLine, ...] = ()
    monthly: Change = Change(before=0, after=0)
    """The known part: what has a known price."""
    unpriced: tuple[Unpriced, ...] = ()
    """The unknown part, with its quantities: what stands and has no known price."""
    is_lower_bound: bool = False
    """Whether something has no known price, or one by use, so that the total is at least this."""
    plans: tuple[PlanFee, ...] = ()
    unknown: tuple[str, ...] = ()
    """What has no known price, or a price by use."""
    notes: tuple[str, ...] = ()


class Grant(Model):
    """Who can do what to which, as one statement says it."""

    change: Literal["added", "removed"]
    kind: Literal["permission", "trust", "cluster access", "resource policy"]
    sentence: str
    who: str
    what: tuple[str, ...]
    which: tuple[str, ...]
    condition: str | None = None
    effect: Literal["Allow", "Deny"] = "Allow"
    is_wildcard: bool = False
    """Whether an action or a resource of it is a wildcard."""
    is_grave: bool = False
    """Whether it is a gain that a person must approve: an administrator of a cluster or of the account, trust of
    strangers, public data, an action by which a role can give itself more, a limit that no longer holds."""
    is_relied_on: bool = False
    """Whether it is a loss of an identity under which something runs, or by which people or endpoints come in."""
    is_covered: bool = False
    """Whether a wider statement allows, or denies, the same and more: of what comes until now, of what goes still."""
    is_of_service: bool = False
    """Whether ``who`` is a service of AWS."""
    stack: str
    logical_id: str
    properties: tuple[str, ...] = ()
    """The properties of the resource that it comes by, each by its name at any depth, or as ``InstanceGroups.OnCreate``
    where only below another; empty where they are not known one by one."""


class Reach(Model):
    """What can reach what over the network."""

    change: Literal["added", "removed"]
    sentence: str
    is_world: bool = False
    """Whether it reaches to or from any address."""
    is_grave: bool = False
    """Whether it is a gain that a person must approve: the internet comes in, another network or account is joined."""
    stack: str
    logical_id: str
    properties: tuple[str, ...] = ()
    """As those of a grant."""


class Access(Model):
    """Who gains access and who loses it."""

    grants: tuple[Grant, ...] = ()
    reach: tuple[Reach, ...] = ()
    wildcards: Change = Change(before=0, after=0)
    """Statements that allow with a wildcard in their action or resource."""
    notes: tuple[str, ...] = ()


class Proof(Model):
    """One thing that a fast network needs."""

    name: str
    result: Literal["holds", "broken", "unknown"]
    detail: str


class FabricSubject(Model):
    """An instance group or a file system and what is proven of its network."""

    subject: str
    kind: Literal["instance group", "file system"]
    stack: str
    logical_id: str
    proofs: tuple[Proof, ...]
    newly_broken: tuple[str, ...] = ()
    """Names of proofs that held before and are broken now."""
    newly_unknown: tuple[str, ...] = ()
    """Names of proofs that held before and are not known to hold now."""


class Fabric(Model):
    """The proof that EFA and Lustre traffic gets through, for every group and file system of the head."""

    subjects: tuple[FabricSubject, ...] = ()


class AssetChange(Model):
    """Other code or files that a resource gets: of an upload, or of the folder that an image is built from."""

    name: str
    """The object's key or the image's tag."""
    kind: Literal["files", "image"]
    used_by: tuple[str, ...]
    """``stack / name`` of the resources that get it."""
    files: tuple[str, ...] | None = None
    """What differs from what they had (``handler.py changes``), None where there is nothing to compare with."""
    is_read: bool = True
    """Whether what is deployed was read, where there is anything: else what differs is not known."""
    note: str = ""
    """Why nothing is compared, or why nothing differs."""


class Minutes(Model):
    """A range of minutes."""

    low: float
    high: float


class Step(Model):
    """One resource's place in the deployment."""

    stack: str
    logical_id: str
    type: str
    name: str
    action: Literal["create", "update", "replace", "delete"]
    starts: Minutes
    lasts: Minutes
    is_critical: bool
    """Whether the deployment takes longer if this step does."""
    source: str
    """Where the duration is from."""
    if_it_fails: str
    """What is there by then and costs money, and what CloudFormation does."""


class Timeline(Model):
    """The deployment, from the dependency graph of its resources."""

    steps: tuple[Step, ...] = ()
    total: Minutes = Minutes(low=0, high=0)
    critical_path: tuple[str, ...] = ()
    durations_as_of: str = ""
    notes: tuple[str, ...] = ()


class PolicyFinding(Model):
    """What cdk-nag, CloudFormation's engine or our own rules say about the templates."""

    rule: str
    severity: Literal["error", "warning"]
    resource: str
    message: str
    status: Literal["new", "standing", "resolved"]
    stood: bool = False
    """Whether the base is known to have it too: then it never changes the exit code."""
    suppressed: str | None = None
    """The reason in code for which it is suppressed."""


class Policy(Model):
    """The policy pack's findings."""

    findings: tuple[PolicyFinding, ...] = ()
    skipped: tuple[str, ...] = ()
    """What could not be checked, and why."""


class ShownRow(Model):
    """One value in the section of an extension; None where that side has none, or is not known."""

    what: str
    before: str | None = None
    after: str | None = None


class Shown(Model):
    """The section of an extension: what its code says of the templates of each side."""

    extension: str
    says: str
    """What it shows, the first line of the docstring of its ``review``."""
    base_is_known: bool
    """Whether the values before are known: what is deployed tells none."""
    rows: tuple[ShownRow, ...] = ()


class Report(Model):
    """What a change does."""

    format: Literal[2] = 2
    environment: str
    """The environment's name, or the template's where only a template was given."""
    base: Side
    head: Side
    verdict: Verdict
    blast_radius: BlastRadius
    capacity: Capacity
    cost: Cost
    access: Access
    assets: tuple[AssetChange, ...] = ()
    fabric: Fabric
    timeline: Timeline
    policy: Policy
    extensions: Annotated[tuple[Shown, ...], Field(description="What extensions of the project show.")] = ()
    notes: Annotated[tuple[str, ...], Field(description="What could not be told, and why.")] = ()
