"""Who can get every permission: the powerful identities, and everything that leads to one, computed to a fixpoint.

An identity is powerful if its own policies let it extend its permissions (``grave``), or if it can assume, log in as,
join, or run code as one that is. The relations are read from the templates alone; identities elsewhere are judged by
their names if AWS or the CDK gives a name a meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from hyperpod_cdk.catalog.iam_matching import matches_action
from hyperpod_cdk.review.rights import grave
from hyperpod_cdk.review.rights.statements import READ, Block, Permissions, items, looks_like_policy, names_below, text
from hyperpod_cdk.review.rights.views import TOKEN, View
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.assembly import Resource

_TAKES_ON: Final = (
    *("iam:passrole", "sts:assumerole", "sts:assumerolewithwebidentity", "sts:assumerolewithsaml", "sts:tagsession"),
    *("iam:createaccesskey", "iam:updateloginprofile", "iam:createloginprofile", "iam:addusertogroup"),
)
"""Actions on an identity with which another acts as it. Source: RhinoSecurityLabs/AWS-IAM-Privilege-Escalation."""

_RUNS_CODE: Final[dict[str, tuple[str, ...]]] = {
    "AWS::Lambda::Function": (
        *("lambda:updatefunctioncode", "lambda:updatefunctionconfiguration", "lambda:createeventsourcemapping"),
    ),
    "AWS::CodeBuild::Project": ("codebuild:startbuild", "codebuild:startbuildbatch", "codebuild:updateproject"),
    "AWS::StepFunctions::StateMachine": ("states:updatestatemachine",),
    "AWS::EC2::Instance": (
        *(
            "ssm:startsession",
            "ssm:sendcommand",
            "ec2:modifyinstanceattribute",
            "ec2-instance-connect:sendsshpublickey",
        ),
        *("ec2:associateiaminstanceprofile", "ec2:replaceiaminstanceprofileassociation"),
    ),
    "AWS::EC2::LaunchTemplate": ("ec2:createlaunchtemplateversion", "ec2:modifylaunchtemplate"),
    "AWS::AutoScaling::AutoScalingGroup": ("autoscaling:updateautoscalinggroup",),
    "AWS::ECS::Service": ("ecs:executecommand", "ecs:updateservice"),
    "AWS::ECS::TaskDefinition": ("ecs:runtask", "ecs:starttask", "ecs:updateservice"),
    "AWS::Glue::Job": ("glue:updatejob", "glue:startjobrun"),
    "AWS::Glue::DevEndpoint": ("glue:updatedevendpoint",),
    "AWS::SageMaker::Cluster": ("ssm:startsession", "sagemaker:startsession", "sagemaker:updatecluster"),
    "AWS::SageMaker::NotebookInstance": (
        *("sagemaker:createpresignednotebookinstanceurl", "sagemaker:updatenotebookinstance"),
    ),
    "AWS::SageMaker::Domain": ("sagemaker:createpresigneddomainurl",),
    "AWS::SageMaker::UserProfile": ("sagemaker:createpresigneddomainurl",),
    "AWS::Batch::JobDefinition": ("batch:submitjob",),
    "AWS::DataPipeline::Pipeline": ("datapipeline:putpipelinedefinition",),
    "AWS::SSM::Document": ("ssm:updatedocument", "ssm:startautomationexecution"),
    "AWS::CloudFormation::Stack": ("cloudformation:updatestack", "cloudformation:createchangeset"),
    "AWS::EMR::Cluster": ("elasticmapreduce:addjobflowsteps",),
    "AWS::AppRunner::Service": ("apprunner:updateservice",),
}
"""Actions, per type, with which a principal decides what runs with the role of a resource.

Source: docs.aws.amazon.com/service-authorization/latest/reference/, each action's own description.
"""
_NO_ACTORS: Final = frozenset(
    {
        *READ,
        "AWS::EKS::AccessEntry",
        "AWS::EKS::Addon",
        "AWS::EKS::PodIdentityAssociation",
        "AWS::RolesAnywhere::Profile",
    }
)
"""Types that name roles to which they give access, or that have their own reader."""

_BY_NAME: Final = re.compile(
    r"arn:[\w-]+:iam::[^:]*:role/(?:.*/)?(?:cdk-[\w*?-]*-(?:cfn-exec|deploy)-role-.*|OrganizationAccountAccessRole"
    r"|AWSControlTowerExecution|AWSCloudFormationStackSetExecutionRole|AWSReservedSSO_AdministratorAccess_.*)"
)
"""Roles that administer an account, by their creator: the CDK's bootstrap, Organizations, Control Tower, StackSets."""


