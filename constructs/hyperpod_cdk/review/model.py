"""The report as data: the content of ``--out report.json`` and the input of every rendering. Its schema is
published."""

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
    """The most serious effect of a change, the most serious first."""

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
    """Its label for a reader: a revision, a folder, ``deployed``, ``nothing``."""
    commit: str | None = None
    """The commit of a Git revision."""
    environment_file: str | None = None
    """The environment file, as findings show it."""
    stacks: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each stack's template, by the stack's name: ``review --still`` compares a deployment with it."""
    assembly: str | None = None
    """SHA-256 over the names and contents of all files of an existing cloud assembly, assets included."""


class Cause(Model):
    """A line of the environment file that caused a change."""

    file: str
    line: int | None = None
    path: str
    """The place in the environment file (``hyperpod.instance_groups[1].count``); in the base's file if it was
    removed."""
    before: str | None = None
    after: str | None = None


Part = Literal["property", "metadata", "export"]
"""The part of a template that changes: a property or policy of a resource, its metadata for cfn-init, an export."""

EXPORT_PREFIX: Final = "Export "
"""Prefix of an export's name in place of a property's path."""


class PropertyEffect(Model):
    """One property that changes."""

    path: str
    of: Part = "property"
    before: str | None = None
    """None if there was none."""
    after: str | None = None
    """None if there is none afterwards."""
    effect: Effect
    reason: str
    """Why it has this effect, in one sentence."""
    source: str | None = None
    """The source: an address, or ``CloudFormation schema``."""
    interrupts: bool = False
    """Whether the resource remains but is not reachable, or is slower for hours, during the change."""
    is_indirect: bool = False
    """Whether it only follows from the replacement of a resource that it refers to."""
    causes: tuple[Cause, ...] = ()


class ResourceEffect(Model):
    """One resource that changes, and what the change does to it."""

    stack: str
    logical_id: str
    type: str
    name: str
    """The construct path below the stack, or the logical ID."""
    effect: Effect
    stateful: bool
    """Whether it contains data, nodes, an address or a key that others use: its loss would do harm."""
    summary: str
    """What happens, in one sentence."""
    is_certain: bool = True
    """Whether it happens: not if a condition or a value decides it that the templates do not show."""
    condition: str | None = None
    """The condition without which there is no such resource, if the template does not show whether it is true."""
    properties: tuple[PropertyEffect, ...] = ()
    causes: tuple[Cause, ...] = ()


class LeftBehind(Model):
    """A resource that is removed from its stack, or replaced, and stays in the account."""

    stack: str
    logical_id: str
    type: str
    name: str
    why: str
    costs_money: bool | None
    """None if that is unknown."""


class BlastRadius(Model):
    """Every resource that changes, the most serious first."""

    resources: tuple[ResourceEffect, ...] = ()
    left_behind: tuple[LeftBehind, ...] = ()
    counts: dict[Effect, int] = Field(default_factory=dict)
    schemas_as_of: str = ""
    """The date of the CloudFormation schemas that were used."""


class Attention(Model):
    """One entry that a reviewer must look at."""

    effect: Effect | None
    """What happens to the resource, None if ``about`` is not a change to a resource."""
    about: Literal[
        "change", "protection", "fabric", "quota", "plan", "addresses", "access", "policy", "cost", "left behind"
    ] = "change"
    """The section of the report with more details: ``change`` is the blast radius."""
    resource: str
    """``stack / name`` of the resource (``... and 3 more``), or the group, statement or proof."""
    property: str | None = None
    before: str | None = None
    after: str | None = None
    message: str
    is_certain: bool = True
    """Whether it happens to the resource: not if a condition or a value decides it that the templates do not show."""
    causes: tuple[Cause, ...] = ()


class ReasonKind(StrEnum):
    """Why a person must approve. ``review.yaml`` uses these words to name who approves what."""

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
    """``stack / name`` of the resource (``... and 3 more``), or the group, statement or proof."""
    property: str | None = None
    sentence: str
    causes: tuple[Cause, ...] = ()
    """Lines of the environment file that caused it, empty if none is known."""
    approvers: tuple[str, ...] = ()
    """Who approves such a reason according to ``review.yaml``; empty if it names no one."""


class Excepted(Model):
    """A reason that an exception of ``review.yaml`` covers, so that no approval is needed."""

    reason: Reason
    because: str
    """The reason that the exception states."""
    owner: str
    expires: str
    """The last day on which the exception counts."""


class Verdict(Model):
    """The summary line, and its basis."""

    level: Level
    approval: str
    """The report's first line: who must approve what, or why no approval is needed."""
    sentence: str
    needs_approval: tuple[Reason, ...] = ()
    """Why a pipeline must ask a person before it deploys, the most serious first; empty if it need not."""
    excepted: tuple[Excepted, ...] = ()
    """What would need approval without an exception that has not expired."""
    reviewed_on: str | None = None
    """The day on which exceptions were judged, None if none was given; then no exception counts."""
    is_wrong: bool = False
    """Whether the service certainly refuses the change, a network is broken, or the policy has an error: exit code
    1."""
    attention: tuple[Attention, ...] = ()


