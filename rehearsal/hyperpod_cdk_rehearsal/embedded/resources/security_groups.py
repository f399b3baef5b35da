"""AWS::EC2: security groups and their rules."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.moto_state import moto_state
from hyperpod_cdk_rehearsal.embedded.resources._calls import as_list, call, ignoring, refusal, take, undone_by
from hyperpod_cdk_rehearsal.embedded.resources._ec2 import client_of, retag_by_ec2, tag_specifications
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)
from hyperpod_cdk_rehearsal.embedded.services.network import ALL_TRAFFIC, ANYWHERE


def _permission(rule: dict[str, Any]) -> dict[str, Any]:
    """One CloudFormation rule as the API's IpPermission."""
    description = take(rule, "Description")
    permission: dict[str, Any] = take(rule, "IpProtocol", "FromPort", "ToPort")
    if str(rule.get("IpProtocol")) == "-1":
        permission = {"IpProtocol": "-1"}
    group = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    prefix_list = rule.get("SourcePrefixListId") or rule.get("DestinationPrefixListId")
    if rule.get("CidrIp"):
        permission["IpRanges"] = [{"CidrIp": rule["CidrIp"]} | description]
    elif rule.get("CidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": rule["CidrIpv6"]} | description]
    elif prefix_list:
        permission["PrefixListIds"] = [{"PrefixListId": prefix_list} | description]
    elif group:
        owner = take(rule, UserId="SourceSecurityGroupOwnerId")
        permission["UserIdGroupPairs"] = [{"GroupId": group} | owner | description]
    elif rule.get("SourceSecurityGroupName"):
        permission["UserIdGroupPairs"] = [{"GroupName": rule["SourceSecurityGroupName"]} | description]
    return permission


def _peer(rule: dict[str, Any]) -> str:
    """A rule as EC2 tells it in its messages."""
    peers = ("CidrIp", "CidrIpv6", "SourceSecurityGroupId", "DestinationSecurityGroupId")
    peer = next((str(rule[name]) for name in peers if rule.get(name)), "")
    protocol = str(rule["IpProtocol"])
    if protocol == "-1":
        return f"peer: {peer}, ALL, ALLOW"
    ports = f"from port: {rule.get('FromPort')}, to port: {rule.get('ToPort')}"
    return f"peer: {peer}, {protocol.upper()}, {ports}, ALLOW"


def _matching_rule_ids(client: Any, group_id: str, rule: dict[str, Any], *, egress: bool) -> list[str]:
    """Ids of a group's rules that say what one CloudFormation rule says, its description apart."""
    group = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    prefix_list = rule.get("SourcePrefixListId") or rule.get("DestinationPrefixListId")
    protocol = str(rule["IpProtocol"])
    ports = [-1, -1] if protocol == "-1" else [int(rule.get("FromPort", -1)), int(rule.get("ToPort", -1))]
    wanted = [protocol, *ports, rule.get("CidrIp"), rule.get("CidrIpv6"), prefix_list, group]
    found = client.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group_id]}])
    return [
        row["SecurityGroupRuleId"]
        for row in found["SecurityGroupRules"]
        if row["IsEgress"] is egress
        and wanted
        == [
            row["IpProtocol"],
            row.get("FromPort", -1),
            row.get("ToPort", -1),
            row.get("CidrIpv4"),
            row.get("CidrIpv6"),
            row.get("PrefixListId"),
            row.get("ReferencedGroupInfo", {}).get("GroupId"),
        ]
    ]


@dataclass
class SeparateRules:
    """IDs of the egress rules that are resources of their own."""

    ids: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)


def _revoke_all_traffic_egress(request: ResourceRequest, group_id: str) -> None:
    """Remove the rule of a group that allows all IPv4 traffic, unless it is a resource of its own."""
    client, separate = client_of(request), request.context.state.store(SeparateRules).ids
    rule = {"IpProtocol": ALL_TRAFFIC, "CidrIp": ANYWHERE}
    found = [each for each in _matching_rule_ids(client, group_id, rule, egress=True) if each not in separate]
    if found:
        client.revoke_security_group_egress(GroupId=group_id, SecurityGroupRuleIds=found)


