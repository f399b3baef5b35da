"""What verbs write with ``--format json``, those that hand on no report of a room below. Schemas are published."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from hyperpod_cdk._cli.output import print_json
from hyperpod_cdk.config.recorded_plans import RecordedPlans
from hyperpod_cdk.json_schema import Model, Told, as_text, schema_of_report

Number = int | float


class CheckedFile(Model):
    """An environment file with everything that is wrong or doubtful in it."""

    file: str
    passed: bool
    """False where an error refuses it."""
    findings: tuple[Told, ...]


class Validation(Model):
    """What ``validate`` says, and every verb whose file is refused."""

    passed: bool
    files: tuple[CheckedFile, ...]


class Gap(Model):
    """What a check could not look at."""

    reason: str
    action: str
    """The IAM action that is missing; empty where it is something else."""
    path: str
    """The place in the file that it is about."""
    aws_said: str
    """AWS's own words; empty where it said nothing."""


class Shown(Model):
    """What a check saw."""

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
    """How AWS was asked."""

    calls: int
    depth: int
    """How many calls waited for one another, at most."""


class Preflight(Model):
    """What ``preflight`` says; of a file that is refused it says what ``validate`` does."""

    passed: bool | None
    """False where a check failed, null where something was skipped."""
    file: str
    counts: dict[str, int]
    """How many checks have each status."""
    checks: tuple[CheckResult, ...]
    aws: Asked


class Project(Model):
    """What ``new`` says."""

    project: str
    """The folder that was made."""
    files: tuple[str, ...]
    """What was written there, by its place in it."""
    next: tuple[str, ...]
    """Commands to go on with, in order."""


class WrittenEnvironment(Model):
    """What ``init`` says."""

    file: str
    next: tuple[str, ...]
    """Commands to go on with, in order."""


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
    """An instance group with the nodes that it has and wants."""

    name: str
    instance_types: str
    current: int
    target: int
    status: str
    availability_zone_ids: str
    training_plan: str


class RehearsedQuota(Model):
    """A team's compute quota."""

    team: str
    resources: str
    weight: int
    sharing: str
    preemption: str
    status: str


class Rehearsed(Model):
    """What the APIs of the embedded AWS returned after the deployment; empty if it failed before."""

    vpc_id: str
    vpc_cidrs: tuple[str, ...]
    subnets: tuple[RehearsedSubnet, ...]
    nat_gateways: int
    endpoints: tuple[str, ...]
    eks: str
    kubernetes_version: str
    eks_status: str
    addons: dict[str, str]
    """Version by name."""
    access_entries: dict[str, str]
    """What each principal may do."""
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
    """``ran``: its own code; ``played``: its documented effect, since that code does not run here."""
    type: str
    logical_id: str
    reason: str
    stack: str
    request: str


class RecordedOnly(Model):
    """A resource that was checked against its schema and recorded, nothing else."""

    type: str
    logical_id: str
    stack: str


class KeptResource(Model):
    """What stays after a destroy on purpose."""

    kind: str
    name: str
    why: str
    monthly: str
    """US dollars per month, or why there is no amount."""


class Rehearsal(Model):
    """What ``rehearse`` says; of a file that is refused it says what ``validate`` does."""

    environment: str
    file: str
    account: str
    region: str
    passed: bool
    problem: str
    """What went wrong; empty where nothing did."""
    steps: tuple[RehearsalStep, ...]
    exists: Rehearsed
    custom_resources: tuple[RehearsedCustomResource, ...]
    recorded_only: tuple[RecordedOnly, ...]
    kubernetes: tuple[str, ...]
    """Objects and Helm releases that were recorded."""
    retained: dict[str, tuple[str, ...]]
    """What stacks left behind on deletion, by type."""
    kept: tuple[KeptResource, ...]
    refused_by_policy: tuple[str, ...]
    """Permissions that this deployment needs and the policy of 'bootstrap-policy' does not have."""
    placeholder_chart: bool
    not_rehearsed: tuple[str, ...]
    """What no rehearsal can show."""


class PulledChart(Model):
    """What ``charts pull`` says."""

    chart: str
    """The folder of the chart."""


class ChartImage(Model):
    """A container image of the chart."""

    image: str
    to_copy: bool
    """True where it is not in ECR of the Region, so that a closed network needs a copy."""
    copy_: str | None = Field(alias="copy")
    """The name of the copy; null where none is needed, or the file has no ``eks.image_registry``."""


