"""Models of the ``--format json`` output of commands that print no report of another package. Schemas are published."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from hyperpod_cdk.config.recorded_plans import RecordedPlans
from hyperpod_cdk.json_schema import Model, Told, as_text, schema_of_report

Number = int | float


class CheckedFile(Model):
    """An environment file with its errors and warnings."""

    file: str
    passed: bool
    """False if the file has an error."""
    findings: tuple[Told, ...]


class Validation(Model):
    """The output of ``validate``, and of every other command if it refuses the file."""

    passed: bool
    files: tuple[CheckedFile, ...]


class Gap(Model):
    """Something that could not be checked."""

    reason: str
    action: str
    """The missing IAM action; empty if the cause is another one."""
    path: str
    """The place in the file that it refers to."""
    aws_said: str
    """The error message of AWS; empty if AWS returned none."""


class Shown(Model):
    """What a check read and compared."""

    text: str
    data: dict[str, Any]


class CheckResult(Model):
    """What one check found."""

    check: str
    area: str
    status: Literal["passed", "warned", "failed", "skipped", "not needed"]
    findings: tuple[Told, ...]
    skipped: tuple[Gap, ...]
    details: tuple[Shown, ...]


class Asked(Model):
    """The number and duration of the AWS calls."""

    calls: int
    depth: int
    """The length of the longest chain of calls that waited for one another."""


class Preflight(Model):
    """The output of ``preflight``; if the file is refused, the output is that of ``validate``."""

    passed: bool | None
    """False if a check failed, null if something was skipped."""
    file: str
    counts: dict[str, int]
    """The number of checks with each status."""
    checks: tuple[CheckResult, ...]
    aws: Asked


class Project(Model):
    """The output of ``new``."""

    project: str
    """The folder that was created."""
    files: tuple[str, ...]
    """The files that were written, by their path in the folder."""
    next: tuple[str, ...]
    """The next commands to run, in order."""


class WrittenEnvironment(Model):
    """The output of ``init``."""

    file: str
    next: tuple[str, ...]
    """The next commands to run, in order."""


class RehearsalStep(Model):
    """One step of a rehearsal."""

    name: str
    result: str
    seconds: float


class RehearsedSubnet(Model):
    """A subnet of the embedded AWS."""

    subnet_id: str
    name: str
    availability_zone_id: str
    cidr: str


class RehearsedGroup(Model):
    """An instance group with its current and target number of nodes."""

    name: str
    instance_types: str
    current: int
    target: int
    status: str
    availability_zone_ids: str
    training_plan: str


class MissingNodes(Model):
    """Nodes that an instance group wants and does not have, all for the same reason."""

    group: str
    count: int
    reason: str
    """Why the nodes are not Running: HyperPod's message, the status of their training plan, or that they come later."""
    is_failure: bool
    """False for nodes of a training plan that has not started, nodes that come later, and nodes of which the account
    file states under ``nodes`` that they fail; true for all others, and then ``passed`` is false."""


class RehearsedQuota(Model):
    """A team's compute quota."""

    team: str
    resources: str
    weight: int
    sharing: str
    preemption: str
    status: str


class Rehearsed(Model):
    """What the APIs of the embedded AWS returned after the deployment; empty if the rehearsal failed before."""

    vpc_id: str
    vpc_cidrs: tuple[str, ...]
    subnets: tuple[RehearsedSubnet, ...]
    nat_gateways: int
    endpoints: tuple[str, ...]
    eks: str
    kubernetes_version: str
    eks_status: str
    addons: dict[str, str]
    """Versions by name."""
    access_entries: dict[str, str]
    """The permissions of each principal."""
    cluster: str
    cluster_status: str
    cluster_settings: str
    groups: tuple[RehearsedGroup, ...]
    running_nodes: int
    scripts: tuple[str, ...]
    file_systems: tuple[str, ...]
    policy: str
    quotas: tuple[RehearsedQuota, ...]


class RehearsedCustomResource(Model):
    """How one request to a custom resource was served."""

    how: Literal["ran", "played", "skipped"]
    """``ran``: its own code ran; ``played``: its documented effect was applied, because the code does not run here."""
    type: str
    logical_id: str
    reason: str
    stack: str
    request: str


class RecordedOnly(Model):
    """A resource that was only checked against its schema and recorded."""

    type: str
    logical_id: str
    stack: str


class KeptResource(Model):
    """A resource that is retained by design when the environment is destroyed."""

    kind: str
    name: str
    why: str
    monthly: str
    """US dollars per month, or the reason why the amount is unknown."""


