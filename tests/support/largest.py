"""The largest valid environment: as much of everything as AWS and CloudFormation allow."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.catalog import hyperpod, regions

REGION = "us-east-1"
ZONES = [zone for zone in regions.known_az_ids(REGION) if zone not in regions.eks_control_plane_unsupported_az_ids()]
GROUPS = hyperpod.INSTANCE_GROUPS.maximum or 0
TEAMS = 50
FILE_SYSTEMS = 10
VOLUMES = 10


def largest_environment() -> dict[str, Any]:
    """Return its file: every zone, the largest number of groups with all their labels, and everything that they use."""
    labels = {f"label-{label:02}": f"value-{label:02}" for label in range(hyperpod.LABELS.maximum or 0)}
    groups: list[dict[str, Any]] = [
        {
            "name": f"group-{index:03}",
            "instance_type": "ml.m5.2xlarge" if index % 2 else "ml.g5.12xlarge",
            "count": 8,
            "availability_zone_id": ZONES[index % len(ZONES)],
            "capacity": "on_demand",
            "labels": dict(labels),
        }
        for index in range(GROUPS)
    ]
    teams = [
        {
            "name": f"team-{index:02}",
            "quota": [{"instance_type": "ml.g5.12xlarge", "count": 4}],
            "member_role_arns": [f"arn:aws:iam::111122223333:role/team-{index:02}"],
            "default_queue": True,
        }
        for index in range(TEAMS)
    ]
    return {
        "name": "largest",
        "account": "111122223333",
        "region": REGION,
        "network": {"availability_zones": dict.fromkeys(ZONES), "nat_gateways": len(ZONES)},
        "encryption": {"eks_secrets": "create", "node_volumes": "create", "file_systems": "create", "logs": "create"},
        "eks": {"oidc_provider": True},
        "hyperpod": {"instance_groups": groups},
        "storage": {
            "lustre": [
                {
                    "name": f"fs-{index:02}",
                    "availability_zone_id": ZONES[index % len(ZONES)],
                    "capacity_gib": 1200,
                    "data_repositories": [
                        {"path": f"/data-{each}", "s3_uri": f"s3://data-{index:02}/{each}"} for each in range(8)
                    ],
                    "claim": {"namespaces": [f"hyperpod-ns-team-{team:02}" for team in (index, index + 10)]},
                }
                for index in range(FILE_SYSTEMS)
            ],
            "s3": [
                {
                    "name": f"volume-{index:02}",
                    "bucket": f"volume-{index:02}",
                    "claim": {"namespaces": [f"hyperpod-ns-team-{index:02}"]},
                }
                for index in range(VOLUMES)
            ],
        },
        "operators": {
            "training": {"enabled": True},
            "inference": {"enabled": True},
            "observability": {"enabled": True},
            "spaces": {"enabled": True},
        },
        "task_governance": {"teams": teams},
    }
