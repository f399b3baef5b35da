"""Check finished CloudFormation templates with AWS's own engine, and for what no schema says about HyperPod."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cloudformation_validate as engine
import jsii

from hyperpod_cdk.catalog import regions
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.validation_engine import validation_engine

LEFT_OUT: Mapping[str, str] = {
    "E3644": "its lists of instance types per region come from price data and lack some, such as ml.p5e.48xlarge",
    "W9002": "ARNs of roles, plans and topics are named by the user; partition-from-token looks after the others",
    "W9013": "ARNs of roles, plans and topics are named by the user; partition-from-token looks after the others",
}
"""Rules of the engine that are not reported, and why."""


def check_templates(paths: Iterable[str | Path], *, region: str | None = None) -> list[Finding]:
    """Check templates that belong together (a cluster and the network it imports) and give every error and warning.

    ``region`` is where they are deployed; without it the engine assumes us-east-1. Paths of findings are construct
    paths where the template tells them (metadata ``aws:cdk:path``), else logical ids. A rule that a resource lists in
    its own metadata for cfn-lint (``ignore_checks``) is silent about that resource.
    """
    problems = _problems([_Template(str(path), region) for path in paths])
    return [problem.finding() for problem in problems if not problem.is_ignored]


@jsii.implements(cdk.IPolicyValidationPlugin)
class TemplateChecks:
    """CDK policy-validation plugin that runs ``check_templates`` on every template of an app.

    ``cdk.Validations.of(app).add_plugins(TemplateChecks())``, with CDK's built-in validation turned off
    (``cdk.App(builtin_cloud_formation_validation=False)``), which is the same engine, older and a hundred times slower.
    Errors fail the synthesis, warnings are printed. A finding is acknowledged by the id printed with it, e.g.
    ``cdk.Validations.of(scope).acknowledge(cdk.Acknowledgment(id="hyperpod-cdk::cluster-tag", reason="..."))``.
    """

    @property
    def name(self) -> str:
        """The plugin's name in CDK's report."""
        return "hyperpod-cdk"

    @property
    def version(self) -> str:
        """The version of the engine, whose schemas decide most findings."""
        return version("cloudformation-validate")

    @property
    def rule_ids(self) -> list[str]:
        """Every rule that may speak: this module's own, then the engine's."""
        return [*RULES, *(rule.id for rule in validation_engine().list_rules() if rule.id not in LEFT_OUT)]

    def validate(self, context: cdk.IPolicyValidationContext) -> cdk.PolicyValidationPluginReport:
        """Check the templates of an app or stage, each for the region of its stack."""
        templates = [
            _Template(stack.template_path, stack.region if regions.is_known(stack.region or "") else None)
            for stack in context.stack_templates
        ]
        problems = _problems(templates)
        return cdk.PolicyValidationPluginReport(
            success=not any(problem.severity is Severity.ERROR for problem in problems),
            violations=[problem.violation() for problem in problems],
        )


@dataclass(frozen=True)
class _Template:
    path: str
    region: str | None

    @cached_property
    def body(self) -> dict[str, Any]:
        return dict(json.loads(Path(self.path).read_text(encoding="utf-8")))

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        return self.body.get("Resources") or {}

    def of_type(self, resource_type: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for logical_id, resource in self.resources.items():
            if resource.get("Type") == resource_type:
                yield logical_id, resource.get("Properties") or {}

    def strings(self) -> Iterator[tuple[str, str, str]]:
        """Give (logical id, property path, text) of every text in a property."""
        for logical_id, resource in self.resources.items():
            for place, text in _strings(resource.get("Properties"), "Properties"):
                yield logical_id, place, text


@dataclass(frozen=True, kw_only=True)
class _Problem:
    template: _Template
    rule: str
    severity: Severity
    message: str
    logical_id: str = ""
    place: str = ""
    line: int | None = None

    @property
    def is_ignored(self) -> bool:
        """Whether the resource's own metadata says so; CDK's plugin goes by acknowledgments instead, and lists them."""
        metadata = self.template.resources.get(self.logical_id, {}).get("Metadata") or {}
        config = (metadata.get("cfn-lint") or {}).get("config") or {}
        return self.rule in (config.get("ignore_checks") or ())

    def finding(self) -> Finding:
        resource = self.template.resources.get(self.logical_id, {})
        construct = (resource.get("Metadata") or {}).get("aws:cdk:path", self.logical_id)
        return Finding(
            severity=self.severity,
            message=self.message,
            path=" ".join(part for part in (construct, self.place) if part),
            file=self.template.path,
            line=self.line,
            rule=self.rule,
        )

    def violation(self) -> cdk.PolicyViolation:
        return cdk.PolicyViolation(
            rule_name=self.rule,
            description=self.message,
            severity=self.severity.value,
            violating_resources=[
                cdk.PolicyViolatingResource(
                    resource_logical_id=self.logical_id,
                    template_path=self.template.path,
                    locations=[self.place] if self.place else [],
                )
            ],
        )


Report = Callable[..., _Problem]
Check = Callable[[Sequence[_Template], Report], Iterator[_Problem]]


def _no_get_azs(templates: Sequence[_Template], report: Report) -> Iterator[_Problem]:
    for template in templates:
        for logical_id, resource in template.resources.items():
            for place in _places_of_key(resource.get("Properties"), "Fn::GetAZs", "Properties"):
                yield report(
                    template,
                    logical_id,
                    place,
                    "must not use Fn::GetAZs, whose zones differ from account to account; name availability zone IDs",
                )


def _no_dummy_values(templates: Sequence[_Template], report: Report) -> Iterator[_Problem]:
    for template in templates:
        for logical_id, place, text in template.strings():
            if _DUMMY.fullmatch(text):
                yield report(
                    template,
                    logical_id,
                    place,
                    f"must be a real value, got {text}, which CDK puts where it did not look anything up; "
                    "pass the value instead of a look-up",
                )


def _partition_from_token(templates: Sequence[_Template], report: Report) -> Iterator[_Problem]:
    for template in templates:
        for logical_id, place, text in template.strings():
            for match in _LITERAL_ARN.finditer(text):
                if match["account"] is None:
                    yield report(
                        template,
                        logical_id,
                        place,
                        f"must take the partition from AWS::Partition, got {match[0]}; "
                        f"write arn:${{AWS::Partition}}:{match['service']}",
                    )


def _subnet_zone_by_id(templates: Sequence[_Template], report: Report) -> Iterator[_Problem]:
    for template in templates:
        for logical_id, properties in template.of_type("AWS::EC2::Subnet"):
            if "AvailabilityZone" in properties:
                got = properties["AvailabilityZone"]
                yield report(
                    template,
                    logical_id,
                    "Properties.AvailabilityZone",
                    f"must name its zone by ID, got the name {got if isinstance(got, str) else json.dumps(got)}; "
                    "set AvailabilityZoneId",
                )


def _cluster_tag(templates: Sequence[_Template], report: Report) -> Iterator[_Problem]:
    for template in templates:
        for logical_id, properties in template.of_type(_CLUSTER):
            tags = {tag.get("Key"): tag.get("Value") for tag in properties.get("Tags") or [] if isinstance(tag, dict)}
            if tags.get("SageMaker") != "true":
                yield report(
                    template,
                    logical_id,
                    "Properties.Tags",
                    f"must carry the tag SageMaker=true, got {tags.get('SageMaker', 'none')}; without it the training "
                    'operator may not read the nodes; add {"Key": "SageMaker", "Value": "true"}',
                )


def _instance_group_complete(templates: Sequence[_Template], report: Report) -> Iterator[_Problem]:
    for template in templates:
        for logical_id, properties in template.of_type(_CLUSTER):
            for place, group in _groups(properties):
                for name, why in _GROUP_NEEDS.items():
                    if name not in group and not (name == _SCRIPTS and _RESTRICTED in place):
                        index = place.rpartition(".")[-1]
                        yield report(
                            template,
                            logical_id,
                            place,
                            f"instance group {group.get('InstanceGroupName', index)} must state {name}, {why}; set it",
                        )


def _efa_security_group(templates: Sequence[_Template], report: Report) -> Iterator[_Problem]:
    sides = {"ingress": _self_references(templates, "Ingress"), "egress": _self_references(templates, "Egress")}
    for template in templates:
        for logical_id, properties in template.of_type(_CLUSTER):
            for place, ids in _security_groups(properties):
                targets = [_resolved(templates, template, each) for each in ids]
                if None in targets:
                    # a group from outside the app, of which no template tells
                    continue
                for side, owners in sides.items():
                    if not owners.intersection(targets):
                        names = ", ".join(sorted(target[1] for target in targets if target)) or "no security group"
                        yield report(
                            template,
                            logical_id,
                            place,
                            f"must have a security group with {side} of all traffic from and to itself by its id "
                            f"(EFA health checks fail without), got {names}; add the self-referencing {side} rule",
                        )


_CLUSTER = "AWS::SageMaker::Cluster"
_DUMMY = re.compile(r"dummy1[abc]|dummy-value-for-.*|vpc-12345|[sp]-12345")
_LITERAL_ARN = re.compile(r"arn:aws[a-z-]*:(?P<service>[a-z0-9-]*)(?::[a-z0-9-]*:(?P<account>\d{12})(?!\d))?[^\s\"',]*")
_SCRIPTS = "LifeCycleConfig"
_RESTRICTED = "RestrictedInstanceGroups"
_GROUP_NEEDS = {
    "OverrideVpcConfig": "so that its subnet never depends on the cluster's",
    "ThreadsPerCore": "which an update that leaves it out resets",
    _SCRIPTS: "without which its nodes are not prepared",
}

_TABLE: tuple[tuple[str, Check], ...] = (
    ("no-get-azs", _no_get_azs),
    ("no-dummy-values", _no_dummy_values),
    ("partition-from-token", _partition_from_token),
    ("subnet-zone-by-id", _subnet_zone_by_id),
    ("cluster-tag", _cluster_tag),
    ("instance-group-complete", _instance_group_complete),
    ("efa-security-group", _efa_security_group),
)

RULES: tuple[str, ...] = tuple(rule for rule, _ in _TABLE)
"""This module's own rules; every one is an error."""


