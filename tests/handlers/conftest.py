"""An in-memory model of SageMaker's task governance API, and of CloudFormation's part in a custom resource."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.model import ServiceModel
from botocore.validate import validate_parameters

from hyperpod_cdk.handlers.governance import index

CLUSTER = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345"


@pytest.fixture(scope="session")
def sagemaker_model() -> ServiceModel:
    """The API model that botocore ships."""
    return botocore.session.get_session().get_service_model("sagemaker")


@dataclass
class Meta:
    """The attributes that boto3 adds to a client."""

    service_model: ServiceModel


@dataclass
class Record:
    """One cluster policy or compute quota in the API."""

    noun: str
    arn: str
    request: dict[str, Any]
    status: str
    target: str
    busy: int
    version: int = 1
    reason: str = ""

    @property
    def id(self) -> str:
        return self.arn.rpartition("/")[2]


@dataclass
class FakeSageMaker:
    """Keeps versions and asynchronous states; ``faults`` are consumed one by one, in order, per operation.

    A fault is the code of an error to raise, or ``"fail"`` to let the asynchronous work end as failed.
    ``busy`` is how many describe calls it takes until a state settles.
    """

    model: ServiceModel
    busy: int = 2
    faults: dict[str, list[str]] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def meta(self) -> Meta:
        return Meta(self.model)

    def live(self, noun: str) -> list[Record]:
        """Everything of a kind that exists."""
        return [record for record in self.records.values() if record.noun == noun]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        verb, _, rest = name.partition("_")
        nouns = {
            "cluster_scheduler_config": "ClusterSchedulerConfig",
            "compute_quota": "ComputeQuota",
        }
        noun = nouns.get(rest.removesuffix("s"))
        if noun is None or verb not in {"create", "describe", "update", "delete", "list"}:
            raise AttributeError(name)
        operation = f"{verb.capitalize()}{noun}{'s' if verb == 'list' else ''}"

        def call(**request: Any) -> Any:
            shape = self.model.operation_model(operation).input_shape
            assert shape is not None
            validate_parameters(request, shape)
            self.calls.append((operation, deepcopy(request)))
            fault = self._fault(verb)
            if fault and fault != "fail":
                raise client_error(fault, operation)
            return getattr(self, f"_{verb}")(noun, request, "fail" if fault else "")

        return call

    def list_tags(self, *, ResourceArn: str, NextToken: str = "") -> dict[str, Any]:  # noqa: N803 - boto3's names
        if not NextToken:
            # a page may be empty and have a next page
            return {"Tags": [], "NextToken": "second"}
        return {"Tags": [{"Key": k, "Value": v} for k, v in self.tags.get(ResourceArn, {}).items()]}

    def add_tags(self, *, ResourceArn: str, Tags: list[dict[str, str]]) -> None:  # noqa: N803 - boto3's name
        self.tags.setdefault(ResourceArn, {}).update({tag["Key"]: tag["Value"] for tag in Tags})

    def delete_tags(self, *, ResourceArn: str, TagKeys: list[str]) -> None:  # noqa: N803 - boto3's name
        for key in TagKeys:
            del self.tags[ResourceArn][key]

    def _create(self, noun: str, request: dict[str, Any], fault: str) -> dict[str, Any]:
        if any(same_name(record, noun, request) for record in self.records.values()):
            raise client_error("ConflictException", f"Create{noun}")
        kebab = {"ClusterSchedulerConfig": "cluster-scheduler-config", "ComputeQuota": "compute-quota"}[noun]
        arn = f"arn:aws:sagemaker:us-east-1:111122223333:{kebab}/{next(self.numbers):012d}"
        target = "CreateFailed" if fault else "Created"
        self.tags[arn] = {tag["Key"]: tag["Value"] for tag in request.pop("Tags", [])}
        self.records[arn] = Record(noun, arn, deepcopy(request), "Creating", target, self.busy)
        return {f"{noun}Arn": arn, f"{noun}Id": arn.rpartition("/")[2]}

    def _describe(self, noun: str, request: dict[str, Any], fault: str) -> dict[str, Any]:
        del fault
        record = self._find(noun, request, "Describe")
        self._step(record)
        if record.arn not in self.records:
            raise client_error("ResourceNotFound", f"Describe{noun}")
        failed: dict[str, Any] = {}
        if "Failed" in record.status:
            failed = {"FailureReason": "the quota does not fit"}
            if noun == "ClusterSchedulerConfig":
                failed["StatusDetails"] = {"PriorityClasses": record.status}
        return {
            **record.request,
            f"{noun}Arn": record.arn,
            f"{noun}Id": record.id,
            f"{noun}Version": record.version,
            "Status": record.status,
            **failed,
        }

    def _update(self, noun: str, request: dict[str, Any], fault: str) -> dict[str, Any]:
        record = self._find(noun, request, "Update")
        if record.status in index.IN_PROGRESS or request["TargetVersion"] != record.version:
            raise client_error("ConflictException", f"Update{noun}")
        if not fault:
            changes = {k: v for k, v in request.items() if k not in {"TargetVersion", f"{noun}Id"}}
            record.request.update(deepcopy(changes))
        record.version += 1
        record.status, record.target, record.busy = (
            "Updating",
            "UpdateFailed" if fault else "Updated",
            self.busy,
        )
        return {f"{noun}Arn": record.arn, f"{noun}Version": record.version}

    def _delete(self, noun: str, request: dict[str, Any], fault: str) -> None:
        record = self._find(noun, request, "Delete")
        if record.status in index.IN_PROGRESS:
            raise client_error("ConflictException", f"Delete{noun}")
        record.status, record.target, record.busy = "Deleting", "DeleteFailed" if fault else "", self.busy

    def _list(self, noun: str, request: dict[str, Any], fault: str) -> dict[str, Any]:
        del fault
        page = [
            {"Name": r.request["Name"], f"{noun}Arn": r.arn, "Status": r.status}
            for r in self.live(noun)
            if request["NameContains"] in r.request["Name"] and r.request["ClusterArn"] == request["ClusterArn"]
        ]
        start = int(request.get("NextToken", "0"))
        more = {"NextToken": str(start + 1)} if start + 1 < len(page) else {}
        return {f"{noun}Summaries": page[start : start + 1], **more}

    def _find(self, noun: str, request: dict[str, Any], verb: str) -> Record:
        for record in self.live(noun):
            if record.id == request[f"{noun}Id"]:
                return record
        raise client_error("ResourceNotFound", f"{verb}{noun}")

    def _step(self, record: Record) -> None:
        if record.status not in index.IN_PROGRESS:
            return
        if record.busy:
            record.busy -= 1
        elif record.target:
            record.status = record.target
        else:
            del self.records[record.arn]

    def _fault(self, verb: str) -> str:
        waiting = self.faults.get(verb, [])
        return waiting.pop(0) if waiting else ""


def same_name(record: Record, noun: str, request: Mapping[str, Any]) -> bool:
    """Return whether a record takes the name that a create request asks for."""
    return record.noun == noun and all(record.request[k] == request[k] for k in ("Name", "ClusterArn"))


def client_error(code: str, operation: str) -> ClientError:
    """What boto3 raises when AWS refuses."""
    return ClientError({"Error": {"Code": code, "Message": f"{code} from the fake"}}, operation)


@dataclass
class Context:
    """Lambda's context, with a clock that only sleeping moves."""

    seconds: float = 900.0

    def get_remaining_time_in_millis(self) -> int:
        return round(self.seconds * 1000)

    def sleep(self, seconds: float) -> None:
        self.seconds -= seconds


