"""The account file: the resources and settings of the rehearsed AWS account before the deployment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hyperpod_cdk.file_reading import read_bytes, reason_of
from hyperpod_cdk.yaml_reading import ShallowLoader
from hyperpod_cdk_rehearsal.embedded.account_existing import (
    BusName,
    ExistingBackup,
    ExistingCluster,
    ExistingFileSystem,
    ExistingKmsKey,
    ExistingRole,
    ExistingS3Bucket,
    ExistingTopic,
    ExistingVpc,
    ImageName,
)
from hyperpod_cdk_rehearsal.embedded.account_sections import (
    Bootstrap,
    Fault,
    Iam,
    InUse,
    KubernetesOffer,
    NeighbourCluster,
    NodesOf,
    Zones,
)
from hyperpod_cdk_rehearsal.embedded.context import Account, Context
from hyperpod_cdk_rehearsal.embedded.observed import ObservedAnswers

DEFAULT_ACCOUNT_FILE = Path(__file__).parent.parent / "account.yaml"
"""The account file in the package."""

_MOST_BYTES = 1_000_000
_MOST_VALUES = 500_000
"""The largest number of values after YAML aliases are replaced: ten lines could exceed the memory."""

Lines = Mapping[tuple[str | int, ...], int]
"""The line of each key and item of a file, by path."""


class AccountFileError(ValueError):
    """The account file is invalid; the message contains the place and the fix."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlanBlock(_Section):
    """One block of a training plan; ``instance_count`` None: the plan's."""

    start_time: datetime
    end_time: datetime
    instance_count: Annotated[int, Field(ge=1)] | None = None


class TrainingPlan(_Section):
    """A training plan that the account bought.

    ``blocks`` are consecutive; if omitted, there is one from ``start_time`` to ``end_time``. ``in_use_by_others`` are
    instances in use that no API lists; those of HyperPod clusters are counted automatically.
    """

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}$")]
    instance_type: str
    instance_count: Annotated[int, Field(ge=1)]
    availability_zone_id: str
    status: Literal["Pending", "Active", "Scheduled", "Expired", "Failed"] = "Active"
    status_message: str = ""
    target_resources: tuple[Literal["training-job", "hyperpod-cluster", "endpoint", "studio-apps"], ...] = (
        "hyperpod-cluster",
    )
    start_time: datetime | None = None
    end_time: datetime | None = None
    blocks: tuple[PlanBlock, ...] = ()
    unhealthy_count: Annotated[int, Field(ge=0)] = 0
    in_use_by_others: Annotated[int, Field(ge=0)] = 0
    upfront_fee: str = "0.00"


class PlanOffer(_Section):
    """An offered plan: up to ``instance_count`` instances in one zone; its duration is the sum of its blocks."""

    instance_type: str
    instance_count: Annotated[int, Field(ge=1)]
    availability_zone_id: str
    price_per_instance_hour: Annotated[Decimal, Field(ge=0)]
    blocks: Annotated[tuple[PlanBlock, ...], Field(min_length=1)]
    target_resources: tuple[Literal["training-job", "hyperpod-cluster", "endpoint", "studio-apps"], ...] = (
        "hyperpod-cluster",
    )


class TrainingPlans(_Section):
    """The plans in the file, and whether the plans of the environment also exist.

    ``offers`` are the plans for sale; None: one plan of every duration in zones with plans or on-demand capacity.
    """

    from_environment: bool = False
    plans: tuple[TrainingPlan, ...] = ()
    offers: tuple[PlanOffer, ...] | None = None


class Existing(_Section):
    """Existing resources of the account: names of IAM roles and of S3 buckets (None: any bucket exists), and more.

    A role's path precedes its name (`team/admin`).

    `networks`, `eks_clusters`, `roles`, `kms_keys`, `buckets`, `topics` and `event_buses` (names) are created with the
    given IDs and names before the first request.
    `workspaces` maps the ARNs of Prometheus and Grafana workspaces to their statuses; `slack_workspaces` are the IDs of
    Slack workspaces that are authorized in the console of Amazon Q Developer in chat applications.
    `container_images` are images in ECR, of any account, with registry and tag.
    """

    from_environment: bool = False
    iam_roles: tuple[str, ...] = ()
    s3_buckets: tuple[str, ...] | None = None
    networks: tuple[ExistingVpc, ...] = ()
    eks_clusters: tuple[ExistingCluster, ...] = ()
    roles: tuple[ExistingRole, ...] = ()
    file_systems: tuple[ExistingFileSystem, ...] = ()
    backups: tuple[ExistingBackup, ...] = ()
    kms_keys: tuple[ExistingKmsKey, ...] = ()
    buckets: tuple[ExistingS3Bucket, ...] = ()
    topics: tuple[ExistingTopic, ...] = ()
    event_buses: tuple[BusName, ...] = ()
    container_images: tuple[ImageName, ...] = ()
    slack_workspaces: tuple[str, ...] = ()
    workspaces: Mapping[str, str] = {}