def _problems(templates: Sequence[_Template]) -> list[_Problem]:
    found = [problem for template in templates for problem in _engine_problems(template)]
    for rule, check in _TABLE:

        def report(template: _Template, logical_id: str, place: str, message: str, *, rule: str = rule) -> _Problem:
            return _Problem(
                template=template,
                rule=rule,
                severity=Severity.ERROR,
                message=message,
                logical_id=logical_id,
                place=place,
            )

        found.extend(check(templates, report))
    return found


def _engine_problems(template: _Template) -> Iterator[_Problem]:
    partition = regions.partition_of(template.region) if template.region else None
    config = engine.ValidateConfig(
        exclude=engine.RuleFilterConfig(ids=list(LEFT_OUT)),
        detail_level=engine.DetailLevel.STANDARD,
        severity_level=engine.Severity.WARN,
        pseudo_parameter_overrides=engine.PseudoParameterOverrides(region=template.region, partition=partition),
    )
    for piece in _pieces(template):
        for diagnostic in validation_engine().validate_template(piece.source, config).diagnostics:
            logical_id = diagnostic.entity.logical_id if diagnostic.entity else ""
            place = piece.place_in_whole(logical_id, diagnostic.property_path or "")
            if place is None:
                continue
            warning = diagnostic.severity == engine.Severity.WARN
            parts = (diagnostic.message, diagnostic.suggested_fix)
            yield _Problem(
                template=template,
                rule=diagnostic.rule_id,
                severity=Severity.WARNING if warning else Severity.ERROR,
                message="; ".join(part for part in parts if part),
                logical_id=logical_id,
                place=place,
                line=diagnostic.start_line if piece.is_whole else None,
            )


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A template as the engine reads it: whole, or with a few of its cluster's instance groups only."""

    source: str | bytes
    cluster: str = ""
    first_group: int = 0

    @property
    def is_whole(self) -> bool:
        return not self.cluster

    def place_in_whole(self, logical_id: str, place: str) -> str | None:
        """Give the place in the whole template; None for what the piece before has told already."""
        found = re.fullmatch(r"Properties\.InstanceGroups\.(\d+)(.*)", place)
        if self.cluster == logical_id and found:
            return f"Properties.InstanceGroups.{int(found[1]) + self.first_group}{found[2]}"
        return None if self.first_group else place