class Rehearsal(Model):
    """The output of ``rehearse``; if the file is refused, the output is that of ``validate``."""

    environment: str
    file: str
    account: str
    region: str
    passed: bool
    problem: str
    """The error; empty if there was none."""
    steps: tuple[RehearsalStep, ...]
    exists: Rehearsed
    missing_nodes: tuple[MissingNodes, ...]
    """What ``exists`` lacks of the nodes that the instance groups want."""
    custom_resources: tuple[RehearsedCustomResource, ...]
    recorded_only: tuple[RecordedOnly, ...]
    kubernetes: tuple[str, ...]
    """The Kubernetes objects and Helm releases that were recorded."""
    retained: dict[str, tuple[str, ...]]
    """The resources that the stacks retained when they were deleted, by type."""
    kept: tuple[KeptResource, ...]
    refused_by_policy: tuple[str, ...]
    """Permissions that this deployment needs and the policy of 'bootstrap-policy' does not have."""
    placeholder_chart: bool
    not_rehearsed: tuple[str, ...]
    """What a rehearsal cannot show."""


class PulledChart(Model):
    """The output of ``charts pull``."""

    chart: str
    """The folder of the chart."""


class ChartImage(Model):
    """A container image of the chart."""

    image: str
    to_copy: bool
    """True if the image is not in Amazon ECR of the Region, so that a closed network needs a copy."""
    copy_: str | None = Field(alias="copy")
    """The name of the copy; null if no copy is needed or the file has no ``eks.image_registry``."""


class ChartImages(Model):
    """The output of ``charts images``."""

    source: str
    """The source of the list."""
    images: tuple[ChartImage, ...]


class ComparedQuota(Model):
    """A quota and how much of it the environment needs; a value that was not read completely is null."""

    quota: str
    service: str
    code: str
    needed: Number
    spare: Number
    """The capacity for the replacement of nodes, in addition to what is needed."""
    used_by_others: Number | None
    """Null if it was not read completely or does not count."""
    used_by_others_at_least: Number | None
    """The part that was read; null if it does not count."""
    value: Number | None
    is_default: bool
    """True if the account has AWS's default value."""
    verdict: Literal["passed", "warning", "error", "skipped"]
    message: str
    unread: str
    """What could not be read; empty if everything was read."""
    aws_said: str
    path: str


class LargestGroup(Model):
    """The largest number of nodes that the quotas allow for a group."""

    group: str
    instance_type: str
    present_count: int
    largest_count: int | None
    """Null if no quota could be read."""
    bound_by: str
    unread: tuple[str, ...]
    """Quotas that were not read and may lower the limit."""


class Mix(Model):
    """How many times all groups together would fit into the quotas."""

    times: int | None
    """Null if no quota could be read."""
    bound_by: str
    unread: tuple[str, ...]


class LargestCluster(Model):
    """The largest cluster that the quotas allow."""

    groups: tuple[LargestGroup, ...]
    mix: Mix


class QuotaRecord(Model):
    """The record that was written with ``--record``."""

    file: str
    changes: tuple[str, ...]
    """The differences from the previous record."""


class Quotas(Model):
    """The output of ``quotas show``."""

    passed: bool | None
    """False if a quota is too low, null if a quota or its usage was not read completely."""
    file: str
    region: str
    quotas: tuple[ComparedQuota, ...]
    largest: LargestCluster
    record: QuotaRecord | None
    """Null without ``--record``."""


class RequestedQuota(Model):
    """A request for an increase."""

    quota: str
    service: str
    code: str
    id: str
    status: str
    value: Number
    needed: Number | None
    """Null if the environment no longer needs an increase."""
    age: str
    case: str
    """The ID of the support case; empty if there is none."""


class QuotaRequests(Model):
    """The output of ``quotas request``."""

    passed: bool | None
    """False if AWS does not increase a quota or refused a request, null if a quota was not read."""
    requested: tuple[RequestedQuota, ...]
    open: tuple[RequestedQuota, ...]
    """Requests that were open already."""
    problems: tuple[str, ...]


class RefusedSearch(Model):
    """Durations for which the search failed."""

    days: tuple[int, ...]
    quota: bool
    """True if a quota is too low."""
    reason: str
    action: str
    """The missing IAM action; empty if the cause is another one."""


class OfferedBlock(Model):
    """A part of an offering: nodes in one zone for one period."""

    availability_zone_id: str | None
    """Null if the IDs of the zones could not be read."""
    availability_zone: str
    count: int
    start: str | None
    end: str | None
    nodes_leave: str | None
    """When AWS terminates the nodes, before the end. These three times are in ISO 8601 format, in UTC."""


