"""A stranger's app: every public construct, with CDK's own types and nothing else.

mypy --strict and pyright read this file, so that what a construct gives is what the next one takes, without a cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

import hyperpod_cdk as hp

ZONES = {"use1-az4": "10.1.0.0/18", "use1-az5": "10.1.64.0/18"}


def own_type() -> hp.InstanceType:
    """A type that the catalog does not have, with its numbers."""
    return hp.InstanceType(
        name="ml.p9.48xlarge",
        ec2_name="p9.48xlarge",
        family="p9",
        architecture="x86_64",
        vcpu=192,
        memory_gib=2048,
        network_cards=1,
        accelerator_kind="nvidia-z1",
        accelerator_count=8,
        ips_per_node=50,
        default_threads_per_core=2,
    )


def vpcs() -> hp.Requirement:
    """What the gate compares."""
    return hp.Requirement(
        key="vpcs", service="vpc", name="VPCs per Region", code="L-F678F1CE", default=5, needed=1, usage="vpcs"
    )


def quota() -> list[hp.QuotaRow]:
    """What a team is guaranteed."""
    slices = hp.AcceleratorPartition(profile="mig-3g.20gb", count=2)
    return [
        hp.QuotaRow(instance_type="ml.g5.12xlarge", count=1),
        hp.QuotaRow(instance_type="ml.p4d.24xlarge", accelerator_partition=slices),
    ]


class Cluster(cdk.Stack):
    """A whole cluster of this library's constructs."""

    def __init__(self, scope: cdk.App, construct_id: str) -> None:
        super().__init__(scope, construct_id, env=cdk.Environment(account="111122223333", region="us-east-1"))
        self.gate: hp.QuotaGate = hp.QuotaGate(
            self, "Gate", requirements=[vpcs()], own=hp.Own(stacks=(self.stack_name,), eks_cluster="theirs")
        )
        self.network = hp.Network(self, "Network", vpc_cidr="10.0.0.0/16", availability_zones=ZONES)
        vpc: ec2.IVpc = self.network.vpc
        self.efa = hp.EfaSecurityGroup(self, "Efa", vpc=vpc)
        group: ec2.ISecurityGroup = self.efa.security_group
        self.endpoints = hp.InterfaceEndpoints(
            self,
            "Endpoints",
            vpc=vpc,
            subnet_ids={zone: subnet.subnet_id for zone, subnet in self.network.node_subnets.items()},
            services=["sts"],
            clients=[group],
        )
        self.key = hp.EncryptionKey(self, "Key", alias="alias/theirs", description="data of theirs")
        key: kms.IKey = self.key.key
        self.control_plane = hp.ControlPlane(
            self,
            "ControlPlane",
            vpc=vpc,
            subnets=self.network.control_plane_subnets,
            eks_cluster_name="theirs",
            security_group=group,
            secrets_key=key,
            oidc_provider=True,
        )
        cluster: eks.ICluster = self.control_plane.cluster
        self.chart = hp.HyperPodDependencies(
            self,
            "Chart",
            cluster=cluster,
            instance_types=["ml.m5.2xlarge", own_type()],
            chart=hp.HyperPodChart.placeholder(),
        )
        self.scripts = hp.LifecycleScripts(self, "Scripts", encryption_key=key)
        bucket: s3.IBucket = self.scripts.bucket
        self.nodes_role = hp.NodeExecutionRole(
            self,
            "NodesRole",
            bucket=bucket,
            eks_cluster_arn=cluster.cluster_arn,
            vpc=vpc,
            subnets=list(self.network.node_subnets.values()),
            security_groups=[group],
            volume_key=key,
        )
        role: iam.IRole = self.nodes_role.role
        self.key.allow_node_volumes(role.role_arn)
        self.autoscaling = hp.KarpenterAutoscaling(self, "Autoscaling", kms_key_arns=[key.key_arn])
        at_once: hp.BatchLike = hp.Batch(instances=1)
        patching: hp.PatchingLike = hp.Patching(strategy="when_idle", max_batch=at_once)
        self.taints: Sequence[hp.TaintLike] = [hp.Taint(key="theirs", effect="NoSchedule")]
        self.hyperpod = hp.HyperPodCluster(
            self,
            "HyperPod",
            cluster_name="theirs",
            eks_cluster_arn=cluster.cluster_arn,
            vpc_subnets=list(self.network.node_subnets.values()),
            security_groups=[group],
            instance_groups=[
                self.group("system", "ml.m5.2xlarge", 2, patching=patching),
                self.group("burst", "ml.g5.12xlarge", 0, taints=self.taints),
            ],
            execution_role=self.nodes_role,
            lifecycle=self.scripts,
            autoscaling=self.autoscaling,
        )
        self.hyperpod.add_dependency(self.chart, self.network.ready, self.efa.rules, self.control_plane.addons)
        self.notifications = hp.Notifications(
            self,
            "Notifications",
            cluster_name=self.hyperpod.cluster_name,
            cluster_arn=self.hyperpod.cluster_arn,
            emails=["on-call@example.com"],
            slack=hp.SlackChannel(workspace_id="T0123ABCD", channel_id="C0123ABCD"),
            instance_groups=["system"],
        )
        topic_arn: str = self.notifications.topic_arn
        self.events = hp.NodeEvents(
            self,
            "Events",
            cluster_name=self.hyperpod.cluster_name,
            cluster_arn=self.hyperpod.cluster_arn,
            alarm_actions=[topic_arn],
        )
        self.waiter = hp.NodeWaiter(self, "Waiter")
        self.ready = hp.NodesReady(
            self,
            "Ready",
            cluster_arn=self.hyperpod.cluster_arn,
            groups=[hp.AwaitedGroup(name="system", count=2)],
            waiter=self.waiter,
        )
        self.function = hp.DeletionProtectionFunction(self, "Function", stack_names=[self.stack_name])
        self.protection = hp.DeletionProtection(self, "Protection", function=self.function)
        self.on_nodes(cluster)
        self.storage(cluster, key)

    def group(
        self,
        name: str,
        instance_type: str,
        count: int,
        *,
        taints: Sequence[hp.TaintLike] = (),
        patching: hp.PatchingLike | None = None,
    ) -> hp.InstanceGroup:
        """A group in the first zone."""
        return hp.InstanceGroup(
            name=name,
            instance_type=instance_type,
            count=count,
            subnet=self.network.node_subnets["use1-az4"],
            security_groups=[self.efa.security_group],
            capacity=None if instance_type.startswith("ml.m5") else "on_demand",
            taints=taints,
            patching=patching,
        )

    def on_nodes(self, cluster: eks.ICluster) -> None:
        """What runs on nodes."""
        name, arn = cluster.cluster_name, self.hyperpod.cluster_arn
        self.dns = hp.CoreDns(self, "Dns", eks_cluster_name=name)
        self.metrics: hp.NodeAddon = hp.NodeAddon(
            self, "Metrics", eks_cluster_name=name, addon_name="metrics-server", configuration_values={"replicas": 2}
        )
        self.ebs = hp.EbsCsiDriver(self, "Ebs", eks_cluster_name=name)
        self.training = hp.TrainingOperator(self, "Training", eks_cluster_name=name)
        self.answers = hp.WebhookReady(
            self,
            "MetricsAnswer",
            cluster=self.control_plane.cluster,
            addon=self.metrics.addon,
            namespace="kube-system",
            deployments=["metrics-server"],
        )
        issuer: hp.OidcProvider | None = self.control_plane.oidc_provider
        if issuer is not None:
            self.inference = hp.InferenceOperator(
                self,
                "Inference",
                eks_cluster_name=name,
                cluster_arn=arn,
                oidc_provider_arn=issuer.arn,
                oidc_issuer=issuer.issuer,
                name="theirs",
                prerequisites=[self.training.cert_manager],
            )
        self.prometheus = hp.PrometheusWorkspace(self, "Prometheus", alias="theirs")
        self.grafana = hp.GrafanaWorkspace(self, "Grafana", name="theirs")
        self.observability = hp.ObservabilityAddon(
            self,
            "Observability",
            eks_cluster_name=name,
            prometheus_workspace_arn=self.prometheus.arn,
            prometheus_endpoint=self.prometheus.endpoint,
            grafana_workspace_arn=self.grafana.arn,
            grafana_workspace_name=self.grafana.name,
        )
        self.dashboards = hp.GrafanaDashboards(
            self,
            "Dashboards",
            cluster_name="theirs",
            grafana_workspace_arn=self.grafana.arn,
            prometheus_workspace_arn=self.prometheus.arn,
            prometheus_endpoint=self.prometheus.endpoint,
        )
        self.spaces = hp.Spaces(self, "Spaces", eks_cluster_name=name, name="theirs")
        pool: hp.PoolLike = hp.Pool(name="burst", instance_groups=["burst"])
        self.pools = hp.KarpenterPools(self, "Pools", cluster=cluster, pools=[pool], taints={"burst": self.taints})
        self.governance = hp.TaskGovernance(
            self,
            "Governance",
            eks_cluster_name=name,
            cluster_arn=arn,
            name_prefix="theirs",
            teams=[hp.Team(name="research", quota=quota())],
            priority_classes=[hp.PriorityClass(name="urgent", weight=100)],
            native_scheduler_config=True,
            native_compute_quota=True,
            cluster=cluster,
        )
        self.checkpoints = hp.CheckpointAccess(
            self,
            "Checkpoints",
            eks_cluster_name=name,
            namespace="hyperpod-ns-research",
            service_account="trainer",
            buckets=["s3://their-checkpoints/"],
        )
        self.pods = hp.PodRole(
            self,
            "Pods",
            eks_cluster_name=name,
            namespace="theirs",
            service_account="reader",
            description="reads what is theirs",
            managed_policies=["AmazonS3ReadOnlyAccess"],
            reason="reads only",
        )

    def storage(self, cluster: eks.ICluster, key: kms.IKey) -> None:
        """File systems, buckets and their claims."""
        self.lustre = hp.LustreFileSystem(
            self,
            "Lustre",
            vpc=self.network.vpc,
            subnet=self.network.node_subnets["use1-az4"],
            availability_zone_id="use1-az4",
            client_security_group=self.efa.security_group,
            capacity_gib=1200,
            data_repositories=[hp.DataRepository(path="/data", s3_uri="s3://their-data/")],
            kms_key=key,
        )
        self.data = hp.LustreFileSystem(
            self,
            "Data",
            vpc=self.network.vpc,
            subnet=self.network.node_subnets["use1-az4"],
            availability_zone_id="use1-az4",
            client_security_group=self.efa.security_group,
            storage_type="intelligent_tiering",
            throughput_capacity_mbps=4000,
            read_cache=hp.ReadCache(sizing="proportional"),
        )
        self.fsx = hp.FsxCsiDriver(self, "Fsx", eks_cluster_name=cluster.cluster_name)
        self.claims = hp.LustreClaims(
            self,
            "Claims",
            cluster=cluster,
            file_system_id=self.lustre.file_system_id,
            dns_name=self.lustre.dns_name,
            mount_name=self.lustre.mount_name,
            capacity_gib=1200,
            claim_name="scratch",
            namespaces=["theirs"],
        )
        bucket = hp.MountedBucket(bucket="their-data", read_only=True)
        self.s3 = hp.S3CsiDriver(self, "S3", eks_cluster_name=cluster.cluster_name, buckets=[bucket])
        self.mounts = hp.S3Claims(
            self,
            "Mounts",
            cluster=cluster,
            bucket=bucket,
            region=self.region,
            claim_name="data",
            namespaces=["theirs"],
        )


