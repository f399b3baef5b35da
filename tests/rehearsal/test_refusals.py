"""What AWS refuses, the rehearsal refuses: faults in the product's own templates are told by text and taken back."""

from __future__ import annotations

import copy
import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from botocore.exceptions import ClientError

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.rehearsal.embedded.account import load_document
from hyperpod_cdk.rehearsal.process import EmbeddedAws
from stacks.app import FEATURE_FLAGS, build
from tests.support.assembly import ENVIRONMENTS, Synthesized, read_assembly

Template = dict[str, Any]
Edit = Callable[[Template], None]
Step = str | int

ACCOUNT, REGION = "111122223333", "us-east-1"
PLANS = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan"
ROLES = f"arn:aws:iam::{ACCOUNT}:role"
STACKS = ("network", "control-plane", "storage", "hyperpod", "platform", "observability")
BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"
SECONDS_PER_OPERATION = 60

VOLATILE = {
    "ResponseMetadata", "LastModifiedTime", "LastUpdatedTime", "modifiedAt", "LastModifiedBy", "DriftInformation",
}  # fmt: skip
"""Members of an answer that an update changes and its rollback does not change back."""

SHOWN = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\b(subnet|sg|sgr|vpc|rtb|fs|lambda)-[0-9a-f]{8,}"), r"<\1>"),
    (re.compile(r"(?<=\.)[0-9a-f]{32}|(?<=/)[0-9a-f]{32}"), "<digest>"),
    (re.compile(r"(sagemaker-[0-9a-z-]*|prod-hyperpod)-[0-9A-Za-z]{8,13}\b"), r"\1-<suffix>"),
)
"""What differs from one run to the next, and what stands for it in the texts below."""


def put(value: Any, logical_id: str, *path: Step) -> Edit:
    """Set a property of a resource, given by the readable part of its logical id."""

    def edit(template: Template) -> None:
        *way, last = path
        target = _resource(template, logical_id)["Properties"]
        for step in way:
            target = target[step]
        target[last] = value

    return edit


def cut(logical_id: str, *path: Step) -> Edit:
    """Remove a property."""

    def edit(template: Template) -> None:
        *way, last = path
        target = _resource(template, logical_id)["Properties"]
        for step in way:
            target = target[step]
        del target[last]

    return edit


def attribute(value: Any, logical_id: str, name: str) -> Edit:
    """Set a resource attribute (DependsOn, DeletionPolicy)."""

    def edit(template: Template) -> None:
        _resource(template, logical_id)[name] = value

    return edit


def without(*logical_ids: str) -> Edit:
    """Remove resources, with the waiting for them and the outputs about them."""

    def edit(template: Template) -> None:
        for logical_id in logical_ids:
            name = _name(template, logical_id)
            del template["Resources"][name]
            for resource in template["Resources"].values():
                waits = resource.get("DependsOn", [])
                resource["DependsOn"] = [each for each in waits if each != name]
            for output, content in list(template.get("Outputs", {}).items()):
                if name in json.dumps(content):
                    del template["Outputs"][output]

    return edit


def only(*logical_ids: str) -> Edit:
    """Remove every other resource."""

    def edit(template: Template) -> None:
        kept = {_name(template, logical_id) for logical_id in logical_ids}
        for name in [name for name in template["Resources"] if name not in kept]:
            without(name)(template)

    return edit


def added(logical_id: str, resource_type: str, **properties: Any) -> Edit:
    """Add a resource."""

    def edit(template: Template) -> None:
        template["Resources"][logical_id] = {"Type": resource_type, "Properties": properties}

    return edit


def group(name: str, count: int, **changes: Any) -> Edit:
    """Add an instance group: the first group (ml.p5.48xlarge) under another name, on demand."""

    def edit(template: Template) -> None:
        groups = _resource(template, "Cluster")["Properties"]["InstanceGroups"]
        made = {**copy.deepcopy(groups[0]), "InstanceGroupName": name, "InstanceCount": count, **changes}
        del made["TrainingPlanArn"], made["OnStartDeepHealthChecks"]
        made.update({key: value for key, value in changes.items() if value is not None})
        groups.append(made)

    return edit


@dataclass(frozen=True)
class Refusal:
    """A fault put into one of the six stacks, and what is said about it."""

    name: str
    stack: str
    edits: tuple[Edit, ...]
    text: str
    at: str = ""
    """Which resource says so; empty where the request itself is refused and nothing begins."""


