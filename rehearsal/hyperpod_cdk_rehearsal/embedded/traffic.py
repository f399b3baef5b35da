"""Traffic between callers and the embedded AWS: counted, delayed, and broken where the account file says so."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account_sections import Fault
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, services_with_operations
from hyperpod_cdk_rehearsal.embedded.protocol import (
    WireRequest,
    WireResponse,
    operation_of,
    serialise_error,
    service_model,
    signing_name,
)
from hyperpod_cdk_rehearsal.embedded.published.policies import is_action

Respond = Callable[[], WireResponse]

MOTO_SERVICES = ("ec2", "ecr", "events", "iam", "kms", "lambda", "logs", "s3", "sns", "sqs", "ssm", "sts")
"""Services that moto answers alone or in part."""

IAM_PREFIXES = {"amp": "aps", "service-quotas": "servicequotas"}
"""IAM's prefixes where they are not boto3's names."""

IAM_ACTIONS = {
    # Service authorization reference, AWS Budget Service: a budget is made and deleted by the right to modify it
    ("budgets", "CreateBudget"): "budgets:ModifyBudget",
    ("budgets", "DeleteBudget"): "budgets:ModifyBudget",
    ("lambda", "Invoke"): "lambda:InvokeFunction",
    ("s3", "DeleteBucketEncryption"): "s3:PutEncryptionConfiguration",
    ("s3", "DeleteBucketLifecycle"): "s3:PutLifecycleConfiguration",
    ("s3", "DeleteBucketTagging"): "s3:PutBucketTagging",
    ("s3", "DeletePublicAccessBlock"): "s3:PutBucketPublicAccessBlock",
    ("s3", "GetBucketEncryption"): "s3:GetEncryptionConfiguration",
    ("s3", "GetBucketLifecycleConfiguration"): "s3:GetLifecycleConfiguration",
    ("s3", "HeadBucket"): "s3:ListBucket",
    ("s3", "HeadObject"): "s3:GetObject",
    ("s3", "ListObjectVersions"): "s3:ListBucketVersions",
    ("s3", "ListObjectsV2"): "s3:ListBucket",
    ("s3", "PutBucketEncryption"): "s3:PutEncryptionConfiguration",
    ("s3", "PutBucketLifecycleConfiguration"): "s3:PutLifecycleConfiguration",
    ("s3", "PutBucketNotificationConfiguration"): "s3:PutBucketNotification",
    ("s3", "PutPublicAccessBlock"): "s3:PutBucketPublicAccessBlock",
}
"""IAM's actions where they do not have the name of the operation."""

NEVER_DENIED = frozenset({"sts:GetCallerIdentity"})
"""What AWS answers to everybody, whatever a policy says."""

LOGIN_PAGE = b"<!DOCTYPE html><html><body><h1>Please sign in to continue</h1></body></html>"
"""What a proxy sends in place of an answer."""

_ACCESS_DENIED = {
    "ec2": ("UnauthorizedOperation", 403),
    "json": ("AccessDeniedException", 400),
    "rest-json": ("AccessDeniedException", 403),
}
_THROTTLED = {
    "ec2": ("RequestLimitExceeded", 503),
    "s3": ("SlowDown", 503),
    "service-quotas": ("TooManyRequestsException", 400),
    "fsx": ("ThrottlingException", 400),
    "query": ("Throttling", 400),
    "json": ("ThrottlingException", 400),
    "rest-json": ("ThrottlingException", 429),
}
_EXPIRED = {
    "ec2": ("RequestExpired", 400),
    "s3": ("ExpiredToken", 400),
    "query": ("ExpiredToken", 403),
    "json": ("ExpiredTokenException", 400),
    "rest-json": ("ExpiredTokenException", 403),
}
_SERVER_ERROR = {"ec2": ("InternalError", 500), "s3": ("InternalError", 500), "json": ("InternalServerError", 500)}


class Disconnected(Exception):  # noqa: N818 - what happens to the caller, not a fault of the program
    """The connection is to be closed without an answer."""


@dataclass(frozen=True)
class Call:
    """One request: the service by boto3's name (empty where unknown), the operation, and IAM's action for it."""

    service: str
    operation: str

    @property
    def action(self) -> str:
        """IAM's action."""
        prefix = IAM_PREFIXES.get(self.service, self.service)
        return IAM_ACTIONS.get((self.service, self.operation), f"{prefix}:{self.operation}")