class ChartImages(Model):
    """What ``charts images`` says."""

    source: str
    """Where the list comes from."""
    images: tuple[ChartImage, ...]


class ComparedQuota(Model):
    """A quota and what the environment needs of it; what was not read, or not in full, is null."""

    quota: str
    service: str
    code: str
    needed: Number
    spare: Number
    """Room for the replacement of nodes, in addition to what is needed."""
    used_by_others: Number | None
    """Null where it was not read in full, or does not count."""
    used_by_others_at_least: Number | None
    """What was read of it; null where it does not count."""
    value: Number | None
    is_default: bool
    """True where the account has AWS's default."""
    verdict: Literal["passed", "warning", "error", "skipped"]
    message: str
    unread: str
    """What could not be read; empty where all was."""
    aws_said: str
    path: str


class LargestGroup(Model):
    """The most nodes that the quotas let a group have."""

    group: str
    instance_type: str
    present_count: int
    largest_count: int | None
    """Null where no quota could be read."""
    bound_by: str
    unread: tuple[str, ...]
    """Quotas that were not read, and may bind it more."""


class Mix(Model):
    """How often all groups together would fit."""

    times: int | None
    """Null where no quota could be read."""
    bound_by: str
    unread: tuple[str, ...]


class LargestCluster(Model):
    """What the quotas allow at most."""

    groups: tuple[LargestGroup, ...]
    mix: Mix


class QuotaRecord(Model):
    """The record that ``--record`` wrote."""

    file: str
    changes: tuple[str, ...]
    """What differs from the one before."""


class Quotas(Model):
    """What ``quotas show`` says."""

    passed: bool | None
    """False where a quota is too low, null where one, or its use, was not read in full."""
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
    """Null where the environment needs no increase any more."""
    age: str
    case: str
    """ID of the support case; empty without one."""


class QuotaRequests(Model):
    """What ``quotas request`` says."""

    passed: bool | None
    """False where AWS does not raise a quota or refused to, null where one was not read."""
    requested: tuple[RequestedQuota, ...]
    open: tuple[RequestedQuota, ...]
    """Requests that were open already."""
    problems: tuple[str, ...]


class RefusedSearch(Model):
    """Durations for which AWS gave no answer."""

    days: tuple[int, ...]
    quota: bool
    """True where a quota is too low."""
    reason: str
    action: str
    """The IAM action that is missing; empty where it is something else."""


class OfferedBlock(Model):
    """A part of an offering: nodes of one zone for one time."""

    availability_zone_id: str | None
    """Null where the zones' IDs could not be read."""
    availability_zone: str
    count: int
    start: str | None
    end: str | None
    nodes_leave: str | None
    """When AWS takes the nodes, before the end. These three are ISO 8601, UTC."""


class PlanOffer(Model):
    """A training plan that AWS offers."""

    offering_id: str
    instance_type: str
    count: int
    hours: str
    upfront_fee: str
    currency: str
    price_per_accelerator_hour: str | None
    """Null where AWS's answer does not give it."""
    fits: tuple[str, ...]
    """The instance groups that it would fit."""
    zone_in_file: bool | None
    """Null without an environment, or where the zones' IDs could not be read."""
    blocks: tuple[OfferedBlock, ...]
    command: str
    """What would buy it with the AWS CLI. No command of ours does."""


class PlanSearch(Model):
    """What was searched for one kind of instance, and what was found."""

    instance_type: str
    count: int
    days: tuple[int, ...]
    start_after: str | None
    end_before: str | None
    groups: tuple[str, ...]
    asked_at: str | None
    zones_missing: str
    """Why the IDs of the zones are not known; empty where they are."""
    quota: Number | None
    """The quota that refused; null where none did or its value is not known."""
    refused: tuple[RefusedSearch, ...]
    offers: tuple[PlanOffer, ...]
    """Sorted by price per accelerator-hour."""


class PlanOfferings(Model):
    """What ``plans search`` says."""

    passed: bool | None
    """False where nothing was found for a quota that is too low, null where AWS did not answer for a part."""
    region: str
    searches: tuple[PlanSearch, ...]


class PlanRecord(Model):
    """What ``plans record`` says."""

    passed: bool
    """False where the record contradicts the environment."""
    file: str
    changes: tuple[str, ...]
    findings: tuple[Told, ...]
    record: RecordedPlans


