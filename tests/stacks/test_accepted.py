"""What `validate` accepts also synthesizes: the rules of the file and those of the constructs are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from hyperpod_cdk.catalog import instance_types, kubernetes, regions
from hyperpod_cdk.config import Environment, EnvironmentFileError, load_environment
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.template_checks import check_templates
from tests.support.assembly import synthesize_unchecked

ACCOUNT = "111122223333"
ROLES = [f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("a", "a-b", "path/a", "ab")]
NAMES = ["a", "a-b", "ab", "a-b-c", "default", "system"]
PATHS = ["/a/b", "/a-b", "/a%2Db", "/ab", "/a b", "/é"]
TYPES = [
    "ml.m5.2xlarge",
    "ml.c6i.2xlarge",
    "ml.g5.12xlarge",
    "ml.g6e.12xlarge",
    "ml.p4d.24xlarge",
    "ml.p5.48xlarge",
    "ml.p5en.48xlarge",
    "ml.trn2.48xlarge",
]
STATED = {
    "ml.p9.48xlarge": {"vcpu": 192, "memory_gib": 4096, "accelerator_kind": "nvidia-r100", "accelerator_count": 8},
    # against the catalog's own row: two threads, no accelerators to speak of
    "ml.trn1.32xlarge": {"vcpu": 128, "memory_gib": 512, "threads_per_core": 2},
    "ml.m7i.2xlarge": {"vcpu": 8, "memory_gib": 32, "accelerator_kind": "nvidia-x", "accelerator_count": 1},
}
ADDONS = [
    "vpc-cni",
    "coredns",
    "aws-fsx-csi-driver",
    "cert-manager",
    "amazon-sagemaker-hyperpod-training-operator",
    "amazon-sagemaker-hyperpod-taskgovernance",
]


def some(values: Sequence[Any], *, least: int = 0, most: int = 3) -> st.SearchStrategy[list[Any]]:
    """A few different values of a list."""
    return st.lists(st.sampled_from(values), min_size=least, max_size=most, unique=True)


def often(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value, or the key left out."""
    return st.one_of(st.none(), strategy)


@st.composite
def groups(draw: st.DrawFn, name: str, zones: Sequence[str], region: str) -> dict[str, Any]:
    """One instance group, mostly right by itself."""
    types = draw(some([*TYPES, *STATED], least=1, most=2))
    plan = len(types) == 1 and draw(st.booleans())
    row = instance_types.get(types[0])
    plan = plan and row is not None and row.training_plan_supported
    rows = [instance_types.get(each) for each in types if each not in STATED]
    able = rows and all(each is not None and each.deep_health_check for each in rows)
    checks = draw(some(["instance_stress", "instance_connectivity"], most=2)) if able else []
    count = draw(st.integers(0, 4))
    return {
        "name": name,
        **({"instance_type": types[0]} if len(types) == 1 else {"instance_types": types}),
        "count": count,
        "min_count": draw(often(st.integers(0, count))),
        "availability_zone_id": draw(st.sampled_from(zones)),
        "capacity": "training_plan" if plan else draw(st.sampled_from(["on_demand", "on_demand", "spot", None])),
        "training_plan_arn": f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-plan/p" if plan else None,
        "deep_health_checks": checks,
        "threads_per_core": draw(st.sampled_from([None, None, 1, 2])),
        "labels": draw(st.dictionaries(st.sampled_from(["team", "example.com/x"]), st.sampled_from(["b", "a"]))),
        "taints": []
        if checks
        else [{"key": key, "effect": "NoSchedule"} for key in draw(some(["dedicated", "nvidia.com/gpu"]))],
        "image": {"ami_id": draw(st.sampled_from([None, "ami-0123456789abcdef0"]))},
        "patching": draw(
            st.sampled_from(
                [
                    None,
                    {"strategy": "when_all_idle"},
                    {"schedule": "cron(0 3 ? * SUN *)"},
                    {"schedule": "cron(0 3 ? * SUN *)", "max_batch": {"percent": 10}, "wait_seconds": 60},
                    {"schedule": "cron(0 3 ? * SUN *)", "rollback_alarms": ["faults"]},
                ]
            )
        ),
        "on_create": draw(st.sampled_from(["on_create.sh", "on_create_noop.sh"])),
    }


def ssd(*, efa: bool = False) -> dict[str, Any]:
    """A persistent file system of the smallest size."""
    return {"capacity_gib": 38400 if efa else 1200, "throughput_mbps_per_tib": 125, "efa": efa, "metadata_iops": 1500}


SCRATCH = {"deployment_type": "scratch_2", "capacity_gib": 2400, "log_level": "errors"}
TIERING = {
    "storage_type": "intelligent_tiering",
    "throughput_capacity_mbps": 8000,
    "read_cache": {"sizing": "provisioned", "size_gib": 64},
    "backups": {"retention_days": 90, "start_time": "00:00"},
}


