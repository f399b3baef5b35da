"""Properties of all shipped environments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.support.assembly import ENVIRONMENTS, FOLDERS, PROJECT, Synthesized

ZONE_NAME = re.compile(r"\b[a-z]{2}(?:-gov|-iso[a-z]?)?-[a-z]+-\d[a-z]\b")


def test_every_file_is_found() -> None:
    files = {path.relative_to(PROJECT).as_posix() for folder in FOLDERS for path in (PROJECT / folder).glob("*.y*ml")}
    assert sorted(ENVIRONMENTS.values()) == sorted(files)


def test_no_zone_is_named(synthesized: Synthesized) -> None:
    # names mean other zones in other accounts
    found = [
        (stack, text)
        for stack, template in synthesized.templates.items()
        for text in _texts(template)
        if ZONE_NAME.search(text)
    ]
    assert found == []


def test_every_group_states_what_an_update_would_reset(synthesized: Synthesized) -> None:
    (node,) = synthesized.of_type("AWS::SageMaker::Cluster")
    properties = synthesized.resource(node)["Properties"]
    usual, restricted = properties.get("InstanceGroups", []), properties.get("RestrictedInstanceGroups", [])
    assert usual or restricted
    everywhere = {"OverrideVpcConfig", "ThreadsPerCore", "ExecutionRole"}
    lacking = {
        group["InstanceGroupName"]: sorted(missing)
        for group in [*usual, *restricted]
        if (missing := (everywhere if group in restricted else {*everywhere, "LifeCycleConfig"}) - group.keys())
    }
    assert lacking == {}
    # AWS prepares the nodes of restricted groups itself
    assert [group["InstanceGroupName"] for group in restricted if "LifeCycleConfig" in group] == []


def test_every_node_may_talk_to_its_like(synthesized: Synthesized) -> None:
    network = synthesized.environment.network.existing
    if network is not None and network.security_group_id is not None:
        return
    (node,) = synthesized.of_type("AWS::SageMaker::Cluster")
    properties = synthesized.resource(node)["Properties"]
    groups = [*properties.get("InstanceGroups", []), *properties.get("RestrictedInstanceGroups", [])]
    both = _to_themselves(synthesized, "Ingress") & _to_themselves(synthesized, "Egress")
    for config in [properties["VpcConfig"], *(group["OverrideVpcConfig"] for group in groups)]:
        assert both.intersection(_exported(synthesized, each) for each in config["SecurityGroupIds"])


def _to_themselves(synthesized: Synthesized, side: str) -> set[str]:
    """Logical ids of the security groups with a rule for all traffic that names themselves."""
    other = {"Ingress": "SourceSecurityGroupId", "Egress": "DestinationSecurityGroupId"}[side]
    rules = [synthesized.resource(n)["Properties"] for n in synthesized.of_type(f"AWS::EC2::SecurityGroup{side}")]
    return {
        rule["GroupId"]["Fn::GetAtt"][0]
        for rule in rules
        if rule["IpProtocol"] == "-1" and "Fn::GetAtt" in rule["GroupId"] and rule.get(other) == rule["GroupId"]
    }


def _exported(synthesized: Synthesized, value: Any) -> str:
    """The logical id behind a reference, through the export of another stack."""
    if isinstance(value, dict) and "Fn::ImportValue" in value:
        for template in synthesized.templates.values():
            for output in template.get("Outputs", {}).values():
                if output.get("Export", {}).get("Name") == value["Fn::ImportValue"]:
                    return _exported(synthesized, output["Value"])
    return str(value["Fn::GetAtt"][0]) if isinstance(value, dict) and "Fn::GetAtt" in value else str(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts(each)