_USED_BY_SERVICES: Final = frozenset(
    {
        *("AWS::ApiGateway::Account", "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::Backup::BackupSelection"),
        *("AWS::CloudTrail::Trail", "AWS::Config::ConfigurationRecorder", "AWS::DLM::LifecyclePolicy"),
        *("AWS::EC2::FlowLog", "AWS::EKS::Cluster", "AWS::KinesisFirehose::DeliveryStream", "AWS::Logs::Destination"),
        *("AWS::Logs::SubscriptionFilter", "AWS::S3::Bucket", "AWS::SNS::Topic", "AWS::FSx::FileSystem"),
        "AWS::CloudWatch::MetricStream",
    }
)
"""Types that run no code of users: the service uses the role only for the documented purpose of the type.

Source: the type's role property in the CloudFormation template reference.
"""

_ACTS_BY: Final[Mapping[str, str]] = dict.fromkeys(("AWS::RDS::DBCluster", "AWS::RDS::DBInstance"), "AssociatedRoles")
"""Types with only one property that names roles with which any user acts; the others are the service's.

Source: RDS and Aurora user guides, "Importing data from Amazon S3" and "Invoking an AWS Lambda function": by SQL.
"""

_ROLE_ELSEWHERE: Final = re.compile(
    r"arn:[^:]*:iam::[^:]*:(?:role/(?!aws-service-role/)|instance-profile/).+|\{.+|.*\$\{[^}]*\}.*"
)
"""An ARN, or a value that only the deployment shows: a parameter, an import, a dynamic reference."""


_PROFILES: Final = ("IamInstanceProfile", "InstanceProfileName", "JobFlowRole")
"""Properties that name an instance profile. Source: the pages of EC2's, Batch's and EMR's types."""


class Power:
    """The powerful identities of one side, and whether something leads to one of them."""

    def __init__(self, view: View, permissions: Permissions) -> None:
        self._view = view
        self.acting: dict[str, frozenset[Principal]] = acting(view, permissions)
        self.powerful: set[Principal] = set(grave.powerful(view, permissions))
        self._targets: dict[str, list[str]] = {}
        found = True
        while found:
            found = False
            self._name_targets()
            for heading, blocks in permissions.blocks.items():
                if heading.effect != "Allow" or heading.kind not in ("permission", "trust"):
                    continue
                if heading.kind == "trust":
                    # a role that trusts an identity by its own name can be assumed without any other policy
                    is_edge = heading.who[0] in ("resource", "user", "role", "group") and any(
                        self._is_powerful(name) for block in blocks for _, names in block.resources for name in names
                    )
                else:
                    is_edge = any(self.leads(block) for block in blocks)
                if is_edge and heading.who not in self.powerful:
                    self.powerful.add(heading.who)
                    found = True

    def __contains__(self, who: object) -> bool:
        return who in self.powerful

    def leads(self, block: Block) -> bool:
        """Whether statements of this kind let a principal act as a powerful identity, or join a powerful group."""
        resources = [name for kind, names in block.resources if kind != "but" for name in names]
        for kind, names in block.actions:
            if kind == "member":
                if any(self.is_group_of_power(name) for name in names):
                    return True
                continue
            if kind in ("but", "policy"):
                continue
            for name in names:
                if any(_is_among(each, name) for each in _TAKES_ON) and any(map(self._is_powerful, resources)):
                    return True
                if any(self._runs(name, each) for each in resources):
                    return True
        return False

    def is_group_of_power(self, group: str) -> bool:
        """Whether a group is powerful, or one whose permissions the templates do not show."""
        return ("resource", group) in self.powerful or ("group", group) in self.powerful or not TOKEN.fullmatch(group)

    def trusts(self, resources: Iterable[str]) -> bool:
        """Whether one of the roles with a trust policy is powerful."""
        return any(map(self._is_powerful, resources))

    def acts(self, token: str) -> frozenset[Principal]:
        """Return the powerful roles that a resource of the templates runs with."""
        return frozenset(each for each in self.acting.get(token, ()) if each in self.powerful)

    def runs_as(self, resource: Resource) -> frozenset[Principal]:
        """Return the identities that a resource runs with, and that can get every permission or may as far as is
        known."""
        return self.acts(self._view.token(resource)) | elsewhere(self._view, resource)

    def _name_targets(self) -> None:
        """Record the names with which policies refer to the powerful identities and to resources that run with one."""
        self._targets = {}
        for _, value in self.powerful:
            for name in self._names_of(value):
                self._targets.setdefault("", []).append(name)
        for token, roles in self.acting.items():
            resource = self._view.find(token)
            if resource is not None and not roles.isdisjoint(self.powerful):
                for name in self._names_of(token):
                    self._targets.setdefault(resource.type, []).append(name)

    def _names_of(self, token: str) -> Iterator[str]:
        yield token
        resource = self._view.find(token)
        if resource is None:
            return
        properties = self._view.properties(resource)
        for key in ("RoleName", "UserName", "GroupName", "FunctionName", "Name", "StateMachineName", "ClusterName"):
            name = properties.get(key)
            if isinstance(name, str) and name and not TOKEN.search(name):
                yield name

    def _is_powerful(self, resource: str) -> bool:
        return bool(_BY_NAME.fullmatch(resource)) or any(_means(resource, each) for each in self._targets.get("", ()))

    def _runs(self, action: str, resource: str) -> bool:
        return any(
            any(_is_among(each, action) for each in _RUNS_CODE.get(type_, ()))
            and any(_means(resource, each) for each in names)
            for type_, names in self._targets.items()
            if type_
        )