class Traffic:
    """Everything that came from outside since the account was made.

    ``caller`` is who access-denied messages name. Call ``close`` when another account takes the place of this one:
    whoever is kept waiting is let go.
    """

    def __init__(
        self, *, faults: Sequence[Fault] = (), denied: Sequence[str] = (), latency_ms: float = 0, caller: str = ""
    ) -> None:
        self._faults = [_Striking(fault) for fault in faults]
        self._denied = tuple(denied)
        self._latency_seconds = latency_ms / 1000
        self._caller = caller
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._counts: Counter[str] = Counter()
        self._in_flight = 0
        self._in_flight_maximum = 0

    def pass_through(self, call: Call, respond: Respond, *, is_head: bool) -> WireResponse:
        """Answer one call with ``respond``, later or otherwise. Raises Disconnected."""
        with self._lock:
            self._counts[f"{call.service}:{call.operation}"] += 1
            self._in_flight += 1
            self._in_flight_maximum = max(self._in_flight, self._in_flight_maximum)
            # every fault sees every call, so that each counts for itself
            struck = [fault for fault in self._faults if fault.strikes(call)]
        try:
            if self._latency_seconds:
                time.sleep(self._latency_seconds)
            if struck:
                return self._broken(struck[0].fault, call, respond, is_head=is_head)
            if call.action not in NEVER_DENIED and any(is_action(pattern, call.action) for pattern in self._denied):
                return self._error(call, _ACCESS_DENIED, "AccessDenied", 403, self._denial(call), is_head=is_head)
            return respond()
        finally:
            with self._lock:
                self._in_flight -= 1

    def close(self) -> None:
        """Let go whoever is kept waiting."""
        self._over.set()

    def as_dict(self) -> dict[str, Any]:
        """Return how many calls came, of which operations, and how many at most were under way at once."""
        with self._lock:
            return {
                "total": self._counts.total(),
                "by_operation": dict(sorted(self._counts.items())),
                "in_flight_maximum": self._in_flight_maximum,
            }

    def _broken(self, fault: Fault, call: Call, respond: Respond, *, is_head: bool) -> WireResponse:
        if fault.kind in {"timeout", "no_endpoint"}:
            if fault.kind == "timeout":
                self._over.wait(fault.seconds)
            raise Disconnected
        if fault.kind == "garbage":
            return WireResponse(200, {"Content-Type": "text/html"}, b"" if is_head else LOGIN_PAGE)
        if fault.kind == "truncated":
            whole = respond()
            return WireResponse(whole.status, whole.headers, whole.body[: len(whole.body) // 2])
        table, code, status, message = {
            "throttle": (_THROTTLED, "Throttling", 400, "Rate exceeded"),
            "access_denied": (_ACCESS_DENIED, "AccessDenied", 403, self._denial(call)),
            "expired_token": (_EXPIRED, "ExpiredToken", 403, "The security token included in the request is expired"),
            "server_error": (_SERVER_ERROR, "InternalFailure", 500, "An internal error has occurred"),
        }[fault.kind]
        return self._error(call, table, code, status, message, is_head=is_head)

    def _error(
        self,
        call: Call,
        table: Mapping[str, tuple[str, int]],
        code: str,
        status: int,
        message: str,
        *,
        is_head: bool,
    ) -> WireResponse:
        service = call.service or "s3"
        protocol = str(service_model(service).metadata["protocol"])
        code, status = table.get(service) or table.get(protocol) or (code, status)
        response = serialise_error(service, ServiceError(code, message, status))
        # an answer to HEAD has no body: the next answer on the connection would be read from it
        return WireResponse(response.status, response.headers, b"") if is_head else response

    def _denial(self, call: Call) -> str:
        text = (
            f"User: {self._caller} is not authorized to perform: {call.action} because no identity-based policy allows "
            f"the {call.action} action"
        )
        return f"You are not authorized to perform this operation. {text}" if call.service == "ec2" else text


def call_of(name: str, request: WireRequest) -> Call:
    """The call that a request is, by the signing name of its credentials."""
    for service in _services_by_signing_name().get(name, ()):
        found = operation_of(service, request)
        if found is not None:
            return Call(service, found[0])
    return Call("", "unknown")


class _Striking:
    """A fault with the number of calls it has seen."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self._seen = 0

    def strikes(self, call: Call) -> bool:
        """Whether this call suffers."""
        names = {call.service, IAM_PREFIXES.get(call.service, call.service), "*"}
        if self.fault.service not in names or self.fault.operation not in {call.operation, "*"}:
            return False
        self._seen += 1
        nth, is_between = divmod(self._seen - self.fault.after, self.fault.every)
        return nth > 0 and not is_between and (self.fault.times == "always" or nth <= self.fault.times)


@cache
def _services_by_signing_name() -> Mapping[str, Sequence[str]]:
    # these sign with their own names: to look that up would load every model
    names = {service: [service] for service in MOTO_SERVICES}
    for service in sorted(services_with_operations() - set(MOTO_SERVICES)):
        names.setdefault(signing_name(service), []).append(service)
    return names