class PlanOffer(Model):
    """A training plan that AWS offers."""

    offering_id: str
    instance_type: str
    count: int
    hours: str | None
    """Null if AWS's response contains neither the duration nor the times of all blocks."""
    upfront_fee: str
    currency: str
    price_per_accelerator_hour: str | None
    """Null if AWS's response does not contain it."""
    fits: tuple[str, ...]
    """The instance groups that it would fit."""
    zone_in_file: bool | None
    """Null without an environment, or if the IDs of the zones could not be read."""
    blocks: tuple[OfferedBlock, ...]
    command: str
    """The AWS CLI command that buys it. No hyperpod-cdk command does."""


class PlanSearch(Model):
    """The search for one instance type, and its results."""

    instance_type: str
    count: int
    days: tuple[int, ...]
    start_after: str | None
    end_before: str | None
    groups: tuple[str, ...]
    asked_at: str | None
    zones_missing: str
    """Why the IDs of the zones are unknown; empty if they are known."""
    quota: Number | None
    """The value of the quota that is too low; null if there is none or its value is unknown."""
    refused: tuple[RefusedSearch, ...]
    offers: tuple[PlanOffer, ...]
    """Sorted by price per accelerator-hour."""


class PlanOfferings(Model):
    """The output of ``plans search``."""

    passed: bool | None
    """False if nothing was found because a quota is too low, null if AWS did not answer for a part."""
    region: str
    searches: tuple[PlanSearch, ...]


class PlanRecord(Model):
    """The output of ``plans record``."""

    passed: bool
    """False if the record contradicts the environment."""
    file: str
    changes: tuple[str, ...]
    findings: tuple[Told, ...]
    record: RecordedPlans


class PriceRow(Model):
    """The price of one unit in one Region."""

    region: str
    sku: str
    usd: str
    unit: str
    as_of: str | None
    source: str
    unsure: str
    """Why it is not confirmed; empty if it is confirmed."""


class PricesShown(Model):
    """The output of ``prices show``."""

    file: str
    as_of: str
    sources: dict[str, str]
    prices: tuple[PriceRow, ...]


class PriceChanges(Model):
    """The output of ``prices refresh``."""

    passed: bool | None
    """Null if a price was not found or could not be read."""
    file: str
    written: bool
    """False with ``--dry-run``."""
    as_of: str
    changes: tuple[str, ...]
    missing: tuple[str, ...]
    """Prices that are not in AWS's price list."""
    left_out: tuple[str, ...]
    """Entries of the price list that could not be read."""


class PolicyStatement(Model):
    """A statement of an IAM policy."""

    model_config = ConfigDict(extra="allow")

    Sid: str
    Effect: Literal["Allow", "Deny"]


class PolicyDocument(Model):
    """An IAM policy in IAM's own format, also the output of ``--iam-policy``."""

    Version: Literal["2012-10-17"]
    Statement: tuple[PolicyStatement, ...]


class NamedPolicy(Model):
    """A policy for 'aws iam create-policy'."""

    name: str
    characters: int
    """The number of characters without whitespace, as IAM counts them."""
    document: PolicyDocument


class WithoutActions(Model):
    """Actions that CloudFormation lists but these stacks do not need."""

    types: tuple[str, ...]
    properties: tuple[str, ...]
    """Properties that would need the actions and that no template sets."""
    actions: str
    """A regular expression."""
    why: str


class UnknownType(Model):
    """A resource type whose IAM actions are unknown, so that the policies allow none for it."""

    type: str
    resources: tuple[str, ...]
    """By stack and logical ID."""


class BootstrapPolicies(Model):
    """The output of ``bootstrap-policy``."""

    environment: str
    account: str
    region: str
    policies: tuple[NamedPolicy, ...]
    reasons: dict[str, str]
    """The reason for each statement, by its Sid."""
    left_out: tuple[WithoutActions, ...]
    unknown: tuple[UnknownType, ...]
    files: tuple[str, ...]
    """The files that were written; empty without ``--out``."""


class NextSteps(Model):
    """Commands for a shell."""

    apply: str
    watch: tuple[str, ...]
    remove: str
    hyp: str | None
    """The same with AWS's HyperPod CLI; null if that command cannot do it."""
    without_hyp: tuple[str, ...]
    """Why there is no such command, or what it omits."""


class JobManifests(Model):
    """The output of ``job render``; if the job file is refused, the output is that of ``validate``."""

    manifests: tuple[dict[str, Any], ...]
    """Kubernetes objects, in the order in which they are applied."""
    warnings: tuple[Told, ...]
    next: NextSteps


class ResourceAmount(Model):
    """An amount of a resource on nodes of one instance type; memory is in bytes."""

    instance_type: str
    resource: str
    amount: float