class Change(Model):
    """A number before and after; None if it is unknown, 0 if there is none."""

    before: float | None
    after: float | None


class GroupCapacity(Model):
    """One instance group."""

    name: str
    instance_types: tuple[str, ...]
    zone_ids: tuple[str, ...]
    """AZ IDs of its subnets, empty if the template does not show them."""
    capacity: str
    """``training plan h100-april``, ``on-demand``, ``spot``, ``flexible``."""
    nodes: Change
    accelerator: str | None
    """``H100 80 GB``, ``unknown`` for a type that is, None without one."""
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
    """How many instances of a training plan the groups use."""

    plan: str
    instance_type: str
    used: Change
    seats: int | None
    """None if no record has it."""
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
    """The account's value when it was recorded, else AWS's default; None if neither is known."""
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
    """The part of a template that is paid for: a resource, or an instance group of a cluster."""

    stack: str
    logical_id: str
    item: str = ""
    properties: tuple[str, ...] = ()
    """The properties that decide its cost, as those of a grant."""


class CostLine(Model):
    """The cost of one resource."""

    resource: str
    of: Paid | None = None
    """The resource in the template, None for all of a type together."""
    kind: Literal["nodes", "volumes", "storage", "network", "control plane", "logs", "other"]
    what: str
    """``8 x ml.p5.48xlarge, on demand``"""
    unit_price: float | None
    """US dollars per unit, None if the price file has none."""
    unit: str
    """``instance-hour``, ``GB-month``, ..."""
    monthly: Change
    """US dollars per month of 730 hours."""
    quantity: Change = Change(before=None, after=None)
    """How many units (of ``unit`` without its time: instances, GB) are paid; None if that is unknown."""
    missing: str = ""
    """Which price is unknown, and the command that gets it; empty if nothing is missing."""
    is_confirmed: bool = True
    """Whether the price that is used is certain."""
    note: str = ""


class Unpriced(Model):
    """A quantity without a known price: the known part of the cost does not contain it."""

    what: str
    """What is sold: ``ml.p5en.48xlarge``, ``FSx for Lustre, SSD at 500 MB/s per TiB``."""
    kind: Literal["nodes", "volumes", "storage", "network", "control plane", "logs", "other"]
    unit: str
    """The counted unit: ``instance``, ``GB``; empty for single items."""
    quantity: Change
    """None if the number itself is unknown."""
    is_accelerated: bool = False
    """Whether it is nodes with accelerators, or of a type for which that is unknown."""
    missing: str
    """Why there is no price, and the command that gets it if there is one."""
    of: tuple[Paid, ...] = ()
    """The resources with a higher or lower number, or with another unknown number."""


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
    """The known part: everything with a known price."""
    unpriced: tuple[Unpriced, ...] = ()
    """The unknown part, with its quantities: deployed resources without a known price."""
    is_lower_bound: bool = False
    """Whether something has no known price, or a price by use, so that the total is at least this."""
    plans: tuple[PlanFee, ...] = ()
    unknown: tuple[str, ...] = ()
    """Items without a known price, or with a price by use."""
    notes: tuple[str, ...] = ()