_GROUPS_AT_ONCE = 10


def _pieces(template: _Template) -> Iterator[_Piece]:
    """Cut a template whose cluster has many groups: the engine's time grows with the square of one resource's size."""
    large = [
        (name, properties)
        for name, properties in template.of_type(_CLUSTER)
        if isinstance(groups := properties.get("InstanceGroups"), list) and len(groups) > 2 * _GROUPS_AT_ONCE
    ]
    if len(large) != 1:
        yield _Piece(source=template.path)
        return
    ((name, properties),) = large
    for first in range(0, len(properties["InstanceGroups"]), _GROUPS_AT_ONCE):
        few = {**properties, "InstanceGroups": properties["InstanceGroups"][first : first + _GROUPS_AT_ONCE]}
        resources = {**template.resources, name: {**template.resources[name], "Properties": few}}
        yield _Piece(
            source=json.dumps({**template.body, "Resources": resources}).encode(), cluster=name, first_group=first
        )


def _groups(properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the instance groups of both kinds with their places."""
    for kind in ("InstanceGroups", _RESTRICTED):
        groups = properties.get(kind)
        for index, group in enumerate(groups if isinstance(groups, list) else ()):
            if isinstance(group, dict):
                yield f"Properties.{kind}.{index}", group


def _security_groups(properties: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    holders = [("Properties.VpcConfig", properties.get("VpcConfig"))]
    holders += [(f"{place}.OverrideVpcConfig", group.get("OverrideVpcConfig")) for place, group in _groups(properties)]
    for place, holder in holders:
        ids = holder.get("SecurityGroupIds") if isinstance(holder, dict) else None
        if isinstance(ids, list):
            yield f"{place}.SecurityGroupIds", ids


def _self_references(templates: Sequence[_Template], side: str) -> set[tuple[str, str]]:
    """Give (template path, logical id) of the security groups that allow all traffic with themselves on one side."""
    other = {"Ingress": "SourceSecurityGroupId", "Egress": "DestinationSecurityGroupId"}[side]
    found = set()
    for template in templates:
        rules = [(rule.get("GroupId"), rule) for _, rule in template.of_type(f"AWS::EC2::SecurityGroup{side}")]
        for logical_id, properties in template.of_type("AWS::EC2::SecurityGroup"):
            inline = properties.get(f"SecurityGroup{side}") or []
            rules += [({"Ref": logical_id}, rule) for rule in inline if isinstance(rule, dict)]
        for owner, rule in rules:
            target = _resolved(templates, template, owner)
            same = target is not None and target == _resolved(templates, template, rule.get(other))
            if same and target and str(rule.get("IpProtocol")) == "-1":
                found.add(target)
    return found


def _resolved(templates: Sequence[_Template], template: _Template, value: Any) -> tuple[str, str] | None:
    """Follow a reference to the security group it means, through exports of the other templates."""
    if not isinstance(value, dict):
        return None
    attribute = value.get("Fn::GetAtt", [])
    parts = attribute.split(".") if isinstance(attribute, str) else attribute
    logical_id = value.get("Ref") or (parts[0] if parts else None)
    if template.resources.get(logical_id or "", {}).get("Type") == "AWS::EC2::SecurityGroup":
        return template.path, str(logical_id)
    name = value.get("Fn::ImportValue")
    for other in templates if isinstance(name, str) else ():
        for output in (other.body.get("Outputs") or {}).values():
            if (output.get("Export") or {}).get("Name") == name:
                return _resolved(templates, other, output.get("Value"))
    return None


def _strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _strings(inner, f"{place}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strings(inner, f"{place}.{index}")


def _places_of_key(value: Any, key: str, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield place
            yield from _places_of_key(inner, key, f"{place}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places_of_key(inner, key, f"{place}.{index}")
