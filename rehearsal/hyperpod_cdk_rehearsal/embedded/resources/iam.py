"""AWS::IAM: roles, inline and managed policies, OIDC providers, instance profiles; AWS-managed policies on demand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_state
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    as_list,
    call,
    changed,
    document,
    error_code,
    ignoring,
    refusal,
    retag,
    tag_list,
    take,
    undone_by,
)
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

GONE = "NoSuchEntity"
POLICY_VERSIONS_KEPT = 5
AWS_MANAGED = re.compile(r"arn:[a-z0-9-]+:iam::aws:policy(?P<path>/(?:.*/)?)(?P<name>[^/]+)")

MANAGED_POLICIES_NOT_IN_MOTO = {
    # name: path; documents are AWS's own and not enforced here, so an empty list of statements stands for them
    "AmazonSageMakerSpacesRouterPolicy": "/",
}


@cache
def _managed_policies() -> dict[str, dict[str, Any]]:
    """AWS-managed policies by name: those that moto ships, and our table of newer ones."""
    from moto.iam.aws_managed_policies import (  # noqa: PLC0415 - 5 MB, read only when a policy is attached
        aws_managed_policies_data,
    )

    shipped: dict[str, dict[str, Any]] = json.loads(aws_managed_policies_data)
    for name, path in MANAGED_POLICIES_NOT_IN_MOTO.items():
        shipped.setdefault(
            name,
            {
                "Path": path,
                "DefaultVersionId": "v1",
                "Document": {"Version": "2012-10-17", "Statement": []},
                "CreateDate": "2025-01-01T00:00:00+00:00",
                "UpdateDate": "2025-01-01T00:00:00+00:00",
            },
        )
    return shipped


def ensure_managed_policy(context: Context, arn: str) -> None:
    """Make an AWS-managed policy exist, where AWS has one of this name and path; any other ARN is left alone."""
    match = AWS_MANAGED.fullmatch(arn)
    if match is None:
        return
    from moto.iam.models import AWSManagedPolicy  # noqa: PLC0415 - moto loads after the account id is set

    with moto_state("iam", context.account, context.partition) as backend:
        if arn in backend.managed_policies:
            return
        data = _managed_policies().get(match["name"])
        if data is None or data["Path"] != match["path"]:
            return
        policy = AWSManagedPolicy.from_data(match["name"], context.account, context.region, data)
        backend.managed_policies[policy.arn] = policy


def _ensuring(context: Context, request: dict[str, Any]) -> dict[str, Any] | None:
    """An operation that names a policy: the policy exists if AWS manages one of this name, then moto answers."""
    arn = request.get("PolicyArn") or request.get("PermissionsBoundary")
    if isinstance(arn, str):
        ensure_managed_policy(context, arn)
    raise PassToMoto


for _name in (
    "AttachGroupPolicy",
    "AttachRolePolicy",
    "AttachUserPolicy",
    "CreateRole",
    "GetPolicy",
    "GetPolicyVersion",
    "ListEntitiesForPolicy",
    "PutRolePermissionsBoundary",
):
    operation("iam", _name)(_ensuring)


@operation("iam", "AddClientIDToOpenIDConnectProvider")
def add_client_id(context: Context, request: dict[str, Any]) -> None:
    """An audience more; one that is there already is no error."""
    with _oidc_clients(context, request["OpenIDConnectProviderArn"]) as clients:
        if request["ClientID"] not in clients:
            clients.append(request["ClientID"])


@operation("iam", "RemoveClientIDFromOpenIDConnectProvider")
def remove_client_id(context: Context, request: dict[str, Any]) -> None:
    """An audience less; one that is not there is no error."""
    with _oidc_clients(context, request["OpenIDConnectProviderArn"]) as clients:
        if request["ClientID"] in clients:
            clients.remove(request["ClientID"])


@contextmanager
def _oidc_clients(context: Context, arn: str) -> Iterator[list[str]]:
    with moto_state("iam", context.account, context.partition) as backend:
        provider = backend.open_id_providers.get(arn)
        if provider is None:
            message = f"OpenIDConnect Provider not found for arn {arn}"
            raise ServiceError(GONE, message, status=404)
        yield provider.client_id_list


def _client(request: ResourceRequest) -> Any:
    return request.context.client("iam")


def _require_boundary(request: ResourceRequest) -> None:
    """IAM refuses a permissions boundary that does not exist; moto takes any ARN."""
    arn = request.properties.get("PermissionsBoundary")
    if not arn:
        return
    try:
        _client(request).get_policy(PolicyArn=arn)
    except ClientError as error:
        if error_code(error) != GONE:
            raise
        message = f"Scope ARN: {arn} does not exist or is not attachable."
        raise refusal(GONE, message, "CreateRole", status=404) from error


@handles("AWS::IAM::Role")
class Role(ResourceHandler):
    """A role with its inline and attached policies. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        _require_boundary(request)
        name = properties.get("RoleName") or request.generated_name(max_length=64)
        call(
            client,
            "create_role",
            take(
                properties,
                "AssumeRolePolicyDocument",
                "Path",
                "Description",
                "MaxSessionDuration",
                "PermissionsBoundary",
            )
            | {"RoleName": name, "Tags": tag_list(properties.get("Tags")) or None},
        )
        with undone_by(lambda: self._remove(request, name)):
            self._put_inline(client, name, _inline(properties))
            for arn in as_list(properties.get("ManagedPolicyArns")):
                client.attach_role_policy(RoleName=name, PolicyArn=arn)
        return self._result(client, name)

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        """Find a role by name."""
        return self._result(_client(request), identifier["RoleName"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, properties, name = _client(request), request.properties, request.existing_id
        previous = request.previous or {}
        if changed(request, "AssumeRolePolicyDocument"):
            client.update_assume_role_policy(
                RoleName=name, PolicyDocument=document(properties["AssumeRolePolicyDocument"])
            )
        if changed(request, "Description", "MaxSessionDuration"):
            call(
                client,
                "update_role",
                {
                    "RoleName": name,
                    "Description": properties.get("Description", ""),
                    "MaxSessionDuration": properties.get("MaxSessionDuration", 3600),
                },
            )
        if changed(request, "PermissionsBoundary"):
            self._set_boundary(request, name)
        before, after = _inline(previous), _inline(properties)
        self._put_inline(client, name, {key: text for key, text in after.items() if before.get(key) != text})
        for gone in before.keys() - after.keys():
            with ignoring(GONE):
                client.delete_role_policy(RoleName=name, PolicyName=gone)
        _attach_difference(
            as_list(previous.get("ManagedPolicyArns")),
            as_list(properties.get("ManagedPolicyArns")),
            attach=lambda arn: client.attach_role_policy(RoleName=name, PolicyArn=arn),
            detach=lambda arn: client.detach_role_policy(RoleName=name, PolicyArn=arn),
        )
        retag(
            request,
            add=lambda tags: client.tag_role(RoleName=name, Tags=tag_list(tags)),
            remove=lambda keys: client.untag_role(RoleName=name, TagKeys=keys),
        )
        return self._result(client, name)

    def delete(self, request: ResourceRequest) -> None:
        self._remove(request, request.existing_id)

    @staticmethod
    def _remove(request: ResourceRequest, name: str) -> None:
        """Take away the policies the template gave the role, then the role; policies of others keep it."""
        client = _client(request)
        for arn in as_list(request.properties.get("ManagedPolicyArns")):
            with ignoring(GONE):
                client.detach_role_policy(RoleName=name, PolicyArn=arn)
        for policy in _inline(request.properties):
            with ignoring(GONE):
                client.delete_role_policy(RoleName=name, PolicyName=policy)
        with ignoring(GONE):
            client.delete_role(RoleName=name)

    @staticmethod
    def _set_boundary(request: ResourceRequest, name: str) -> None:
        _require_boundary(request)
        boundary = request.properties.get("PermissionsBoundary")
        if boundary:
            _client(request).put_role_permissions_boundary(RoleName=name, PermissionsBoundary=boundary)
        else:
            _client(request).delete_role_permissions_boundary(RoleName=name)

    @staticmethod
    def _put_inline(client: Any, name: str, policies: dict[str, str]) -> None:
        for policy, text in policies.items():
            client.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=text)

    @staticmethod
    def _result(client: Any, name: str) -> ResourceResult:
        role = client.get_role(RoleName=name)["Role"]
        return ResourceResult(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})