class Existing(cdk.Stack):
    """A cluster for Amazon Nova in somebody's network, on somebody's EKS cluster."""

    def __init__(self, scope: cdk.App, construct_id: str) -> None:
        super().__init__(scope, construct_id, env=cdk.Environment(account="111122223333", region="us-east-1"))
        self.network = hp.ExistingNetwork(
            self,
            "Network",
            vpc_id="vpc-0123456789abcdef0",
            node_subnet_ids={"use1-az5": "subnet-0123456789abcdef0"},
            control_plane_subnet_ids=["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"],
        )
        group = ec2.SecurityGroup.from_security_group_id(self, "Group", "sg-0123456789abcdef0")
        self.control_plane = hp.ExistingControlPlane(
            self,
            "ControlPlane",
            vpc=self.network.vpc,
            subnets=self.network.control_plane_subnets,
            eks_cluster_name="platform",
            kubernetes_version="1.34",
            security_group=group,
        )
        self.chart = hp.HyperPodDependencies(
            self,
            "Chart",
            cluster=self.control_plane.cluster,
            instance_types=["ml.p5.48xlarge"],
            chart=hp.HyperPodChart(directory=Path("charts"), is_placeholder=True),
        )
        self.scripts = hp.LifecycleScripts(self, "Scripts")
        subnets = list(self.network.node_subnets.values())
        self.nodes_role = hp.NodeExecutionRole(
            self,
            "NodesRole",
            bucket=self.scripts.bucket,
            eks_cluster_arn=self.control_plane.cluster.cluster_arn,
            vpc=self.network.vpc,
            subnets=subnets,
            security_groups=[group],
        )
        nova = hp.RestrictedGroup(
            name="nova",
            instance_type="ml.p5.48xlarge",
            count=4,
            subnet=subnets[0],
            security_groups=[group],
            execution_role=hp.RestrictedExecutionRole(self, "NovaRole", node_role=self.nodes_role),
            capacity="on_demand",
        )
        self.hyperpod = hp.HyperPodCluster(
            self,
            "HyperPod",
            cluster_name="nova",
            eks_cluster_arn=self.control_plane.cluster.cluster_arn,
            vpc_subnets=subnets,
            security_groups=[group],
            instance_groups=[],
            execution_role=self.nodes_role,
            lifecycle=self.scripts,
            restricted_groups=[nova],
            restricted_dependencies="installed",
            shared_environment=hp.SharedEnvironment(lustre=hp.ServiceLustre(capacity_gib=1200)),
        )


def build(app: cdk.App) -> list[cdk.Stack]:
    """Both stacks, judged as this library judges templates."""
    cdk.Validations.of(app).add_plugins(hp.TemplateChecks())
    return [Cluster(app, "Theirs"), Existing(app, "Nova")]