class AccountFile(_Section):
    """The account file. Every section is optional; without any, the account has AWS's defaults and no resources.

    `quotas` maps a service code (sagemaker, vpc, ec2, eks, fsx) to applied values by quota name. `capacity` maps an
    instance type to the availability zone IDs that have on-demand capacity for it; others have it everywhere.
    `offerings` maps an EC2 type (`p5.48xlarge`) to the zones that offer it at all; other types are offered in every
    zone. `endpoint_services` does the same for the interface endpoints of services (`ecr.api`); without zones, there is
    none. `nodes` describes instance groups of the environment, by name, with late, failing or missing nodes.
    `clusters` are HyperPod clusters of others. `stacks` maps the names of leftover CloudFormation stacks to their
    statuses, `buckets` S3 buckets to their Regions. With `guardduty: automated_agent`, GuardDuty creates its endpoint
    in the VPC of every new EKS cluster. `page_size` is the largest number of items on a page of any list.
    `observed` are responses that were observed in a real account (`make replay`).
    """

    quotas: Mapping[str, Mapping[str, float] | bool] = {}
    training_plans: TrainingPlans = TrainingPlans()
    existing: Existing = Existing()
    capacity: Mapping[str, tuple[str, ...]] = {}
    zones: Zones = Zones()
    offerings: Mapping[str, tuple[str, ...]] = {}
    endpoint_services: Mapping[str, tuple[str, ...]] = {}
    nodes: Mapping[str, NodesOf] = {}
    clusters: tuple[NeighbourCluster, ...] = ()
    in_use: InUse = InUse()
    kubernetes: KubernetesOffer = KubernetesOffer()
    iam: Iam = Iam()
    bootstrap: Bootstrap | None = None
    stacks: Mapping[str, str] = {}
    guardduty: Literal["automated_agent"] | None = None
    log_groups: tuple[str, ...] = ()
    buckets: Mapping[str, str] = {}
    faults: tuple[Fault, ...] = ()
    page_size: Annotated[int, Field(ge=1)] | None = None
    observed: ObservedAnswers = ObservedAnswers()

    def applied_quota(self, service: str, name: str) -> float | None:
        """Return the applied value of the account, or None if it has AWS's default."""
        values = self.quotas.get(service) or {}
        return values.get(name) if isinstance(values, Mapping) else None

    def applied_quotas(self, service: str) -> Mapping[str, float]:
        """Return all applied values of a service, by quota name."""
        values = self.quotas.get(service) or {}
        return values if isinstance(values, Mapping) else {}

    def training_plan(self, name: str) -> TrainingPlan | None:
        """Return the plan with this name."""
        return next((plan for plan in self.training_plans.plans if plan.name == name), None)


@dataclass
class _Parsed:
    file: AccountFile | None = None


def account_of(context: Context) -> AccountFile:
    """Return the account file of this embedded AWS, which is read once."""
    parsed = context.state.store(_Parsed)
    with context.state.lock:
        if parsed.file is None:
            parsed.file = validated(context.account_file.document, "account file")
        return parsed.file


def amend(context: Context, sections: Mapping[str, Any]) -> None:
    """Replace these sections of the account file; the resources of the account remain.

    Used for sections that are read at every request: quotas, capacity, nodes, EKS versions. Raises AccountFileError if
    a section is invalid.
    """
    document = {**context.account_file.document, **sections}
    file = validated(document, "account file")
    with context.state.lock:
        context.account_file = Account(document)
        context.state.store(_Parsed).file = file


def existing_roles(context: Context) -> dict[str, str]:
    """Return the paths, by name, of roles that exist according to the account file."""
    rows = [each.rpartition("/") for each in account_of(context).existing.iam_roles]
    return {name: f"/{path}/" if path else "/" for path, _, name in rows}


def read_account_file(path: Path) -> dict[str, Any]:
    """Return the document of an account file; raises AccountFileError, with the line, for unknown keys or values."""
    return read_with_lines(path)[0]


