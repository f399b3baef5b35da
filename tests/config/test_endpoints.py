"""The services that a closed network reaches, and where their endpoints are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.config.addresses import address_budgets
from hyperpod_cdk.config.endpoints import interface_endpoints

ALWAYS = (
    "ec2",
    "ec2messages",
    "ecr.api",
    "ecr.dkr",
    "eks",
    "eks-auth",
    "lambda",
    "logs",
    "monitoring",
    "sagemaker.api",
    "ssm",
    "ssmmessages",
    "sts",
)
CLOSED = {"  nat_gateways: 1\n": "  egress: closed\n"}
NO_CLAIM = {"      claim: {namespaces: [hyperpod-ns-research], name: scratch}\n": ""}
NO_STORAGE = {**CLOSED, **NO_CLAIM}

Changed = Callable[..., str]
Load = Callable[..., LoadedEnvironment]


@pytest.mark.parametrize(
    ("change", "more"),
    [
        (NO_STORAGE, ()),
        (CLOSED, ("fsx",)),
        (
            {**NO_STORAGE, "  training: {enabled: true}\n": "  observability: {enabled: true}\n"},
            ("aps-workspaces",),
        ),
        (
            {
                **NO_STORAGE,
                "  node_recovery: automatic\n": (
                    "  node_recovery: automatic\n"
                    "  restricted_dependencies: installed\n"
                    "  restricted_instance_groups:\n"
                    "    - name: nova\n"
                    "      instance_type: ml.p5.48xlarge\n"
                    "      count: 2\n"
                    "      availability_zone_id: use1-az5\n"
                    "      capacity: on_demand\n"
                    "      lustre: {capacity_gib: 9600, throughput_mbps_per_tib: 250}\n"
                    "      reward_functions: true\n"
                ),
            },
            ("sqs",),
        ),
        (
            {**NO_CLAIM, "  nat_gateways: 1\n": "  egress: closed\n  endpoints: {additional: [kms, secretsmanager]}\n"},
            ("kms", "secretsmanager"),
        ),
    ],
    ids=["nothing", "a claim", "observability", "reward functions", "additional"],
)
def test_features_bring_their_endpoints(
    changed: Changed, load: Load, change: dict[str, str], more: tuple[str, ...]
) -> None:
    environment = load(changed(change)).environment
    assert interface_endpoints(environment) == tuple(sorted({*ALWAYS, *more}))


def test_a_network_with_nat_gateways_has_none(changed: Changed, load: Load) -> None:
    environment = load(changed({})).environment
    assert interface_endpoints(environment) == ()
    assert environment.network.endpoint_zones() == ()
    assert environment.network.nat_gateway_count == 1


def test_addresses_of_endpoints_are_counted_where_they_stand(changed: Changed, load: Load) -> None:
    zone = {"    use1-az4: {node_cidr: 10.2.0.0/16}\n": "    use1-az4: {node_cidr: 10.2.0.0/16}\n    use1-az6:\n"}
    environment = load(changed({**NO_STORAGE, **zone})).environment
    shown = [
        (budget.role, budget.availability_zone_id, budget.cidr, budget.needed)
        for budget in address_budgets(environment)
        if budget.role != "nodes"
    ]
    assert shown == [
        ("control plane", "use1-az5", "10.192.0.0/24", 6 + 1 + 13),
        ("control plane", "use1-az4", "10.192.1.0/24", 6 + 1 + 13),
        ("endpoints", "use1-az6", "10.192.2.0/24", 13),
    ]


def test_zones_without_endpoints_cost_nothing(changed: Changed, load: Load) -> None:
    zones = {"  nat_gateways: 1\n": "  egress: closed\n  endpoints: {zones: [use1-az4]}\n"}
    environment = load(changed({**NO_CLAIM, **zones})).environment
    assert environment.network.endpoint_zones() == ("use1-az4",)
    needed = {each.availability_zone_id: each.needed for each in address_budgets(environment) if each.role != "nodes"}
    assert needed == {"use1-az5": 7, "use1-az4": 20}