@dataclass
class CloudFormation:
    """Sends events as CloudFormation does and records the responses."""

    sagemaker: FakeSageMaker
    answers: list[dict[str, Any]] = field(default_factory=list)
    put_errors: list[Exception] = field(default_factory=list)
    remaining: float = 900.0
    requests: Any = field(default_factory=lambda: itertools.count(1))

    def send(self, request_type: str, resource_type: str, properties: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
        """Invoke the handler once and return its response; fails unless there is exactly one."""
        before = len(self.answers)
        event = {
            "RequestType": request_type,
            "ResponseURL": "https://answers.invalid/put?signature=x",
            "StackId": "arn:aws:cloudformation:us-east-1:111122223333:stack/prod-platform/0a1b2c3d-guid",
            "RequestId": f"request-{next(self.requests)}",
            "LogicalResourceId": "ResearchQuota",
            "ResourceType": resource_type,
            "ResourceProperties": as_text({"ServiceToken": "arn:aws:lambda:x", "ServiceTimeout": 960, **properties}),
            **rest,
        }
        if "OldResourceProperties" in event:
            event["OldResourceProperties"] = as_text(event["OldResourceProperties"])
        context = Context(self.remaining)
        index.handle(event, context, clients=lambda _: self.sagemaker, put=self.put, sleep=context.sleep)
        assert len(self.answers) == before + 1, "one event, one answer"
        return self.answers[-1]

    def put(self, url: str, body: bytes) -> None:
        assert url == "https://answers.invalid/put?signature=x"
        if self.put_errors:
            raise self.put_errors.pop(0)
        assert len(body) < 4096, "CloudFormation takes 4096 bytes"
        self.answers.append(json.loads(body))


def as_text(value: Any) -> Any:
    """Turn every scalar into text, as CloudFormation does for custom resources."""
    if isinstance(value, Mapping):
        return {key: as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return str(value)


@pytest.fixture
def sagemaker(sagemaker_model: ServiceModel) -> FakeSageMaker:
    """An empty SageMaker."""
    return FakeSageMaker(sagemaker_model)


@pytest.fixture
def cloudformation(sagemaker: FakeSageMaker) -> CloudFormation:
    """CloudFormation in front of the handler."""
    return CloudFormation(sagemaker)


@pytest.fixture
def quota() -> Callable[..., dict[str, Any]]:
    """Return the properties of a compute quota."""

    def make(*, name: str = "prod-research", team: str = "research", count: int = 2, **rest: Any) -> dict[str, Any]:
        return {
            "Name": name,
            "ClusterArn": CLUSTER,
            "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 100},
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": count}],
                "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
                "PreemptTeamTasks": "LowerPriority",
            },
            **rest,
        }

    return make


@pytest.fixture
def policy() -> Callable[..., dict[str, Any]]:
    """Return the properties of a cluster policy."""

    def make(*, name: str = "prod", weight: int = 80, **rest: Any) -> dict[str, Any]:
        return {
            "Name": name,
            "ClusterArn": CLUSTER,
            "SchedulerConfig": {
                "FairShare": "Enabled",
                "PriorityClasses": [{"Name": "training", "Weight": weight}],
            },
            **rest,
        }

    return make