class Grant(Model):
    """Who can do what to which, as one statement allows it."""

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
    """Whether it is a gain that a person must approve: an administrator of a cluster or of the account, trust in other
    accounts, public data, an action by which a role can extend its own permissions, a limit that no longer applies."""
    is_relied_on: bool = False
    """Whether an identity loses it under which workloads run, or which people or endpoints use."""
    is_covered: bool = False
    """Whether a wider statement allows, or denies, the same: for an addition the earlier one, for a removal the
    remaining one."""
    is_of_service: bool = False
    """Whether ``who`` is an AWS service."""
    stack: str
    logical_id: str
    properties: tuple[str, ...] = ()
    """The properties of the resource from which it follows, each by its name at any depth, or as
    ``InstanceGroups.OnCreate`` if only below another; empty if they are not known one by one."""


class Reach(Model):
    """What can reach what over the network."""

    change: Literal["added", "removed"]
    sentence: str
    is_world: bool = False
    """Whether it reaches to or from any address."""
    is_grave: bool = False
    """Whether it is a gain that a person must approve: access from the internet, a connection to another network or
    account."""
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
    """One requirement of a fast network."""

    name: str
    result: Literal["holds", "broken", "unknown"]
    detail: str


class FabricSubject(Model):
    """An instance group or a file system and the proofs of its network."""

    subject: str
    kind: Literal["instance group", "file system"]
    stack: str
    logical_id: str
    proofs: tuple[Proof, ...]
    newly_broken: tuple[str, ...] = ()
    """Names of proofs that were valid before and are broken now."""
    newly_unknown: tuple[str, ...] = ()
    """Names of proofs that were valid before and are unknown now."""


class Fabric(Model):
    """The proof that EFA and Lustre traffic is possible, for every group and file system of the head."""

    subjects: tuple[FabricSubject, ...] = ()


class AssetChange(Model):
    """Other code or files that a resource gets: from an upload, or from the folder of an image build."""

    name: str
    """The object's key or the image's tag."""
    kind: Literal["files", "image"]
    used_by: tuple[str, ...]
    """``stack / name`` of the resources that get it."""
    files: tuple[str, ...] | None = None
    """What differs from the earlier files (``handler.py changes``), None if there are none to compare with."""
    is_read: bool = True
    """Whether the deployed files were read, if there are any: otherwise the differences are unknown."""
    note: str = ""
    """Why nothing was compared, or why nothing differs."""


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
    """What exists by then and costs money, and what CloudFormation does."""


class Timeline(Model):
    """The deployment, from the dependency graph of its resources."""

    steps: tuple[Step, ...] = ()
    total: Minutes = Minutes(low=0, high=0)
    critical_path: tuple[str, ...] = ()
    durations_as_of: str = ""
    notes: tuple[str, ...] = ()


class PolicyFinding(Model):
    """What cdk-nag, CloudFormation's engine or our own rules report on the templates."""

    rule: str
    severity: Literal["error", "warning"]
    resource: str
    message: str
    status: Literal["new", "standing", "resolved"]
    stood: bool = False
    """Whether the base is known to have it, too: then it never changes the exit code."""
    suppressed: str | None = None
    """The reason in code for which it is suppressed."""


class Policy(Model):
    """The policy pack's findings."""

    findings: tuple[PolicyFinding, ...] = ()
    skipped: tuple[str, ...] = ()
    """What could not be checked, and why."""


class ShownRow(Model):
    """One value in the section of an extension; None if that side has none, or if it is unknown."""

    what: str
    before: str | None = None
    after: str | None = None


class Shown(Model):
    """The section of an extension: what its code shows about the templates of each side."""

    extension: str
    says: str
    """What it shows, the first line of the docstring of its ``review``."""
    base_is_known: bool
    """Whether the values before are known: deployed stacks have none."""
    rows: tuple[ShownRow, ...] = ()


class Report(Model):
    """What a change does."""

    format: Literal[2] = 2
    environment: str
    """The environment's name, or the template's if only a template was given."""
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
    notes: Annotated[tuple[str, ...], Field(description="What could not be determined, and why.")] = ()