class ResourceUse(Model):
    """How much of the capacity of all nodes is in use."""

    used: float
    capacity: float
    percent: float | None
    """Null if no node is known to have any, as with Karpenter."""


class AdmissionDecision(Model):
    """The result of submitting one job."""

    job: str
    kind: str
    namespace: str
    name: str
    team: str | None
    queue: str | None
    priority: int
    status: Literal["admitted", "waiting", "never", "unmanaged"]
    why: str
    pods: int
    lenders: tuple[str, ...]
    preempted: tuple[str, ...]
    """Jobs that were preempted for it."""
    warnings: tuple[str, ...]
    own: tuple[ResourceAmount, ...]
    """What it uses of its team's quota."""
    borrowed: tuple[ResourceAmount, ...]
    before: dict[str, ResourceUse]
    after: dict[str, ResourceUse]


class Admitted(Model):
    """The output of ``job admit``."""

    decisions: tuple[AdmissionDecision, ...]
    running: tuple[str, ...]
    """The jobs that run at the end."""


class BuildContext(Model):
    """The output of ``image render``."""

    files: dict[str, str]
    """The text of each file, by name."""
    platform: str
    next: tuple[str, ...]
    """Commands that build the image, in order."""


PAGES: Final[Mapping[str, tuple[str, str, str]]] = {
    "admission": ("_cli.answers", "Admitted", "job admit"),
    "attachment": ("living.model", "Attachment", "plans attach"),
    "bootstrap-policy": ("_cli.answers", "BootstrapPolicies", "bootstrap-policy"),
    "chart": ("_cli.answers", "PulledChart", "charts pull"),
    "chart-images": ("_cli.answers", "ChartImages", "charts images"),
    "drift": ("living.model", "Drift", "drift"),
    "extensions": ("living.model", "Extensions", "plans extend"),
    "fleet-report": ("fleet.model", "FleetReport", "fleet"),
    "fleet-sums": ("fleet.model", "Sums", "fleet sums"),
    "iam-policy": ("_cli.answers", "PolicyDocument", "--iam-policy"),
    "image": ("_cli.answers", "BuildContext", "image render"),
    "import": ("importing.model", "Imported", "import"),
    "init": ("_cli.answers", "WrittenEnvironment", "init"),
    "job-manifests": ("_cli.answers", "JobManifests", "job render"),
    "job-report": ("workloads.report.model", "Report", "job report"),
    "new": ("_cli.answers", "Project", "new"),
    "node-details": ("living.model", "NodesDescribed", "node describe"),
    "node-logs": ("living.model", "NodeLogs", "node logs"),
    "node-work": ("living.model", "NodeWork", "node replace, reboot, check, cordon, uncordon"),
    "nodes": ("living.model", "Nodes", "node list"),
    "observation": ("living.observing.model", "Bundle", "observe"),
    "plan": ("transitions.model", "Plan", "plan"),
    "plan-offerings": ("_cli.answers", "PlanOfferings", "plans search"),
    "plan-record": ("_cli.answers", "PlanRecord", "plans record"),
    "preflight": ("_cli.answers", "Preflight", "preflight"),
    "price-changes": ("_cli.answers", "PriceChanges", "prices refresh"),
    "prices": ("_cli.answers", "PricesShown", "prices show"),
    "quota-requests": ("_cli.answers", "QuotaRequests", "quotas request"),
    "quotas": ("_cli.answers", "Quotas", "quotas show"),
    "recovery": ("transitions.model", "Recovery", "recover"),
    "rehearsal": ("_cli.answers", "Rehearsal", "rehearse"),
    "review-report": ("review.model", "Report", "review"),
    "status": ("living.model", "Status", "status"),
    "teams-cost": ("fleet.model", "TeamsCost", "teams cost"),
    "upgrade": ("transitions.model", "Upgrade", "upgrade"),
    "validate": ("_cli.answers", "Validation", "validate"),
}
"""Module and name of the model of each page of 'schema --of', and the commands that print it."""


def print_answer(model: type[Model], data: Mapping[str, Any]) -> None:
    """Print a command's output as JSON, validated by its model so that it always matches the published schema."""
    print(as_text(model.model_validate(data).model_dump(mode="json", by_alias=True)), end="")


def answer_schema_text(page: str) -> str:
    """Return the JSON Schema (2020-12) of a page as the text of its file; every key is required, even if it is null."""
    module, name, verb = PAGES[page]
    model: type[Model] = getattr(import_module(f"hyperpod_cdk.{module}"), name)
    return as_text(schema_of_report(model, title=f"hyperpod-cdk {verb}"))
