"""Checks CloudFormation's calls in a rehearsal against the policy of its execution role, as IAM would.

The needed permissions follow from AWS's own data: the calls, with the resources and names in their parameters; for each
resource the permissions of its handler in CloudFormation's registry, which include calls that are only made on AWS; and
AWS's service authorization reference, with the resources to which an action can be limited. cfn-lint ships both.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hyperpod_cdk.catalog import deployer_actions, iam
from hyperpod_cdk.checks.iam import WHEN
from hyperpod_cdk.config import Environment
from hyperpod_cdk_rehearsal.embedded.cloudformation.schema import Registry, cfn_lint_data
from hyperpod_cdk_rehearsal.embedded.published.policies import Statement, evaluate, listed, speaks_of_action
from hyperpod_cdk_rehearsal.embedded.traffic import Call

Step = Mapping[str, Any]

NEW = "*"
"""The resource of an action that cannot be limited."""

_UNKNOWN = ""
_STACK_NAME = "aws:resourcetag/aws:cloudformation:stack-name"
_ROLE_TYPE = "AWS::IAM::Role"
_ID = re.compile(r"(?P<prefix>[a-z]+)-[0-9a-f]{8,}")
_TAGGING = re.compile(r":(Tag|Untag|ListTags|AddTags|RemoveTags|DeleteTags|CreateTags)")
_VARIABLE = re.compile(r"\$\{\w+\}")
_PHASES = {"create": ("create", "read"), "update": ("update", "read"), "delete": ("delete",)}

_BY_PREFIX = {
    "dra": ("fsx", "association/fs-0"),
    "eipalloc": ("ec2", "elastic-ip"),
    "eni": ("ec2", "network-interface"),
    "fl": ("ec2", "vpc-flow-log"),
    "fs": ("fsx", "file-system"),
    "igw": ("ec2", "internet-gateway"),
    "nat": ("ec2", "natgateway"),
    "rtb": ("ec2", "route-table"),
    "sg": ("ec2", "security-group"),
    "sgr": ("ec2", "security-group-rule"),
    "subnet": ("ec2", "subnet"),
    "vpc": ("ec2", "vpc"),
    "vpce": ("ec2", "vpc-endpoint"),
    "ws": ("aps", "workspace"),
    "g": ("grafana", "/workspaces"),
}
"""The service and resource of AWS's IDs, by prefix."""

_BY_NAME: Mapping[tuple[str, str], Sequence[tuple[str, tuple[str, ...]]]] = {
    ("cloudwatch", "alarm"): [("alarm:{}", ("alarmname",)), ("alarm:{}", ("alarmnames",))],
    ("cloudwatch", "dashboard"): [("dashboard/{}", ("dashboardname",)), ("dashboard/{}", ("dashboardnames",))],
    ("eks", "access-entry"): [("access-entry/{}/role/0/example/0", ("clustername",))],
    ("eks", "addon"): [("addon/{}/{}/0", ("clustername", "addonname"))],
    ("eks", "cluster"): [("cluster/{}", ("clustername",))],
    ("eks", "podidentityassociation"): [("podidentityassociation/{}/a-0", ("clustername",))],
    ("events", "rule-on-default-event-bus"): [("rule/{}", ("rule",))],
    ("iam", "role"): [("role/{}", ("rolename",)), ("role/{}", ("roles",))],
    ("kms", "alias"): [("{}", ("aliasname",))],
    ("kms", "key"): [("key/{}", ("keyid",)), ("key/{}", ("targetkeyid",))],
    ("lambda", "function"): [("function:{}", ("functionname",))],
    ("lambda", "layer"): [("layer:{}", ("layername",))],
    ("lambda", "layerversion"): [("layer:{}:1", ("layername",))],
    ("logs", "log-group"): [("log-group:{}", ("loggroupname",))],
    ("s3", "bucket"): [("{}", ("bucket",)), ("{}", ("bucketname",))],
    ("s3", "object"): [("{}/{}", ("bucket", "key")), ("{}/{}", ("s3bucket", "s3key"))],
    ("ssm", "parameter"): [("parameter/{}", ("parametername",))],
}
"""The resource part of ARNs that consist of names, with the parameters that contain these names, in lower case."""

_WITHOUT_REGION = {"iam", "s3"}
_WITHOUT_ACCOUNT = {"s3"}
_GLOBAL_TYPES = {("cloudwatch", "dashboard")}

_CALLED_NAME = {
    ("eks", "name"): "clustername",
    ("events", "name"): "rule",
    ("ssm", "name"): "parametername",
    ("ssm", "names"): "parametername",
}
"""The meaning of parameters with general names, by service."""