def _inline(properties: dict[str, Any]) -> dict[str, str]:
    return {policy["PolicyName"]: document(policy["PolicyDocument"]) for policy in as_list(properties.get("Policies"))}


def _attach_difference(
    before: list[str], after: list[str], *, attach: Callable[[str], Any], detach: Callable[[str], Any]
) -> None:
    for item in after:
        if item not in before:
            attach(item)
    for item in before:
        if item not in after:
            with ignoring(GONE):
                detach(item)


PRINCIPAL_KINDS = (("Roles", "role", "RoleName"), ("Users", "user", "UserName"), ("Groups", "group", "GroupName"))


@handles("AWS::IAM::Policy")
class Policy(ResourceHandler):
    """An inline policy put on roles, users and groups. `Ref` is CloudFormation's own name for it."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._put(request)
        policy_id = request.generated_name(max_length=64)
        return ResourceResult(policy_id, {"Id": policy_id})

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._put(request)
        previous = request.previous or {}
        renamed = changed(request, "PolicyName")
        for name, kind, argument in PRINCIPAL_KINDS:
            kept = [] if renamed else as_list(request.properties.get(name))
            dropped = [owner for owner in as_list(previous.get(name)) if owner not in kept]
            self._remove(request, previous["PolicyName"], kind, argument, dropped)
        return ResourceResult(request.existing_id, {"Id": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        for name, kind, argument in PRINCIPAL_KINDS:
            owners = as_list(request.properties.get(name))
            self._remove(request, request.properties["PolicyName"], kind, argument, owners)

    @staticmethod
    def _put(request: ResourceRequest) -> None:
        client, properties = _client(request), request.properties
        if not any(as_list(properties.get(name)) for name, _, _ in PRINCIPAL_KINDS):
            raise HandlerError("InvalidRequest", "At least one of [Groups,Roles,Users] must be non-empty.")
        for name, kind, argument in PRINCIPAL_KINDS:
            for owner in as_list(properties.get(name)):
                getattr(client, f"put_{kind}_policy")(
                    **{argument: owner},
                    PolicyName=properties["PolicyName"],
                    PolicyDocument=document(properties["PolicyDocument"]),
                )

    @staticmethod
    def _remove(request: ResourceRequest, policy: str, kind: str, argument: str, owners: list[str]) -> None:
        for owner in owners:
            with ignoring(GONE):
                getattr(_client(request), f"delete_{kind}_policy")(**{argument: owner}, PolicyName=policy)


@handles("AWS::IAM::RolePolicy")
class RolePolicy(ResourceHandler):
    """An inline policy of one role. `Ref` is `<policy>|<role>`."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        call(
            _client(request),
            "put_role_policy",
            take(request.properties, "RoleName", "PolicyName", "PolicyDocument"),
        )
        return ResourceResult(f"{request.properties['PolicyName']}|{request.properties['RoleName']}")

    def update(self, request: ResourceRequest) -> ResourceResult:
        return self.create(request)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            call(_client(request), "delete_role_policy", take(request.properties, "RoleName", "PolicyName"))