@handles("AWS::EC2::SecurityGroup")
class SecurityGroup(ResourceHandler):
    """A security group with its inline rules. `Ref` is its id.

    EC2 gives every new group of a VPC an egress rule to 0.0.0.0/0. CloudFormation removes it if the template states any
    `SecurityGroupEgress`, and does not add it again: "After the security group is created, if you remove all egress
    rules that you added, we do not add egress rules, so no outbound traffic is allowed" (template reference of the
    type).
    """

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = client_of(request), request.properties
        vpc_id = properties.get("VpcId")
        # moto creates a group in a VPC that does not exist
        if vpc_id and not client.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["Vpcs"]:
            raise refusal("InvalidVpcID.NotFound", f"The vpc ID '{vpc_id}' does not exist", "CreateSecurityGroup")
        group_id = call(
            client,
            "create_security_group",
            take(properties, "VpcId", Description="GroupDescription")
            | {"GroupName": properties.get("GroupName") or request.generated_name(max_length=255)}
            | tag_specifications(request, "security-group"),
        )["GroupId"]
        egress = as_list(properties.get("SecurityGroupEgress"))
        with undone_by(lambda: client.delete_security_group(GroupId=group_id)):
            if egress:
                _revoke_all_traffic_egress(request, group_id)
                self._authorize(client, "egress", group_id, egress)
            self._authorize(client, "ingress", group_id, as_list(properties.get("SecurityGroupIngress")))
        return self._result(request, group_id)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, group_id, previous = client_of(request), request.existing_id, request.previous or {}
        for direction, name in (("ingress", "SecurityGroupIngress"), ("egress", "SecurityGroupEgress")):
            before, after = as_list(previous.get(name)), as_list(request.properties.get(name))
            if direction == "egress" and after and not before:
                _revoke_all_traffic_egress(request, group_id)
            self._revoke(client, direction, group_id, [rule for rule in before if rule not in after])
            self._authorize(client, direction, group_id, [rule for rule in after if rule not in before])
        retag_by_ec2(request)
        return self._result(request, group_id)

    def delete(self, request: ResourceRequest) -> None:
        client, group_id = client_of(request), request.existing_id
        with ignoring("InvalidGroup.NotFound"):
            client.delete_security_group(GroupId=group_id)

    @staticmethod
    def _authorize(client: Any, direction: str, group_id: str, rules: list[dict[str, Any]]) -> None:
        for rule in rules:
            call(
                client,
                f"authorize_security_group_{direction}",
                {"GroupId": group_id, "IpPermissions": [_permission(rule)]},
            )

    @staticmethod
    def _revoke(client: Any, direction: str, group_id: str, rules: list[dict[str, Any]]) -> None:
        for rule in rules:
            ids = _matching_rule_ids(client, group_id, rule, egress=direction == "egress")
            if ids:
                getattr(client, f"revoke_security_group_{direction}")(GroupId=group_id, SecurityGroupRuleIds=ids)

    @staticmethod
    def _result(request: ResourceRequest, group_id: str) -> ResourceResult:
        group = client_of(request).describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
        return ResourceResult(group_id, {"Id": group_id, "GroupId": group_id, "VpcId": group.get("VpcId", "")})


class _SecurityGroupRule(ResourceHandler):
    """A rule of its own. `Ref` is the rule's id."""

    direction: str

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._refuse_duplicate(request)
        answer = call(
            client_of(request),
            f"authorize_security_group_{self.direction}",
            take(request.properties, "GroupId", "GroupName") | {"IpPermissions": [_permission(request.properties)]},
        )
        return self._result(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Only the description can change; moto's own operation does not find a rule that names a group."""
        context = request.context
        with moto_state("ec2", context.account, context.region) as backend:
            group = backend.get_security_group_from_id(request.properties["GroupId"])
            rule = group.get_rule(request.existing_id) if group else None
            if rule is None:
                raise HandlerError("NotFound", f"The security group rule ID '{request.existing_id}' does not exist")
            peer = rule.source_group or rule.ip_range
            peer["Description"] = request.properties.get("Description", "")
        return self._result(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidPermission.NotFound", "InvalidGroup.NotFound", "InvalidSecurityGroupRuleId.NotFound"):
            call(
                client_of(request),
                f"revoke_security_group_{self.direction}",
                take(request.properties, "GroupId", "GroupName") | {"SecurityGroupRuleIds": [request.existing_id]},
            )

    def _refuse_duplicate(self, request: ResourceRequest) -> None:
        """A group has each rule once; moto minds that of some rules only."""
        rule, group_id = request.properties, request.properties.get("GroupId")
        egress = self.direction == "egress"
        if group_id and _matching_rule_ids(client_of(request), group_id, rule, egress=egress):
            message = f'the specified rule "{_peer(rule)}" already exists'
            raise refusal("InvalidPermission.Duplicate", message, f"AuthorizeSecurityGroup{self.direction.title()}")

    @staticmethod
    def _result(rule_id: str) -> ResourceResult:
        return ResourceResult(rule_id, {"Id": rule_id})


@handles("AWS::EC2::SecurityGroupIngress")
class SecurityGroupIngress(_SecurityGroupRule):
    """An ingress rule of its own."""

    direction = "ingress"


@handles("AWS::EC2::SecurityGroupEgress")
class SecurityGroupEgress(_SecurityGroupRule):
    """An egress rule of its own.

    Before it is created, the rule of the group that allows all IPv4 traffic is removed: EC2's default one, or one that
    the group states. "Before adding a new rule it will first remove any allow all rules", because "it doesn't
    distinguish between the default rule and user created rules" (aws/aws-cdk issue 22140, a maintainer; issues 987,
    3355 and 14657; the type's create handler has ec2:RevokeSecurityGroupEgress). Nothing adds it again: the delete
    handler lacks ec2:AuthorizeSecurityGroupEgress. A rule that is a resource of its own remains: AWS's setup for
    HyperPod has one to the group and one to 0.0.0.0/0, in no order (aws/sagemaker-hyperpod-cluster-setup,
    security-group-template.yaml). UNSURE: in 2018 such a rule, with a description, was removed by a later one (issue
    987).
    """

    direction = "egress"

    def create(self, request: ResourceRequest) -> ResourceResult:
        separate, group_id = request.context.state.store(SeparateRules), request.properties.get("GroupId")
        # a stack creates several at once: none may take another one that is not noted yet for a rule of the group
        with separate.lock:
            if group_id:
                _revoke_all_traffic_egress(request, group_id)
            made = super().create(request)
            separate.ids.add(made.physical_id)
        return made