class PriceRow(Model):
    """What one unit of something costs in one Region."""

    region: str
    sku: str
    usd: str
    unit: str
    as_of: str | None
    source: str
    unsure: str
    """Why it is not confirmed; empty where it is."""


class PricesShown(Model):
    """What ``prices show`` says."""

    file: str
    as_of: str
    sources: dict[str, str]
    prices: tuple[PriceRow, ...]


class PriceChanges(Model):
    """What ``prices refresh`` says."""

    passed: bool | None
    """Null where a price was not found or could not be read."""
    file: str
    written: bool
    """False with ``--dry-run``."""
    as_of: str
    changes: tuple[str, ...]
    missing: tuple[str, ...]
    """What AWS's price list does not have."""
    left_out: tuple[str, ...]
    """What of it could not be read."""


class PolicyStatement(Model):
    """A statement of an IAM policy."""

    model_config = ConfigDict(extra="allow")

    Sid: str
    Effect: Literal["Allow", "Deny"]


class PolicyDocument(Model):
    """An IAM policy, as ``--iam-policy`` prints it, too: IAM's own format."""

    Version: Literal["2012-10-17"]
    Statement: tuple[PolicyStatement, ...]


class NamedPolicy(Model):
    """A policy for 'aws iam create-policy'."""

    name: str
    characters: int
    """Without blanks, as IAM counts them."""
    document: PolicyDocument


class WithoutActions(Model):
    """Actions that CloudFormation lists and these stacks do not need."""

    types: tuple[str, ...]
    properties: tuple[str, ...]
    """What would need them, and no template sets."""
    actions: str
    """A regular expression."""
    why: str


class UnknownType(Model):
    """A type of which no IAM actions are known, so that the policies allow none for it."""

    type: str
    resources: tuple[str, ...]
    """By stack and logical ID."""


class BootstrapPolicies(Model):
    """What ``bootstrap-policy`` says."""

    environment: str
    account: str
    region: str
    policies: tuple[NamedPolicy, ...]
    reasons: dict[str, str]
    """Why each statement is there, by its Sid."""
    left_out: tuple[WithoutActions, ...]
    unknown: tuple[UnknownType, ...]
    files: tuple[str, ...]
    """What was written; empty without ``--out``."""


class NextSteps(Model):
    """Commands for a shell."""

    apply: str
    watch: tuple[str, ...]
    remove: str
    hyp: str | None
    """The same with AWS's own command; null where it cannot."""
    without_hyp: tuple[str, ...]
    """Why there is none, or what that command leaves out."""


class JobManifests(Model):
    """What ``job render`` says; of a job file that is refused it says what ``validate`` does."""

    manifests: tuple[dict[str, Any], ...]
    """Kubernetes objects, in the order in which they are applied."""
    warnings: tuple[Told, ...]
    next: NextSteps


class ResourceAmount(Model):
    """So much of a resource on nodes of one type; memory in bytes."""

    instance_type: str
    resource: str
    amount: float


class ResourceUse(Model):
    """How much of what all nodes have is in use."""

    used: float
    capacity: float
    percent: float | None
    """Null where no node is known to have any, as with Karpenter."""


class AdmissionDecision(Model):
    """What became of one job when it was submitted."""

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
    """Jobs that had to stop for it."""
    warnings: tuple[str, ...]
    own: tuple[ResourceAmount, ...]
    """What it takes of its team's quota."""
    borrowed: tuple[ResourceAmount, ...]
    before: dict[str, ResourceUse]
    after: dict[str, ResourceUse]


class Admitted(Model):
    """What ``job admit`` says."""

    decisions: tuple[AdmissionDecision, ...]
    running: tuple[str, ...]
    """What runs at the end."""


class BuildContext(Model):
    """What ``image render`` says."""

    files: dict[str, str]
    """Text by name."""
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
"""Module and name of the model of each page of 'schema --of', and the verbs whose answer it is."""


def print_answer(model: type[Model], data: Mapping[str, Any]) -> None:
    """Print a verb's answer as the JSON of its model, so that it cannot be other than its schema says."""
    print_json(model.model_validate(data).model_dump(mode="json", by_alias=True))


def answer_schema_text(page: str) -> str:
    """Give the JSON Schema (2020-12) of a page as the text of its file: every key is present, also without a value."""
    module, name, verb = PAGES[page]
    model: type[Model] = getattr(import_module(f"hyperpod_cdk.{module}"), name)
    return as_text(schema_of_report(model, title=f"hyperpod-cdk {verb}"))