@handles("AWS::IAM::ManagedPolicy")
class ManagedPolicy(ResourceHandler):
    """A customer-managed policy and what it is attached to. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        name = properties.get("ManagedPolicyName") or request.generated_name(max_length=128)
        arn = call(
            client,
            "create_policy",
            take(properties, "PolicyDocument", "Path", "Description") | {"PolicyName": name},
        )["Policy"]["Arn"]
        with undone_by(lambda: self._remove(request, arn)):
            for kind_name, kind, argument in PRINCIPAL_KINDS:
                for owner in as_list(properties.get(kind_name)):
                    getattr(client, f"attach_{kind}_policy")(**{argument: owner}, PolicyArn=arn)
        return self._result(client, arn)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, arn, previous = _client(request), request.existing_id, request.previous or {}
        if changed(request, "PolicyDocument"):
            versions = client.list_policy_versions(PolicyArn=arn)["Versions"]
            spare = sorted(row["CreateDate"] for row in versions if not row["IsDefaultVersion"])
            if len(versions) >= POLICY_VERSIONS_KEPT:
                oldest = next(row for row in versions if row["CreateDate"] == spare[0] and not row["IsDefaultVersion"])
                client.delete_policy_version(PolicyArn=arn, VersionId=oldest["VersionId"])
            client.create_policy_version(
                PolicyArn=arn, PolicyDocument=document(request.properties["PolicyDocument"]), SetAsDefault=True
            )
        for kind_name, kind, argument in PRINCIPAL_KINDS:
            self._reattach(
                client,
                arn,
                kind,
                argument,
                before=previous.get(kind_name),
                after=request.properties.get(kind_name),
            )
        return self._result(client, arn)

    def delete(self, request: ResourceRequest) -> None:
        self._remove(request, request.existing_id)

    def _remove(self, request: ResourceRequest, arn: str) -> None:
        client = _client(request)
        with ignoring(GONE):
            for kind_name, kind, argument in PRINCIPAL_KINDS:
                attached = request.properties.get(kind_name)
                self._reattach(client, arn, kind, argument, before=attached, after=None)
            for version in client.list_policy_versions(PolicyArn=arn)["Versions"]:
                if not version["IsDefaultVersion"]:
                    client.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
            client.delete_policy(PolicyArn=arn)

    @staticmethod
    def _reattach(client: Any, arn: str, kind: str, argument: str, *, before: Any, after: Any) -> None:
        _attach_difference(
            as_list(before),
            as_list(after),
            attach=lambda owner: getattr(client, f"attach_{kind}_policy")(**{argument: owner}, PolicyArn=arn),
            detach=lambda owner: getattr(client, f"detach_{kind}_policy")(**{argument: owner}, PolicyArn=arn),
        )

    @staticmethod
    def _result(client: Any, arn: str) -> ResourceResult:
        policy = client.get_policy(PolicyArn=arn)["Policy"]
        return ResourceResult(
            arn,
            {
                "PolicyArn": arn,
                "PolicyId": policy["PolicyId"],
                "AttachmentCount": policy["AttachmentCount"],
                "CreateDate": policy["CreateDate"].isoformat(),
                "UpdateDate": policy["UpdateDate"].isoformat(),
                "DefaultVersionId": policy["DefaultVersionId"],
                "IsAttachable": True,
                "PermissionsBoundaryUsageCount": policy.get("PermissionsBoundaryUsageCount", 0),
            },
        )


@handles("AWS::IAM::OIDCProvider")
class OidcProvider(ResourceHandler):
    """An OpenID Connect provider. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        arn = call(
            _client(request),
            "create_open_id_connect_provider",
            take(request.properties, "Url", "ThumbprintList", ClientIDList="ClientIdList")
            | {"Tags": tag_list(request.properties.get("Tags")) or None},
        )["OpenIDConnectProviderArn"]
        return ResourceResult(arn, {"Arn": arn})

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, arn, previous = _client(request), request.existing_id, request.previous or {}
        if changed(request, "ThumbprintList"):
            client.update_open_id_connect_provider_thumbprint(
                OpenIDConnectProviderArn=arn, ThumbprintList=as_list(request.properties.get("ThumbprintList"))
            )
        before, after = as_list(previous.get("ClientIdList")), as_list(request.properties.get("ClientIdList"))
        _attach_difference(
            before,
            after,
            attach=lambda client_id: client.add_client_id_to_open_id_connect_provider(
                OpenIDConnectProviderArn=arn, ClientID=client_id
            ),
            detach=lambda client_id: client.remove_client_id_from_open_id_connect_provider(
                OpenIDConnectProviderArn=arn, ClientID=client_id
            ),
        )
        retag(
            request,
            add=lambda tags: client.tag_open_id_connect_provider(OpenIDConnectProviderArn=arn, Tags=tag_list(tags)),
            remove=lambda keys: client.untag_open_id_connect_provider(OpenIDConnectProviderArn=arn, TagKeys=keys),
        )
        return ResourceResult(arn, {"Arn": arn})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).delete_open_id_connect_provider(OpenIDConnectProviderArn=request.existing_id)


