"""The interface endpoints of a closed network: AWS's services under their usual names, inside the VPC."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import CfnTag, Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, DependencyGroup, IDependable

from hyperpod_cdk.catalog import network as rules
from hyperpod_cdk.catalog import tags
from hyperpod_cdk.catalog.rules import repeated_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.stack_arns import HERE, id_of
from hyperpod_cdk.config import network as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for
from hyperpod_cdk.network.vpc import check_zone_ids

_HTTPS = 443
_WORD = re.compile(r"[A-Za-z0-9]+")


@judged(known=("services",))
class InterfaceEndpoints(Construct):
    """An interface endpoint for each of ``services`` with an interface in each of ``subnet_ids``, and their group.

    ``services`` are the last parts of endpoint names (``ecr.api``); by default those that HyperPod nodes and the
    kubectl function call, without features. ``subnet_ids`` maps AZ IDs to subnets: AWS accepts one for each zone. The
    services' usual names resolve to the endpoints, for which the VPC needs DNS resolution and DNS hostnames.

    HTTPS is allowed from ``clients``, by the groups' own IDs, and from ``client_cidrs``: blocks whose clients have a
    group that does not exist yet, such as the one that EKS creates for CDK's kubectl function. Functions outside the
    VPC, such as those of the quota gate and of task governance, need no endpoint: Lambda gives them internet access,
    and they call only AWS, never the VPC.

    ``vpc`` (ec2.IVpc): the VPC.

    ``subnet_ids`` (Mapping[str, str]): AZ ID -> ID of the subnet that gets the endpoints. Raises ValueError without a
    subnet, for what is not an AZ ID of the stack's region, and for an invalid ID of a subnet.

    ``services`` (Sequence[str]): last parts of the endpoints' names, such as ``ecr.api``, each once. Default: what
    every cluster needs. Raises ValueError for a whole name, a repeated one, and S3, which has a gateway endpoint.

    ``clients`` (Sequence[ec2.ISecurityGroup]): security groups that may call. Default: none. Raises ValueError if
    ``client_cidrs`` is empty too.

    ``client_cidrs`` (Sequence[str]): IPv4 blocks that may call. Default: none. Raises ValueError for text that is not
    an IPv4 block.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet_ids: Mapping[str, str],
        services: Sequence[str] | None = None,
        clients: Sequence[ec2.ISecurityGroup] = (),
        client_cidrs: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        names = list(rules.endpoint_services() if services is None else services)
        _check(names, subnet_ids, clients, client_cidrs, region=Stack.of(self).region)
        name = [CfnTag(key="Name", value=tags.of_path(self.node.path))]
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=id_of(vpc, "vpc_id"),
            group_description="Interface endpoints of AWS services, HTTPS from the VPC",
            security_group_ingress=[
                *(_https(source_security_group_id=id_of(client, "security_group_id")) for client in clients),
                *(_https(cidr_ip=cidr) for cidr in client_cidrs),
            ],
            # endpoints answer and never call; without its own rule EC2 would allow all outbound traffic of the group
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="icmp",
                    from_port=252,
                    to_port=86,
                    cidr_ip="255.255.255.255/32",
                    description="A rule that nothing matches",
                )
            ],
            tags=name,
        )
        region = Stack.of(self).region
        endpoints = [
            ec2.CfnVPCEndpoint(
                self,
                _suffix(service),
                vpc_id=id_of(vpc, "vpc_id"),
                service_name=_name(service, region),
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=list(subnet_ids.values()),
                security_group_ids=[group.attr_group_id],
                tags=[CfnTag(key="Name", value=tags.of_path(f"{self.node.path}/{service}"))],
            )
            for service in names
        ]
        self._ready = DependencyGroup(*endpoints)
        self._security_group = ec2.SecurityGroup.from_security_group_id(self, "Imported", group.attr_group_id)

    @property
    def security_group(self) -> ec2.ISecurityGroup:
        """The endpoints' group, for rules of further clients."""
        return self._security_group

    @property
    def ready(self) -> IDependable:
        """What a client of any AWS service must depend on: all endpoints, whose group allows clients."""
        return self._ready


def _https(**source: str) -> ec2.CfnSecurityGroup.IngressProperty:
    return ec2.CfnSecurityGroup.IngressProperty(
        ip_protocol="tcp", from_port=_HTTPS, to_port=_HTTPS, description="HTTPS from inside the VPC", **source
    )


def _suffix(service: str) -> str:
    """Return the service as a construct id: ``ecr.api`` -> ``EcrApi``."""
    return "".join(word.capitalize() for word in _WORD.findall(service))


def _name(service: str, region: str) -> str:
    known = "" if Token.is_unresolved(region) else region
    return f"{rules.endpoint_service_prefix(service, region=known)}.{HERE.region}.{service}"


def _check(
    services: Sequence[str],
    subnet_ids: Mapping[str, str],
    clients: Sequence[ec2.ISecurityGroup],
    client_cidrs: Sequence[str],
    *,
    region: str,
) -> None:
    refuse_all(
        lambda: refuse_for(_problems(services, clients, client_cidrs)),
        lambda: check_zone_ids("subnet_ids", subnet_ids, region=region),
        lambda: (
            refuse_for(["subnet_ids: must hold at least one subnet, got none; add one by its AZ ID"])
            if not subnet_ids
            else refuse(fields.ExistingNetwork, called={"node_subnet_ids": "subnet_ids"}, node_subnet_ids=subnet_ids)
        ),
        lambda: refuse(fields.InterfaceEndpoints, called={"additional": "services"}, additional=services),
    )


def _problems(
    services: Sequence[str],
    clients: Sequence[ec2.ISecurityGroup],
    client_cidrs: Sequence[str],
) -> Iterator[str]:
    for index, cidr in enumerate(client_cidrs):
        if not is_token(cidr) and (problem := rules.block_problem(cidr, key=f"client_cidrs[{index}]")):
            yield f"client_cidrs[{index}]: {in_python(problem)}"
    if not clients and not client_cidrs:
        yield "clients: must name who may call the endpoints, got nobody; add a group or client_cidrs"
    if problem := repeated_problem(services, key="services"):
        yield problem
    if "s3" in services:
        yield f"services[{services.index('s3')}]: {rules.GATEWAY_SERVICE_PROBLEM}"
