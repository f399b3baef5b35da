"""Service Quotas: applied values from the account file, defaults as AWS publishes them, and requests for more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import quotas
from hyperpod_cdk_rehearsal.embedded.services.timeline import page

SERVICES = ("ec2", "eks", "fsx", "sagemaker", "vpc")
"""Service codes with quotas here; others have none."""

SERVICE_NAMES = {
    "ec2": "Amazon Elastic Compute Cloud (Amazon EC2)",
    "eks": "Amazon Elastic Kubernetes Service (Amazon EKS)",
    "fsx": "Amazon FSx",
    "sagemaker": "Amazon SageMaker",
    "vpc": "Amazon Virtual Private Cloud (Amazon VPC)",
}

PAGE_SIZE = 100
OPEN_STATUS = "PENDING"


@dataclass
class Requests:
    """Requests for quota increases, in the order they came."""

    made: list[dict[str, Any]] = field(default_factory=list)


def effective_value(context: Context, quota: quotas.Quota) -> float:
    """The value that AWS enforces: the applied one, else the default."""
    applied = _applied(context, quota)
    return float(quota.default) if applied is None else applied


@operation("service-quotas", "ListServiceQuotas")
def list_service_quotas(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Applied values; a quota that has none is missing, as on AWS."""
    rows = [row for row in _quotas_of(request["ServiceCode"]) if _applied(context, row) is not None]
    rows = [row for row in rows if request.get("QuotaCode") in {None, _code(row)}]
    return _page(context, rows, request, "Quotas")


@operation("service-quotas", "GetServiceQuota")
def get_service_quota(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """One applied value; NoSuchResourceException where the account only has the default."""
    row = _find(request)
    if row is None or _applied(context, row) is None:
        raise _missing(request)
    return {"Quota": _view(context, row, effective_value(context, row))}


@operation("service-quotas", "ListAWSDefaultServiceQuotas")
def list_aws_default_service_quotas(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """AWS's defaults."""
    return _page(context, list(_quotas_of(request["ServiceCode"])), request, "Quotas", defaults=True)


@operation("service-quotas", "GetAWSDefaultServiceQuota")
def get_aws_default_service_quota(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """One of AWS's defaults."""
    row = _find(request)
    if row is None:
        raise _missing(request)
    return {"Quota": _view(context, row, row.default)}


@operation("service-quotas", "ListServices")
def list_services(_context: Context, _request: dict[str, Any]) -> dict[str, Any]:
    """The services that have quotas here."""
    return {"Services": [{"ServiceCode": code, "ServiceName": SERVICE_NAMES[code]} for code in SERVICES]}


@operation("service-quotas", "RequestServiceQuotaIncrease")
def request_service_quota_increase(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Open a request, which remains PENDING. A second one for the same quota is refused."""
    row = _find(request)
    if row is None:
        raise _missing(request)
    if request["DesiredValue"] <= effective_value(context, row):
        raise ServiceError(
            "InvalidResourceStateException",
            f"The quota value requested must be greater than the current value of {effective_value(context, row):g}.",
        )
    made = context.state.store(Requests).made
    with context.state.lock:
        if any(item["QuotaCode"] == _code(row) and item["ServiceCode"] == row.service for item in made):
            raise ServiceError(
                "ResourceAlreadyExistsException",
                f"Only one open service quota increase request is allowed per quota: {row.name}",
            )
        opened = {
            "Id": hashlib.sha256(f"{row.service}/{_code(row)}".encode()).hexdigest()[:32],
            "ServiceCode": row.service,
            "ServiceName": SERVICE_NAMES[row.service],
            "QuotaCode": _code(row),
            "QuotaName": row.name,
            "QuotaArn": _arn(context, row),
            "DesiredValue": request["DesiredValue"],
            "Status": OPEN_STATUS,
            "Created": context.clock.now(),
            "GlobalQuota": False,
            "Unit": "None",
        }
        made.append(opened)
    return {"RequestedQuota": opened}


@operation("service-quotas", "ListRequestedServiceQuotaChangeHistoryByQuota")
def list_requested_service_quota_change_history_by_quota(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The requests for one quota."""
    wanted = (request["ServiceCode"], request["QuotaCode"])
    made = context.state.store(Requests).made
    return _requested([item for item in made if (item["ServiceCode"], item["QuotaCode"]) == wanted], request)


@operation("service-quotas", "ListRequestedServiceQuotaChangeHistory")
def list_requested_service_quota_change_history(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The requests for every quota, or for those of one service."""
    made = context.state.store(Requests).made
    return _requested([item for item in made if request.get("ServiceCode") in {None, item["ServiceCode"]}], request)


def _requested(found: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return one page of requests, of the status that was asked for."""
    of_status = [item for item in found if request.get("Status") in {None, item["Status"]}]
    return {"RequestedQuotas": of_status}


def _quotas_of(service: str) -> Iterable[quotas.Quota]:
    if service not in SERVICES:
        raise ServiceError(
            "NoSuchResourceException", f"The request failed because the service {service} does not exist."
        )
    yield from quotas.of_service(service)


def _find(request: dict[str, Any]) -> quotas.Quota | None:
    rows = _quotas_of(request["ServiceCode"])
    return next((row for row in rows if _code(row) == request["QuotaCode"]), None)


def _applied(context: Context, quota: quotas.Quota) -> float | None:
    wanted = _spelled(quota.name)
    granted = account_of(context).applied_quotas(quota.service)
    return next((value for name, value in granted.items() if _spelled(name) == wanted), None)


def _spelled(name: str) -> str:
    """Return a name as the account file's names are compared: no case, no punctuation, no "of" that AWS leaves out.

    AWS's own ``cluster-ml-r7i-12xlarge`` is ``ml.r7i.12xlarge``.
    """
    words = [word for word in re.sub(r"[^a-z0-9]+", " ", name.lower()).split() if word != "of"]
    return " ".join(words[1:] if words[:2] == ["cluster", "ml"] else words)


def _code(quota: quotas.Quota) -> str:
    # a quota whose code was not read anywhere gets a stable one: Service Quotas has no quota without
    return quota.code or f"L-{hashlib.sha256(quota.name.encode()).hexdigest()[:8].upper()}"


def _arn(context: Context, quota: quotas.Quota) -> str:
    return context.arn("servicequotas", f"{quota.service}/{_code(quota)}")


def _view(context: Context, quota: quotas.Quota, value: float) -> dict[str, Any]:
    return {
        "ServiceCode": quota.service,
        "ServiceName": SERVICE_NAMES[quota.service],
        "QuotaArn": _arn(context, quota),
        "QuotaCode": _code(quota),
        "QuotaName": quota.name,
        "Value": float(value),
        "Unit": "None",
        "Adjustable": quota.is_adjustable,
        "GlobalQuota": False,
    }


def _page(
    context: Context, rows: list[quotas.Quota], request: dict[str, Any], key: str, *, defaults: bool = False
) -> dict[str, Any]:
    shown, token = page(rows, request.get("NextToken"), request.get("MaxResults") or PAGE_SIZE)
    answer: dict[str, Any] = {
        key: [_view(context, row, row.default if defaults else effective_value(context, row)) for row in shown]
    }
    return {**answer, "NextToken": token} if token else answer


def _missing(request: dict[str, Any]) -> ServiceError:
    return ServiceError(
        "NoSuchResourceException",
        f"The request failed because the specified service quota {request['QuotaCode']} does not exist.",
    )