_NAMED_BY_ID = {
    "AWS::CloudWatch::Alarm": "alarmname",
    "AWS::CloudWatch::Dashboard": "dashboardname",
    "AWS::EKS::Cluster": "clustername",
    "AWS::Events::Rule": "rule",
    "AWS::IAM::Role": "rolename",
    "AWS::KMS::Alias": "aliasname",
    "AWS::KMS::Key": "keyid",
    "AWS::Lambda::Function": "functionname",
    "AWS::Logs::LogGroup": "loggroupname",
    "AWS::S3::Bucket": "bucket",
    "AWS::SSM::Parameter": "parametername",
}
"""The type of name that a resource's physical ID is."""


_WAYS_OF_THE_REHEARSAL = frozenset(
    {
        # AWS itself removes the interface of a NAT gateway
        ("AWS::EC2::NatGateway", "ec2:DeleteNetworkInterface"),
        # resources that are still attached, which AWS reports when the VPC is deleted
        ("AWS::EC2::VPC", "ec2:DescribeInternetGateways"),
        # the name of the zone for a subnet's zone ID, which AWS knows
        ("AWS::EC2::Subnet", "ec2:DescribeAvailabilityZones"),
        # AWS's handler waits with GetFunction
        ("AWS::Lambda::Function", "lambda:GetFunctionConfiguration"),
    }
)
"""Calls of the embedded handlers that AWS's handlers do not make, according to their permissions in the registry."""

_BESIDE_HANDLERS = {
    "AWS::FSx::FileSystem": (
        "ec2:DescribeRouteTables",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
        "ec2:GetSecurityGroupsForVpc",
    ),
}
"""Calls of services to other services with the caller's permissions, which the registry does not contain.

Source: managed policy AmazonFSxFullAccess v11, statement DescribeEC2VpcResources.
"""

_LINKS_BUCKET = (("s3:ListBucket", ""), ("s3:GetBucketLocation", ""), ("s3:GetObject", "/{}"), ("s3:PutObject", "/{}"))
"""Actions of s3:Get*, s3:List* and s3:PutObject for a data repository association, with their resources in its bucket.

Source: FSx for Lustre user guide, "Unable to validate access to an S3 bucket when creating a DRA".
"""


@dataclass(frozen=True, kw_only=True)
class Need:
    """One action that CloudFormation needs.

    ``resource`` is an ARN, ``*`` if the action has no resources, empty if the rehearsal does not show the resource.
    ``keys`` are the condition keys of the request; ``origin`` is the source of the request.
    """

    action: str
    resource: str
    keys: tuple[tuple[str, str], ...] = ()
    origin: str = ""

    def __str__(self) -> str:
        """Return it as readable text."""
        where = f" on {self.resource}" if self.resource not in {NEW, _UNKNOWN} else ""
        return f"{self.action}{where} for {self.origin}"


def needs(steps: Iterable[Step], environment: Environment, *, parameters: Iterable[str] = ()) -> tuple[Need, ...]:
    """Return what CloudFormation needed for these steps, without duplicates.

    ``parameters`` are the names in Parameter Store that the templates read.
    """
    found = _Reader(list(steps), environment)
    whole = [*found.of_steps(), *found.of_service_linked_roles(), *found.of_parameters(parameters)]
    return tuple({(need.action, need.resource, need.keys): need for need in reversed(whole)}.values())


def refused(statements: Sequence[Statement], wanted: Iterable[Need]) -> list[Need]:
    """Return the needs that these statements do not allow.

    If the resource is unknown, a statement with the action is sufficient.
    """
    return [need for need in wanted if not _allows(statements, need)]


def _allows(statements: Sequence[Statement], need: Need) -> bool:
    if need.resource == _UNKNOWN:
        return any(speaks_of_action(each, need.action) for each in statements)
    return evaluate(statements, need.action, need.resource, dict(need.keys)) == "allowed"