@handles("AWS::IAM::InstanceProfile")
class InstanceProfile(ResourceHandler):
    """An instance profile. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        name = properties.get("InstanceProfileName") or request.generated_name(max_length=128)
        call(client, "create_instance_profile", take(properties, "Path") | {"InstanceProfileName": name})
        self._set_roles(client, name, [], as_list(properties.get("Roles")))
        return self._result(client, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        before = as_list((request.previous or {}).get("Roles"))
        self._set_roles(_client(request), request.existing_id, before, as_list(request.properties.get("Roles")))
        return self._result(_client(request), request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, name = _client(request), request.existing_id
        self._set_roles(client, name, as_list(request.properties.get("Roles")), [])
        with ignoring(GONE):
            client.delete_instance_profile(InstanceProfileName=name)

    @staticmethod
    def _set_roles(client: Any, name: str, before: list[str], after: list[str]) -> None:
        for role in [role for role in before if role not in after]:
            with ignoring(GONE):
                client.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
        for role in [role for role in after if role not in before]:
            client.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)

    @staticmethod
    def _result(client: Any, name: str) -> ResourceResult:
        profile = client.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        return ResourceResult(name, {"Arn": profile["Arn"]})


@handles("AWS::IAM::ServiceLinkedRole")
class ServiceLinkedRole(ResourceHandler):
    """A service-linked role. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        role = call(
            _client(request),
            "create_service_linked_role",
            take(request.properties, "AWSServiceName", "CustomSuffix", "Description"),
        )["Role"]
        return ResourceResult(role["RoleName"], {"RoleName": role["RoleName"]})

    def update(self, request: ResourceRequest) -> ResourceResult:
        _client(request).update_role_description(
            RoleName=request.existing_id, Description=request.properties.get("Description", "")
        )
        return ResourceResult(request.existing_id, {"RoleName": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).delete_service_linked_role(RoleName=request.existing_id)
