"""The line of the environment file that decides what differs: the right one, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.living.model import Difference, Drift, Line, Next
from hyperpod_cdk.living.pages import text
from hyperpod_cdk.review.changes.causes import line_of_property
from hyperpod_cdk.templates.assembly import Resource
from tests.support.tables import row_by_row

TEXT = """\
name: small
account: "111122223333"
region: us-east-1
tags: {cost-center: "42"}
network:
  availability_zones: {use1-az4: {node_cidr: 10.1.0.0/16}, use1-az6: {node_cidr: 10.2.0.0/16}}
eks:
  admin_role_arns: [arn:aws:iam::111122223333:role/admin]
  public_access_cidrs: [13.32.0.0/15]
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
    - name: far
      instance_type: ml.m5.2xlarge
      count: 3
      availability_zone_id: use1-az6
      labels: {use: web}
storage:
  lustre:
    - {name: near, availability_zone_id: use1-az4, capacity_gib: 1200, claim: {namespaces: [default]}}
    - {name: far, availability_zone_id: use1-az6, capacity_gib: 1200, claim: {name: far, namespaces: [default]}}
task_governance:
  ordering: priority
  priority_classes: [{name: inference, weight: 100}, {name: training, weight: 80}]
  idle_compute: fair_share
  teams:
    - name: red
      fair_share_weight: 10
      preemption: lower_priority
      quota:
        - {instance_type: ml.m5.2xlarge, count: 2}
      sharing: {strategy: lend}
"""

CLUSTER, QUOTA, LUSTRE = "AWS::SageMaker::Cluster", "AWS::SageMaker::ComputeQuota", "AWS::FSx::FileSystem"
POLICY, EKS, ROLE = "AWS::SageMaker::ClusterSchedulerConfig", "AWS::EKS::Cluster", "AWS::IAM::Role"
GROUPS = "hyperpod.instance_groups"
ROWS: list[tuple[str, str, str, str, int]] = [
    (CLUSTER, "Cluster", "InstanceGroups[far].InstanceCount", f"{GROUPS}[1].count", 15),
    (CLUSTER, "Cluster", "InstanceGroups[system].InstanceCount", f"{GROUPS}[0].count", 12),
    (CLUSTER, "Cluster", "InstanceGroups[far].KubernetesConfig.Labels.use", f"{GROUPS}[1].labels.use", 17),
    # of what the file leaves out the section
    (CLUSTER, "Cluster", "InstanceGroups[far].KubernetesConfig.Labels.new", f"{GROUPS}[1].labels.new", 17),
    (CLUSTER, "Cluster", "InstanceGroups[far].OnStartDeepHealthChecks", f"{GROUPS}[1].deep_health_checks", 13),
    (CLUSTER, "Cluster", "NodeRecovery", "hyperpod.node_recovery", 10),
    (CLUSTER, "Cluster", "InstanceGroups[far]", f"{GROUPS}[1]", 13),
    (CLUSTER, "Cluster", "Tags[cost-center]", "tags.cost-center", 4),
    (
        QUOTA,
        "TaskGovernance/Quota-red",
        "ComputeQuotaTarget.FairShareWeight",
        "task_governance.teams[0].fair_share_weight",
        28,
    ),
    (
        QUOTA,
        "TaskGovernance/Quota-red",
        "ComputeQuotaConfig.ComputeQuotaResources[ml.m5.2xlarge].Count",
        "task_governance.teams[0].quota[0].count",
        31,
    ),
    (QUOTA, "TaskGovernance/Quota-red", "", "task_governance.teams[0]", 27),
    (
        POLICY,
        "TaskGovernance/Policy",
        "SchedulerConfig.PriorityClasses[training].Weight",
        "task_governance.priority_classes[1].weight",
        24,
    ),
    (LUSTRE, "Lustre-far/FileSystem", "StorageCapacity", "storage.lustre[1].capacity_gib", 21),
    (LUSTRE, "Lustre-near/FileSystem", "LustreConfiguration.DataCompressionType", "storage.lustre[0].compression", 20),
    (EKS, "ControlPlane/Cluster", "ResourcesVpcConfig.PublicAccessCidrs", "eks.public_access_cidrs", 9),
    # nobody knows
    (CLUSTER, "Cluster", "InstanceGroups[extra]", "", 0),
    (CLUSTER, "Cluster", "InstanceGroups[extra].InstanceCount", "", 0),
    (CLUSTER, "Cluster", "Tags[owner]", "", 0),
    (CLUSTER, "Cluster", "", "", 0),
    (QUOTA, "TaskGovernance/Quota-gone", "ComputeQuotaTarget.FairShareWeight", "", 0),
    (EKS, "ControlPlane/Cluster", "AccessEntries[arn:aws:iam::111122223333:role/dana]", "", 0),
    (ROLE, "NodeRole", "Inline[by-hand]", "", 0),
    (ROLE, "NodeRole", "Tags[cost-center]", "tags.cost-center", 4),
]


@row_by_row("kind, name, path, field, line", ROWS)
def test_a_line(kind: str, name: str, path: str, field: str, line: int) -> None:
    environment = load_environment(Path("small.yaml"), text=TEXT)
    path_of_construct = f"small/hyperpod/{name}/Resource"
    resource = Resource(stack="small-hyperpod", logical_id="A", type=kind, body={}, path=path_of_construct)
    found = line_of_property(resource, path, environment)
    assert ("", 0) if found is None else (found.path, found.line) == (field, line)
    assert (found is None) is (line == 0)


@pytest.mark.parametrize("is_known", [True, False])
def test_the_line_is_below_the_values(*, is_known: bool) -> None:
    line = Line(file="environments/small.yaml", line=15, path=f"{GROUPS}[1].count") if is_known else None
    one = Difference(
        stack="small-hyperpod",
        resource="Cluster",
        type=CLUSTER,
        id="arn",
        path="InstanceGroups[far].InstanceCount",
        deployed="3",
        file="3",
        actual="2",
        next=Next(effect="nothing", sentence="Nothing."),
        line=line,
    )
    found = Drift(environment="small", verdict="1 difference.", passed=False, differences=(one,))
    assert text(found).splitlines()[6:] == [
        "    AWS has   2",
        *(["    line      environments/small.yaml:15 hyperpod.instance_groups[1].count"] if is_known else []),
        "    next      Nothing.",
    ]