@cache
def _is_among(action: str, pattern: str) -> bool:
    return matches_action(pattern, action)


def _means(resource: str, name: str) -> bool:
    """Whether a policy's resource is, or may be, the identity or resource with this ``name``."""
    found = TOKEN.match(name)
    if found:
        return any((each[1], each[2]) == (found[1], found[2]) for each in TOKEN.finditer(resource))
    last = re.split(r"[:/]", resource)[-1]
    return resource == name or (resource.startswith("arn:") and matches_action(last, name))


def acting(view: View, permissions: Permissions) -> dict[str, frozenset[Principal]]:
    """Return the roles of the templates that resources run with, directly or through an instance profile, by token."""
    profiles: dict[str, set[str]] = {}
    for heading, blocks in permissions.blocks.items():
        if heading.kind == "trust" and heading.who[0] == "resource":
            roles_of = profiles.setdefault(heading.who[1], set())
            roles_of.update(name for block in blocks for _, names in block.resources for name in names)
    found: dict[str, frozenset[Principal]] = {}
    for resource in view.resources:
        if resource.type.startswith(("AWS::IAM::", "Custom::")) or resource.type in _NO_ACTORS:
            continue
        roles: set[Principal] = set()
        for value in _role_texts(view.properties(resource)):
            for each in TOKEN.finditer(value):
                token = f"${{{each[1]}/{each[2]}}}"
                target = view.find(token)
                if target is not None and target.type == "AWS::IAM::Role" and TOKEN.fullmatch(value):
                    roles.add(("resource", token))
                elif target is not None and target.type == "AWS::IAM::InstanceProfile":
                    roles |= {("resource", role) for role in profiles.get(token, ())}
        if roles:
            found[view.token(resource)] = frozenset(roles)
    return found


def elsewhere(view: View, resource: Resource) -> frozenset[Principal]:
    """Return the roles and instance profiles that a resource runs with and that are not in the templates.

    Their permissions are unknown: such a role counts as one that can get every permission, unless only a service itself
    assumes it.
    """
    if resource.type == "AWS::IAM::InstanceProfile":
        named = (view.named("AWS::IAM::Role", text(each)) for each in items(view.properties(resource).get("Roles")))
        return frozenset(("AWS", f"role {each}") for each in named if not TOKEN.search(each))
    if resource.type.startswith(("AWS::IAM::", "Custom::")) or resource.type in _NO_ACTORS | _USED_BY_SERVICES:
        return frozenset()
    properties = view.properties(resource)
    acts_by = _ACTS_BY.get(resource.type)
    return frozenset(
        ("AWS", each)
        for each in _role_texts({acts_by: properties.get(acts_by)} if acts_by else properties, "")
        if _ROLE_ELSEWHERE.fullmatch(each) and not TOKEN.fullmatch(each)
    ) | frozenset(("AWS", f"instance profile {each}") for each in _profile_names(properties) if _is_strange(view, each))


def _profile_names(properties: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of instance profiles, which EC2 accepts instead of an ARN."""
    pending: list[Any] = [properties]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            for key, value in item.items():
                stated = value.get("Name") if key == "IamInstanceProfile" and isinstance(value, dict) else value
                if key in _PROFILES and isinstance(stated, str):
                    yield stated
            pending += item.values()


def _is_strange(view: View, name: str) -> bool:
    """Whether an instance profile's name is not in the templates, and not an ARN, which is read elsewhere."""
    named = view.named("AWS::IAM::InstanceProfile", name)
    return not TOKEN.search(named) and ":" not in named and not _ROLE_ELSEWHERE.fullmatch(named)


def role_properties(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names, at any depth, of the properties that name the role or instance profile with which something
    runs."""
    return names_below(properties, _names_role)


def _names_role(key: str) -> bool:
    return "Role" in key or "InstanceProfile" in key


def _role_texts(value: Any, holding: str = "${") -> Iterator[str]:
    """Return the values below a key that names a role or an instance profile, except in policies."""
    pending: list[tuple[Any, bool]] = [(value, False)]
    while pending:
        item, is_role = pending.pop()
        if isinstance(item, str):
            if is_role and holding in item:
                yield item
        elif isinstance(item, list):
            pending += [(each, is_role) for each in item if is_role or isinstance(each, (dict, list))]
        elif isinstance(item, dict) and not looks_like_policy(item):
            below = ((each, is_role or _names_role(key)) for key, each in item.items())
            pending += [part for part in below if part[1] or isinstance(part[0], (dict, list))]