class _Reader:
    def __init__(self, steps: Sequence[Step], environment: Environment) -> None:
        self._steps = steps
        self._environment = environment
        self._registry = Registry(environment.region)
        self._owners = dict(self._tagged())
        self._roles = {str(each["attributes"].get("Arn")): each["properties"] for each in steps if _made_role(each)}

    def of_steps(self) -> Iterator[Need]:
        for step in self._steps:
            origin = f"{step['stack']}/{step['logical_id']} ({step['type']}, {step['phase']})"
            if step["type"].startswith("Custom::") or step["type"] == deployer_actions.CUSTOM_RESOURCE:
                yield self._need("lambda:InvokeFunction", step["properties"]["ServiceToken"], origin)
                continue
            named = _NAMED_BY_ID.get(step["type"], "physicalid")
            own = {named: [str(step["physical_id"])]}
            for call in step["calls"]:
                action = Call(call["service"], call["operation"]).action
                if (step["type"], action) in _WAYS_OF_THE_REHEARSAL:
                    continue
                said = _flat(call["parameters"], action.partition(":")[0])
                yield from self._of_action(action, _merged(said, own), step, origin)
            said = _merged(_flat(step["properties"], ""), own)
            if not step["type"].startswith("AWS::EKS::"):
                # the name of another service's cluster
                said.pop("clustername", None)
            permissions = self._permissions(step)
            # every type of a service can have tags: the other actions show the relevant types
            meant = {kind for each in permissions if not _TAGGING.search(each) for kind in _resource_types(each)}
            for action in sorted(permissions):
                kinds = meant if _TAGGING.search(action) else None
                yield from self._of_action(action, said, step, origin, kinds=kinds)
            if step["type"] == "AWS::FSx::DataRepositoryAssociation" and step["phase"] != "delete":
                yield from self._of_link(str(step["properties"]["DataRepositoryPath"]), origin)

    def _of_link(self, uri: str, origin: str) -> Iterator[Need]:
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        for action, place in _LINKS_BUCKET:
            resource = f"{bucket}{place.format(f'{prefix}example')}"
            yield self._need(action, self._arn("s3", "object" if place else "bucket", resource), origin)

    def of_service_linked_roles(self) -> Iterator[Need]:
        for role in iam.SERVICE_LINKED_ROLES:
            if WHEN[role.when](self._environment):
                arn = role.arn(partition=self._environment.partition, account=self._environment.account)
                keys = (("iam:awsservicename", role.service),)
                yield Need(action="iam:CreateServiceLinkedRole", resource=arn, keys=keys, origin=role.needed_for)
                for action in ("iam:AttachRolePolicy", "iam:PutRolePolicy") if role.is_made_anew else ():
                    yield Need(action=action, resource=arn, keys=keys, origin=role.needed_for)

    def of_parameters(self, names: Iterable[str]) -> Iterator[Need]:
        for name in names:
            arn = self._arn("ssm", "parameter", f"parameter/{name.lstrip('/')}")
            yield self._need("ssm:GetParameters", arn, "the parameters of the templates")

    def _permissions(self, step: Step) -> set[str]:
        schema = self._registry.schema(step["type"])
        handlers = schema.document.get("handlers", {}) if schema else {}
        phases = (handlers.get(phase, {}).get("permissions", []) for phase in _PHASES[step["phase"]])
        named = {action for actions in phases for action in actions}
        features = (each for each in deployer_actions.FEATURES if each.is_in(step["type"], step["properties"]))
        used = {action for each in features for action in each.actions}
        left = {action for action in named - used if deployer_actions.is_left_out(step["type"], action)}
        return (named - left) | set(_BESIDE_HANDLERS.get(step["type"], ()))

    def _of_action(
        self,
        action: str,
        said: Mapping[str, list[str]],
        step: Step,
        origin: str,
        *,
        kinds: Collection[str] | None = None,
    ) -> Iterator[Need]:
        """Yield what an action needs; ``kinds`` are the resource types. Default: all types of the action."""
        types = _resource_types(action)
        types = {kind: pattern for kind, pattern in types.items() if kinds is None or kind in kinds} or types
        if not types:
            yield self._need(action, NEW, origin)
            return
        service = action.partition(":")[0]
        known = {arn for kind, pattern in types.items() for arn in self._known(service, kind, pattern, said)}
        if not known:
            yield Need(action=action, resource=_UNKNOWN, origin=origin)
        for arn in sorted(known):
            # none if the request has a key that the rehearsal does not show, such as the attached policy
            found = list(self._keys(action, arn, said, step))
            for extra in found:
                yield self._need(action, arn, origin, extra)
            if not found:
                yield Need(action=action, resource=_UNKNOWN, origin=origin)

    def _known(self, service: str, kind: str, pattern: re.Pattern[str], said: Mapping[str, list[str]]) -> Iterator[str]:
        for text in {text for texts in said.values() for text in texts}:
            found = _ID.fullmatch(text)
            if text.startswith("arn:") and pattern.fullmatch(text) and not (kind == "bucket" and "/" in text):
                yield text
            elif found and found["prefix"] in _BY_PREFIX:
                owner, resource = _BY_PREFIX[found["prefix"]]
                arn = self._arn(owner, resource, f"{resource}/{text}")
                if owner == service and pattern.fullmatch(arn):
                    yield arn
        for form, parameters in _BY_NAME.get((service, kind), ()):
            values = [said.get(each, []) for each in parameters]
            if all(values):
                for first in values[0]:
                    if not first.startswith("arn:"):
                        yield self._arn(service, kind, form.format(first, *(each[0] for each in values[1:])))

    def _arn(self, service: str, kind: str, resource: str) -> str:
        environment = self._environment
        is_global = service in _WITHOUT_REGION or (service, kind) in _GLOBAL_TYPES
        region = "" if is_global else environment.region
        account = "" if service in _WITHOUT_ACCOUNT else environment.account
        return f"arn:{environment.partition}:{service}:{region}:{account}:{resource}"

    def _need(self, action: str, resource: str, origin: str, extra: Mapping[str, str] | None = None) -> Need:
        keys = {"aws:requestedregion": self._environment.region, **(extra or {})}
        owner = self._owners.get(resource) or self._owners.get(resource.rpartition("/")[2])
        if owner:
            keys[_STACK_NAME] = owner
        return Need(action=action, resource=resource, keys=tuple(sorted(keys.items())), origin=origin)

    def _keys(self, action: str, arn: str, said: Mapping[str, list[str]], step: Step) -> Iterator[dict[str, str]]:
        role = self._roles.get(arn, {})
        keys = {}
        if action.startswith("iam:") and role.get("PermissionsBoundary"):
            keys["iam:permissionsboundary"] = str(role["PermissionsBoundary"])
        if action == "iam:PassRole":
            for service in sorted(_trusted(role)) or [_taker(step["type"])]:
                yield {**keys, "iam:passedtoservice": service}
        elif action in {"iam:AttachRolePolicy", "iam:DetachRolePolicy"}:
            for policy in _policies(said, step):
                yield {**keys, "iam:policyarn": policy}
        elif action == "kms:CreateGrant":
            # a service that receives a key creates the grant itself
            yield {**keys, "kms:grantisforawsresource": "true"}
        else:
            yield keys

    def _tagged(self) -> Iterator[tuple[str, str]]:
        """Yield the IDs and ARNs of resources with CloudFormation's own tags, and the name of their stack."""
        for step in self._steps:
            schema = self._registry.schema(step["type"]) if not step["type"].startswith("Custom::") else None
            tagging = schema.document.get("tagging", {}) if schema else {}
            if tagging.get("cloudFormationSystemTags") and step["physical_id"]:
                yield step["physical_id"], step["stack"]
                for value in step["attributes"].values():
                    if isinstance(value, str) and (value.startswith("arn:") or _ID.fullmatch(value)):
                        yield value, step["stack"]