def without_environment(path: Path) -> dict[str, Any]:
    """Return the document of an account file for an AWS that knows no environment; else as above.

    ``from_environment: true`` is refused: what it stands for would be missing in the account, and nobody would know.
    """
    document, lines = read_with_lines(path)
    for section, told in document.items():
        if isinstance(told, Mapping) and told.get("from_environment"):
            raise AccountFileError(
                f"{path}:{line_of(lines, (section, 'from_environment'))} {section}.from_environment: is for"
                " 'hyperpod-cdk rehearse', which knows the environment; state the values"
            )
    return document


def read_with_lines(path: Path) -> tuple[dict[str, Any], Lines]:
    """Return the document of an account file and the line of each of its keys and items; else as above."""
    try:
        raw = read_bytes(path, most=_MOST_BYTES)
    except OSError as error:
        raise AccountFileError(f"{path}: {error.strerror or error}") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = raw[error.start]
        raise AccountFileError(f"{path}:{line} is not UTF-8 text: byte 0x{byte:02x}; save it as UTF-8") from error
    try:
        # parsed once: the same nodes have the lines and the values
        loader = _Loader(text)
        root = loader.get_single_node()
        lines = dict(islice(_lines_of(root, ()), _MOST_VALUES + 1))
        document = (None if root is None else loader.construct_document(root)) or {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "is not valid YAML"
        raise AccountFileError(f"{path}:{mark.line + 1 if mark else 1} {said}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        told = f"holds the character U+{ord(text[error.position]):04X}, which YAML does not allow; remove it"
        raise AccountFileError(f"{path}:{line} {told}") from error
    except (RecursionError, ValueError) as error:
        # too deeply nested, or a number of thousands of digits: neither error has a line
        raise AccountFileError(f"{path}: cannot be read: {reason_of(error)}") from error
    if len(lines) > _MOST_VALUES:
        raise AccountFileError(f"{path}: contains more than {_MOST_VALUES:,} values after its aliases are replaced")
    if not isinstance(document, dict):
        raise AccountFileError(f"{path}: must be a mapping, got {type(document).__name__}")
    validated(document, str(path), lines)
    return document, lines


class _Loader(ShallowLoader):
    """Loads plain YAML values; times remain text that their fields parse, so that a wrong time has a line."""


_Loader.yaml_implicit_resolvers = {
    first: [row for row in rows if row[0] != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _lines_of(node: yaml.Node | None, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    children: Iterable[tuple[str | int, yaml.Node, yaml.Node]] = ()
    if isinstance(node, yaml.MappingNode):
        children = [(str(key.value), key, value) for key, value in node.value]
        twice = next((key for key, count in Counter(step for step, _, _ in children).items() if count > 1), None)
        if twice is not None:
            at = [key for step, key, _ in children if step == twice][1]
            raise yaml.MarkedYAMLError(problem=f"{twice}: is there twice; keep one of them", problem_mark=at.start_mark)
    elif isinstance(node, yaml.SequenceNode):
        children = [(index, item, item) for index, item in enumerate(node.value)]
    for step, at, value in children:
        yield (*place, step), at.start_mark.line + 1
        yield from _lines_of(value, (*place, step))


def line_of(lines: Lines, place: tuple[str | int, ...]) -> int:
    """Return the line of a place, or of the nearest enclosing one, because names of models are not in the file."""
    for length in range(len(place), 0, -1):
        if place[:length] in lines:
            return lines[place[:length]]
    return 1


def validated(document: Mapping[str, Any], where: str, lines: Lines | None = None) -> AccountFile:
    """Return a document as the account file that it is; raises AccountFileError, with the lines if they are given."""
    try:
        return AccountFile.model_validate(dict(document))
    except ValidationError as error:
        problems = [
            (line_of(lines, problem["loc"]) if lines else 0, ".".join(map(str, problem["loc"])), _begun(problem["msg"]))
            for problem in error.errors()
        ]
        if not lines:
            told = "; ".join(f"{place}: {text}" for _, place, text in problems)
            raise AccountFileError(f"{where}: {told}") from error
        told = "; ".join(f"{where}:{line} {place}: {text}" for line, place, text in problems)
        raise AccountFileError(told) from error


def _begun(sentence: str) -> str:
    """Return a sentence for use after a colon; quoted text is unchanged."""
    return sentence[:1].lower() + sentence[1:]