@st.composite
def file_systems(draw: st.DrawFn, name: str, zones: Sequence[str], namespaces: Sequence[str]) -> dict[str, Any]:
    """One file system with links and a claim."""
    return {
        "name": name,
        "availability_zone_id": draw(st.sampled_from(zones)),
        **draw(st.sampled_from([ssd(), ssd(efa=True), SCRATCH, TIERING])),
        "compression": draw(st.sampled_from(["lz4", "none"])),
        "maintenance_window": draw(st.sampled_from([None, "1:00:00", "7:23:59"])),
        "data_repositories": [
            {"path": path, "s3_uri": f"s3://bucket/{index}"} for index, path in enumerate(draw(some(PATHS, most=6)))
        ],
        "claim": draw(often(st.builds(lambda spaces: {"namespaces": spaces}, some(namespaces, least=1)))),
    }


@st.composite
def environments(draw: st.DrawFn) -> dict[str, Any]:
    """A whole file, mostly right; the loader decides."""
    region = draw(st.sampled_from(["us-east-1", "us-west-2", "eu-central-1", "ap-southeast-3"]))
    zones = [
        zone for zone in regions.known_az_ids(region) if zone not in regions.eks_control_plane_unsupported_az_ids()
    ]
    zones = draw(st.permutations(zones))[: draw(st.integers(2, 4))]
    names = draw(some(NAMES, least=1))
    members = [draw(groups(name, zones, region)) for name in names]
    present = sorted({each.get("instance_type") or each["instance_types"][0] for each in members})
    teams = draw(some(NAMES))
    namespaces = ["default", "notebooks", *(f"hyperpod-ns-{team}" for team in teams)]
    return {
        "name": draw(st.sampled_from(["a", "prod", "a-b-c-d-e-f-g-h1"])),
        "account": ACCOUNT,
        "region": region,
        "tags": draw(
            st.dictionaries(st.sampled_from(["Name", "a b", "é:/=+-@", "x.y_z"]), st.sampled_from(["v", "v w"]))
        ),
        "permissions_boundary": draw(st.sampled_from([None, "Boundary", f"arn:aws:iam::{ACCOUNT}:policy/p/Boundary"])),
        "deletion_protection": draw(st.booleans()),
        "network": {
            "vpc_cidr": draw(st.sampled_from(["10.192.0.0/16", "172.16.0.0/24", "100.64.0.0/20", "192.168.0.0/16"])),
            "availability_zones": dict.fromkeys(zones),
            "nat_gateways": draw(st.integers(1, 2)),
        },
        "eks": {
            "kubernetes_version": draw(st.sampled_from(kubernetes.hyperpod_versions())),
            "endpoint_access": draw(st.sampled_from(["private", "public_and_private"])),
            "admin_role_arns": draw(some(ROLES[:2], most=1)),
            "addon_versions": dict.fromkeys(draw(some(ADDONS, most=1)), "v99.1.0-eksbuild.1"),
        },
        "hyperpod": {
            "cluster_name": draw(often(st.sampled_from(["A-1", "c" * 63]))),
            "node_recovery": draw(st.sampled_from(["automatic", "none"])),
            "provisioning": draw(st.sampled_from([*["continuous"] * 4, "all_or_nothing"])),
            "tiered_checkpointing": draw(often(st.just({"memory_percent": 20}))),
            "instance_groups": members,
        },
        "storage": {"lustre": [draw(file_systems(name, zones, namespaces)) for name in draw(some(NAMES, most=2))]},
        "operators": {"training": {"enabled": draw(st.booleans())}},
        "task_governance": None
        if not teams
        else {
            "ordering": draw(st.sampled_from(["priority", "first_come_first_served"])),
            "teams": [
                {
                    "name": team,
                    "quota": [{"instance_type": present[0], "count": 1}],
                    "sharing": {"strategy": draw(st.sampled_from(["lend_and_borrow", "lend", "dont_lend"]))},
                    "member_role_arns": draw(some(ROLES[2:])),
                    "access": draw(st.sampled_from(["access_policies", "rbac"])),
                    "default_queue": draw(st.booleans()),
                    "active": draw(st.booleans()),
                }
                for team in teams
            ],
        },
        "instance_types": STATED,
    }


def without_nothing(value: Any) -> Any:
    """Leave out keys without a value, save those of zones."""
    if isinstance(value, dict):
        return {
            key: without_nothing(each) for key, each in value.items() if each is not None or str(key)[-4:-1] == "-az"
        }
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


def accepted(file: Mapping[str, Any]) -> Environment | None:
    """Give the environment of a file, or None for one that is refused."""
    try:
        return load_environment(
            Path("environments/x.yaml"), text=yaml.safe_dump(file, allow_unicode=True), today=kubernetes.AS_OF
        ).environment
    except EnvironmentFileError:
        return None


# without shrinking, which would synthesize for minutes; the file that fails is printed as it is
@settings(
    max_examples=10,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(file=environments())
def test_what_is_accepted_synthesizes(file: dict[str, Any], project: Path) -> None:
    environment = accepted(without_nothing(file))
    assume(environment is not None)
    assert environment is not None
    synthesized = synthesize_unchecked(environment, project=project)
    files = synthesized.template_files.values()
    errors = [each for each in check_templates(files, region=environment.region) if each.severity is Severity.ERROR]
    assert errors == []
    installed = {
        synthesized.resource(node)["Properties"]["AddonName"]: synthesized.resource(node)["Properties"]
        for node in synthesized.of_type("AWS::EKS::Addon")
    }
    pinned = environment.eks.addon_versions
    assert {name: installed[name].get("AddonVersion") for name in pinned} == pinned