def _made_role(step: Step) -> bool:
    return bool(step["type"] == _ROLE_TYPE and step["phase"] == "create")


def _trusted(role: Mapping[str, Any]) -> set[str]:
    document = role.get("AssumeRolePolicyDocument") or {}
    document = json.loads(document) if isinstance(document, str) else document
    principals = [each.get("Principal") for each in listed(document.get("Statement"))]
    return {str(name) for each in principals if isinstance(each, Mapping) for name in listed(each.get("Service"))}


def _taker(resource_type: str) -> str:
    """Return the service for a role that trusts no service: EKS, for its add-ons with web identities."""
    return f"{resource_type.split('::')[1].lower()}.amazonaws.com"


def _policies(said: Mapping[str, list[str]], step: Step) -> list[str]:
    named = [*said.get("policyarn", []), *said.get("managedpolicyarns", [])]
    return named or [text for text in (step["physical_id"] or "",) if ":policy/" in text]


def _merged(one: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {key: [*one.get(key, []), *other.get(key, [])] for key in {*one, *other}}


def _flat(value: Any, service: str) -> dict[str, list[str]]:
    """Return every text inside, by the name of its parameter in lower case."""
    found: dict[str, list[str]] = defaultdict(list)

    def visit(name: str, item: Any) -> None:
        if isinstance(item, Mapping):
            for key, inner in item.items():
                visit(_CALLED_NAME.get((service, str(key).lower()), str(key).lower()), inner)
        elif isinstance(item, list):
            for inner in item:
                visit(name, inner)
        elif isinstance(item, str):
            found[name].append(item)

    visit("", value)
    return found


@cache
def _reference() -> Mapping[str, Any]:
    text = (cfn_lint_data() / "AdditionalSpecs" / "Policies.json").read_text(encoding="utf-8")
    reference: Mapping[str, Any] = json.loads(text)
    return reference


@cache
def _resource_types(action: str) -> dict[str, re.Pattern[str]]:
    """Return the resource types to which an action can be limited, with the patterns of their ARNs."""
    service, _, name = action.partition(":")
    known = _reference()[service]
    found = {}
    for kind in known["Actions"][name.lower()].get("Resources", []):
        formats = known["Resources"].get(kind.lower(), {}).get("ARNFormats", [])
        alternatives = "|".join(_VARIABLE.sub("[^:]*", each) for each in formats)
        found[kind.lower()] = re.compile(alternatives)
    return found
