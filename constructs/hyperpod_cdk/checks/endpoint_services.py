"""The interface endpoints of a closed network: whether AWS has each service in their zones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hyperpod_cdk.checks.answers import Aws
from hyperpod_cdk.checks.model import Case, Found, check, error, unanswered
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.endpoints import interface_endpoints, needed_endpoints


@check(
    area="endpoints",
    asks=("endpoint_services",),
    inputs="network.egress, network.endpoints and the zones of network.availability_zones.",
    passes="AWS has an interface endpoint for every service that the closed network uses, in every zone where one is"
    " created. An existing network has its own, which other checks cover.",
    fails="A service has no interface endpoint in the region, or not in a zone: CloudFormation then fails in the middle"
    " of the foundation stack.",
    skips="AWS gives no answer about the services; those that it showed are still compared.",
    by_hand="aws ec2 describe-vpc-endpoint-services --filters Name=service-type,Values=Interface"
    " --query 'ServiceDetails[].[ServiceName,AvailabilityZoneIds]'",
)
def endpoint_services_exist_in_their_zones(case: Case, aws: Aws) -> Iterator[Found]:
    """Not every zone has every service, and no table of AWS says which."""
    environment = case.environment
    zones = environment.network.endpoint_zones()
    if not zones:
        return
    there = aws.endpoint_services(interface_endpoints(environment))
    for why in dict.fromkeys(there.unread.values()):
        yield unanswered(why, "network.egress")
    services = [service for service in interface_endpoints(environment) if service in there.read]
    for service in services:
        if not there[service]:
            yield error(
                _path(environment, service),
                f"needs an interface endpoint of {service}, which {environment.region} does not have;"
                f" {_without(environment, service)}",
            )
    for zone in zones:
        lacking = [service for service in services if there[service] and zone not in there[service]]
        if lacking:
            yield error(
                f"network.availability_zones.{zone}",
                f"needs interface endpoints in {zone}, which AWS does not have there for {', '.join(lacking)};"
                f" {_elsewhere(zones, zone)}",
            )


def _path(environment: Environment, service: str) -> str:
    section = environment.network.endpoints
    if section is not None and service in section.additional:
        return f"network.endpoints.additional[{section.additional.index(service)}]"
    return "network.egress"


def _without(environment: Environment, service: str) -> str:
    if service in needed_endpoints(environment):
        return "set egress: nat, or use another region"
    return "correct the name or remove it"


def _elsewhere(zones: Sequence[str], zone: str) -> str:
    others = [each for each in zones if each != zone]
    if not others:
        return "name another zone under network.endpoints.zones"
    return f"set network.endpoints.zones: [{', '.join(others)}], which the nodes of {zone} then use"