class Deployed:
    """The embedded AWS with the six stacks in it."""

    def __init__(self, aws: EmbeddedAws, synthesized: Synthesized) -> None:
        self.aws = aws
        self.cloudformation = aws.cloudformation
        self.templates = {
            name.removeprefix("prod-"): template for name, template in synthesized.templates.items()
        }
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.aws.client(service)
        return self._clients[service]

    def edited(self, stack: str, *edits: Edit) -> Template:
        template = copy.deepcopy(self.templates[stack])
        for edit in edits:
            edit(template)
        return template

    def create(self, name: str, template: Template, *, chart: str = "rehearsal") -> None:
        self.cloudformation.create_stack(StackName=name, **_request(template, chart))

    def update(self, name: str, template: Template) -> None:
        self.cloudformation.update_stack(StackName=name, **_request(template, "rehearsal"))

    def settled(self, name: str) -> str:
        """The stack's status once nothing happens to it any more."""
        deadline = time.monotonic() + SECONDS_PER_OPERATION
        while time.monotonic() < deadline:
            status = str(self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(0.03)
        raise AssertionError(f"{name} did not come to rest in {SECONDS_PER_OPERATION} s")

    def reasons(self, name: str) -> dict[str, str]:
        """Why each resource failed in the stack's last operation, without those that were only cancelled with it."""
        found = {}
        for event in self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]:
            reason = event.get("ResourceStatusReason", "")
            if event["ResourceStatus"].endswith("_FAILED") and "cancelled" not in reason:
                found[event["LogicalResourceId"]] = shown(reason)
            if event["ResourceStatus"] in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS") and event[
                "LogicalResourceId"
            ] == name and reason == "User Initiated":
                break
        return found

    def account(self) -> dict[str, Any]:
        """Everything that the account holds, without what tells time."""
        ec2, iam, eks, sagemaker = (self.client(name) for name in ("ec2", "iam", "eks", "sagemaker"))
        found: dict[str, Any] = {
            "stacks": {
                stack: [
                    (each["LogicalResourceId"], each["PhysicalResourceId"])
                    for each in self.cloudformation.describe_stack_resources(StackName=f"prod-{stack}")["StackResources"]
                ]
                for stack in STACKS
            },
            "templates": {
                stack: self.cloudformation.get_template(StackName=f"prod-{stack}")["TemplateBody"] for stack in STACKS
            },
            "clusters": [
                sagemaker.describe_cluster(ClusterName=each["ClusterName"])
                for each in sagemaker.list_clusters()["ClusterSummaries"]
            ],
            "nodes": sagemaker.list_cluster_nodes(ClusterName="prod"),
            "tags": sagemaker.list_tags(ResourceArn=sagemaker.describe_cluster(ClusterName="prod")["ClusterArn"]),
            "quotas": sagemaker.list_compute_quotas(),
            "control planes": {name: eks.describe_cluster(name=name) for name in eks.list_clusters()["clusters"]},
            "addons": [
                eks.describe_addon(clusterName="prod-eks", addonName=name)
                for name in eks.list_addons(clusterName="prod-eks")["addons"]
            ],
            "file systems": self.client("fsx").describe_file_systems(),
            "buckets": [each["Name"] for each in self.client("s3").list_buckets()["Buckets"]],
            "roles": {
                each["RoleName"]: (
                    each["AssumeRolePolicyDocument"],
                    iam.list_attached_role_policies(RoleName=each["RoleName"])["AttachedPolicies"],
                    iam.list_role_policies(RoleName=each["RoleName"])["PolicyNames"],
                )
                for each in iam.list_roles()["Roles"]
            },
            "network": [
                ec2.describe_vpcs(),
                ec2.describe_subnets(),
                ec2.describe_route_tables(),
                ec2.describe_security_group_rules(),
                [each for each in ec2.describe_vpc_endpoints()["VpcEndpoints"] if each["State"] != "deleted"],
            ],
            "kubernetes": self.aws.state()["kubernetes"],
        }
        return dict(_lasting(found))


def shown(text: str) -> str:
    """The text with stand-ins for whatever differs from one run to the next."""
    for pattern, stand_in in SHOWN:
        text = pattern.sub(stand_in, text)
    return text


def _lasting(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _lasting(member) for key, member in value.items() if key not in VOLATILE}
    return [_lasting(member) for member in value] if isinstance(value, (list, tuple)) else value


def _name(template: Template, logical_id: str) -> str:
    names = [each for each in template["Resources"] if re.fullmatch(f"{logical_id}([0-9A-F]{{8}})?", each)]
    assert len(names) == 1, f"{logical_id}: {names} of {list(template['Resources'])}"
    return names[0]


def _resource(template: Template, logical_id: str) -> dict[str, Any]:
    resource: dict[str, Any] = template["Resources"][_name(template, logical_id)]
    return resource


def _request(template: Template, chart: str) -> dict[str, Any]:
    asked = "HyperPodChart" in template.get("Parameters", {})
    return {
        "TemplateBody": json.dumps(template),
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
        "Parameters": [{"ParameterKey": "HyperPodChart", "ParameterValue": chart}] if asked else [],
    }
