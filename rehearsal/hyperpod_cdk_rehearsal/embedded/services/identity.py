"""The caller and IAM: the identity of the caller, roles in the account file, and the policy simulator."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.account import account_of, existing_roles
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published.policies import is_action, like
from hyperpod_cdk_rehearsal.embedded.services.principals import LISTED_ROLE_ID
from hyperpod_cdk_rehearsal.embedded.services.timeline import page

SIMULATION_PAGE = 100
"""How many results IAM gives at once unless asked for another number."""

CREATED = "2024-01-01T00:00:00Z"


@operation("sts", "GetCallerIdentity")
def get_caller_identity(context: Context, _request: dict[str, Any]) -> dict[str, Any]:
    """The caller of the account file; else whoever moto takes the credentials for."""
    if not account_of(context).iam.caller:
        raise PassToMoto
    return {"Account": context.account, "Arn": caller_arn(context), "UserId": "AROAEXAMPLEEXAMPLEEX:session"}


@operation("iam", "GetRole")
def get_role(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A role that the account file names; every other one is moto's."""
    name = request["RoleName"]
    file = account_of(context)
    service = file.iam.service_linked_roles.get(name)
    if service is not None:
        return {"Role": _role(context, name, f"/aws-service-role/{service}/", {"Service": service})}
    existing = existing_roles(context)
    if name in existing or name in _bootstrap_roles(context):
        return {
            "Role": _role(
                context, name, existing.get(name, "/"), {"AWS": f"arn:{context.partition}:iam::{context.account}:root"}
            )
        }
    raise PassToMoto


@operation("iam", "SimulatePrincipalPolicy")
def simulate_principal_policy(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Allowed unless the account file denies it; resources and context keys change nothing here."""
    principal = request["PolicySourceArn"]
    _require_principal(context, principal)
    resources = request.get("ResourceArns") or ["*"]
    results = [_evaluated(context, principal, action, each) for action in request["ActionNames"] for each in resources]
    shown, marker = page(results, request.get("Marker"), request.get("MaxItems") or SIMULATION_PAGE)
    return {"EvaluationResults": shown, "IsTruncated": marker is not None, **({"Marker": marker} if marker else {})}


def caller_arn(context: Context) -> str:
    """The caller that the account file names, or the user of every rehearsal."""
    return account_of(context).iam.caller or f"arn:{context.partition}:sts::{context.account}:user/moto"


def may_deploy(context: Context, action: str, resource: str) -> bool:
    """Whether CDK's execution role, as which CloudFormation calls services, may do this on that resource."""
    role = f"role/cdk-hnb659fds-cfn-exec-role-{context.account}-{context.region}"
    return bool(_evaluated(context, role, action, resource)["EvalDecision"] == "allowed")


def _evaluated(context: Context, principal: str, action: str, resource: str) -> dict[str, Any]:
    name = principal.rsplit("/", 1)[-1]
    by = next(
        (
            denied.by
            for denied in account_of(context).iam.denied_actions
            if is_action(denied.action, action) and like(denied.principal, name) and like(denied.resource, resource)
        ),
        None,
    )
    decision = {None: "allowed", "policy": "explicitDeny", "organization": "explicitDeny"}.get(by, "implicitDeny")
    result: dict[str, Any] = {
        "EvalActionName": action,
        "EvalResourceName": resource,
        "EvalDecision": decision,
        "MatchedStatements": [],
        "MissingContextValues": [],
        "OrganizationsDecisionDetail": {"AllowedByOrganizations": by != "organization"},
    }
    if by == "boundary":
        result["PermissionsBoundaryDecisionDetail"] = {"AllowedByPermissionsBoundary": False}
    return result


def _bootstrap_roles(context: Context) -> frozenset[str]:
    """The roles of the CDK bootstrap stack that the account file says was deployed."""
    wanted = account_of(context).bootstrap
    if wanted is None or wanted.version is None:
        return frozenset()
    kinds = ("cfn-exec", "deploy", "file-publishing", "image-publishing", "lookup")
    return frozenset(f"cdk-{wanted.qualifier}-{kind}-role-{context.account}-{context.region}" for kind in kinds)


def _require_principal(context: Context, arn: str) -> None:
    """Refuse what is no user, group or role that stands in the account."""
    if not account_of(context).iam.caller and arn == caller_arn(context):
        # a user, whose ARN moto writes with sts where AWS has iam
        return
    kind, _, name = arn.split(":", 5)[-1].partition("/")
    if ":iam:" not in arn or kind not in {"user", "group", "role"}:
        raise ServiceError("InvalidInput", f"Invalid Entity Arn: {arn} does not clearly define entity type and name.")
    if kind == "role":
        try:
            context.client("iam").get_role(RoleName=name.rsplit("/", 1)[-1])
        except ClientError:
            raise ServiceError("NoSuchEntity", f"{arn} does not exist.", 404) from None


def _role(context: Context, name: str, path: str, principal: dict[str, str]) -> dict[str, Any]:
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}],
    }
    return {
        "Path": path,
        "RoleName": name,
        "RoleId": LISTED_ROLE_ID,
        "Arn": f"arn:{context.partition}:iam::{context.account}:role{path}{name}",
        "CreateDate": CREATED,
        "AssumeRolePolicyDocument": quote(json.dumps(trust)),
        "MaxSessionDuration": 3600,
    }
