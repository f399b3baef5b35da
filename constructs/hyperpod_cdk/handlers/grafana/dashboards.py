"""The dashboards of a HyperPod cluster, as Grafana's API takes them: one table of panels each.

Names of metrics and labels are those of the observability add-on as AWS's own dashboards query them
(aws/sagemaker-hyperpod-cluster-setup at b920fcf, read 2026-11-23); those of teams are Kueue's (kueue.sigs.k8s.io,
"Prometheus metrics"), those of file systems FSx's (FSx for Lustre user guide, "Amazon FSx for Lustre CloudWatch
metrics"). Standard library only: the function takes this module along.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

PROMETHEUS = "prometheus"
CLOUDWATCH = "cloudwatch"
"""Names and identifiers of the data sources, those that AWS's own dashboards expect."""

PROMETHEUS_TYPE = "grafana-amazonprometheus-datasource"
"""The type that signs requests to Amazon Managed Service for Prometheus, since Amazon Managed Grafana 12."""
CORE_PROMETHEUS_TYPE = "prometheus"
"""The type that signed them before, and does no more since (Amazon Managed Grafana user guide, "Manually adding the
Prometheus data source" and "Connect to an Amazon Managed Service for Prometheus data source", read 2026-11-28)."""

FOLDER = "hyperpod-cdk"
FOLDER_TITLE = "HyperPod"

_CLUSTER = 'cluster_id="$cluster_id"'
_GPUS = 'cluster_id="$cluster_id", Hostname=~"$node"'
_EFA = 'cluster_id="$cluster_id", instance=~"$node.*"'
# node_exporter's instance is the node's address and its port, not its name
_NODES = 'cluster_id="$cluster_id", instance=~"$address:.*"'
_JOB = 'cluster_id="$cluster_id", job_name=~"$job"'
_OPERATOR = 'cluster_id="$cluster_id", jobName=~"$job"'
_ENDPOINT = 'cluster_id="$cluster_id", namespace=~"$namespace", resource_name=~"$endpoint"'
_QUEUE = 'cluster_id="$cluster_id", cluster_queue=~"$queue"'
_BLOCK = "[$__rate_interval]"

_SCHEMA = 39
"""The version of the form of dashboards that Grafana 10.4, the latest that the service makes, writes."""

_COLUMNS = 24
_HEIGHTS = {"stat": 4, "timeseries": 8, "table": 8, "bargauge": 8}


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric of FSx: a line for each value of the dimension ``by``, or one that is their ``SUM`` or ``MAX``."""

    name: str
    statistic: str
    by: str = ""
    over: str = ""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel: ``queries`` maps what a line is called to its PromQL, or to FSx's metric.

    ``shows`` maps what a table has columns of, labels or ``Value``, to their headings.
    """

    title: str
    says: str
    queries: Mapping[str, str | Metric]
    kind: str = "timeseries"
    unit: str = "short"
    columns: int = 12
    most: float | None = None
    shows: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A dashboard: ``pickers`` maps a variable to the query of its values, from Prometheus or from CloudWatch."""

    name: str
    title: str
    says: str
    panels: Sequence[Panel]
    pickers: Mapping[str, str]
    reads: str = PROMETHEUS

    @property
    def uid(self) -> str:
        """The identifier in Grafana and in its addresses."""
        return f"hyperpod-cdk-{self.name}"


_NODE = {"node": f"label_values(kube_node_info{{{_CLUSTER}}}, node)"}
_ADDRESS = {"address": f'label_values(kube_node_info{{{_CLUSTER}, node=~"$node"}}, internal_ip)'}
_FOLLOWING = frozenset(_ADDRESS)
"""Pickers that nobody sees: their values follow from another's."""

DASHBOARDS: tuple[Dashboard, ...] = (
    Dashboard(
        name="nodes",
        title="HyperPod nodes",
        says="Health, accelerators, processors, memory and disks of nodes.",
        pickers=_NODE | _ADDRESS,
        panels=(
            Panel(
                title="Nodes",
                says="Nodes that Kubernetes knows.",
                kind="stat",
                columns=4,
                queries={"nodes": f"count(kube_node_info{{{_CLUSTER}}})"},
            ),
            Panel(
                title="Nodes that take pods",
                says="Nodes whose HyperPod health status is Schedulable.",
                kind="stat",
                columns=4,
                queries={
                    "schedulable": "count(kubelet_node_name{"
                    f'sagemaker_amazonaws_com_node_health_status="Schedulable", {_CLUSTER}}})'
                },
            ),
            Panel(
                title="GPUs",
                says="GPUs that DCGM reports.",
                kind="stat",
                columns=4,
                queries={"GPUs": f"count(DCGM_FI_DEV_GPU_UTIL{{{_GPUS}}})"},
            ),
            Panel(
                title="GPUs in use",
                says="Mean utilization of all GPUs.",
                kind="stat",
                unit="percent",
                columns=4,
                queries={"use": f"avg(DCGM_FI_DEV_GPU_UTIL{{{_GPUS}}})"},
            ),
            Panel(
                title="Hottest GPU",
                says="A GPU slows down where it grows too hot.",
                kind="stat",
                unit="celsius",
                columns=4,
                queries={"hottest": f"max(DCGM_FI_DEV_GPU_TEMP{{{_GPUS}}})"},
            ),
            Panel(
                title="Power of GPUs",
                says="What all GPUs draw together.",
                kind="stat",
                unit="watt",
                columns=4,
                queries={"power": f"sum(DCGM_FI_DEV_POWER_USAGE{{{_GPUS}}})"},
            ),
            Panel(
                title="Health of nodes",
                says="Each node with what HyperPod says of it.",
                kind="table",
                columns=24,
                shows={
                    "node": "Node",
                    "node_kubernetes_io_instance_type": "Instance type",
                    "sagemaker_amazonaws_com_node_health_status": "Health",
                },
                queries={
                    "node": "group by (node, sagemaker_amazonaws_com_node_health_status,"
                    f" node_kubernetes_io_instance_type) (kubelet_node_name{{{_CLUSTER}}})"
                },
            ),
            Panel(
                title="GPU utilization",
                says="By node: one that stands idle beside busy ones waits for them or hangs.",
                unit="percent",
                most=100,
                queries={"{{Hostname}}": f"avg by (Hostname) (DCGM_FI_DEV_GPU_UTIL{{{_GPUS}}})"},
            ),
            Panel(
                title="Tensor cores active",
                says="Share of time in which tensor cores worked, by node.",
                unit="percentunit",
                most=1,
                queries={"{{Hostname}}": f"avg by (Hostname) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{_GPUS}}})"},
            ),
            Panel(
                title="GPU memory used",
                says="Share of the memory of GPUs, by node.",
                unit="percentunit",
                most=1,
                queries={
                    "{{Hostname}}": f"sum by (Hostname) (DCGM_FI_DEV_FB_USED{{{_GPUS}}}) / sum by (Hostname)"
                    f" (DCGM_FI_DEV_FB_USED{{{_GPUS}}} + DCGM_FI_DEV_FB_FREE{{{_GPUS}}})"
                },
            ),
            Panel(
                title="GPU temperature",
                says="The hottest GPU of each node.",
                unit="celsius",
                queries={"{{Hostname}}": f"max by (Hostname) (DCGM_FI_DEV_GPU_TEMP{{{_GPUS}}})"},
            ),
            Panel(
                title="XID errors",
                says="The last XID of each GPU that has one; NVIDIA's documentation says what each number means.",
                kind="table",
                shows={"Hostname": "Node", "gpu": "GPU", "Value": "XID"},
                queries={"XID": f"DCGM_FI_DEV_XID_ERRORS{{{_GPUS}}} > 0"},
            ),
            Panel(
                title="Remapped rows and throttling",
                says="Rows of memory that were taken out of use, and time that GPUs were slowed by heat.",
                queries={
                    "{{Hostname}} uncorrectable": "sum by (Hostname)"
                    f" (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{{{_GPUS}}})",
                    "{{Hostname}} remap failed": f"sum by (Hostname) (DCGM_FI_DEV_ROW_REMAP_FAILURE{{{_GPUS}}})",
                    "{{Hostname}} slowed": "sum by (Hostname)"
                    f" (increase(DCGM_FI_DEV_THERMAL_VIOLATION{{{_GPUS}}}{_BLOCK}))",
                },
            ),
            Panel(
                title="Processors in use",
                says="Share of the time of all processors, by node.",
                unit="percentunit",
                most=1,
                queries={
                    "{{instance}}": f'1 - avg by (instance) (rate(node_cpu_seconds_total{{mode="idle", {_NODES}}}'
                    f"{_BLOCK}))"
                },
            ),
            Panel(
                title="Memory in use",
                says="Share of the memory that is not available to more, by node.",
                unit="percentunit",
                most=1,
                queries={
                    "{{instance}}": f"1 - node_memory_MemAvailable_bytes{{{_NODES}}}"
                    f" / node_memory_MemTotal_bytes{{{_NODES}}}"
                },
            ),
            Panel(
                title="Disks used",
                says="The fullest file system of each node; a full one evicts pods.",
                unit="percentunit",
                most=1,
                queries={
                    "{{instance}}": f'max by (instance) (1 - node_filesystem_avail_bytes{{fstype!~"tmpfs|overlay",'
                    f' {_NODES}}} / node_filesystem_size_bytes{{fstype!~"tmpfs|overlay", {_NODES}}})'
                },
            ),
            Panel(
                title="Disk throughput",
                says="Bytes read and written by node.",
                unit="Bps",
                queries={
                    "{{instance}} read": f"sum by (instance) (rate(node_disk_read_bytes_total{{{_NODES}}}{_BLOCK}))",
                    "{{instance}} written": "sum by (instance)"
                    f" (rate(node_disk_written_bytes_total{{{_NODES}}}{_BLOCK}))",
                },
            ),
        ),
    ),
    Dashboard(
        name="efa",
        title="HyperPod EFA",
        says="Traffic and errors of EFA interfaces; the add-on collects them where metrics.network is advanced.",
        pickers=_NODE,
        panels=(
            Panel(
                title="Interfaces",
                says="EFA interfaces that report.",
                kind="stat",
                columns=8,
                queries={"interfaces": f"count(node_amazonefa_info{{{_EFA}}})"},
            ),
            Panel(
                title="Sent",
                says="Bytes that all nodes send each second.",
                kind="stat",
                unit="Bps",
                columns=8,
                queries={"sent": f"sum(rate(node_amazonefa_tx_bytes{{{_EFA}}}{_BLOCK}))"},
            ),
            Panel(
                title="Dropped packets",
                says="Each second: more than none slows every collective.",
                kind="stat",
                unit="pps",
                columns=8,
                queries={"dropped": f"sum(rate(node_amazonefa_rx_drops{{{_EFA}}}{_BLOCK}))"},
            ),
            Panel(
                title="Sent by node",
                says="Nodes of one job send alike: one that sends less holds up the others.",
                unit="Bps",
                queries={"{{instance}}": f"sum by (instance) (rate(node_amazonefa_tx_bytes{{{_EFA}}}{_BLOCK}))"},
            ),
            Panel(
                title="Received by node",
                says="Bytes of receive operations, by node.",
                unit="Bps",
                queries={"{{instance}}": f"sum by (instance) (rate(node_amazonefa_recv_bytes{{{_EFA}}}{_BLOCK}))"},
            ),
            Panel(
                title="Packets by node",
                says="Packets that each node sends.",
                unit="pps",
                queries={"{{instance}}": f"sum by (instance) (rate(node_amazonefa_tx_pkts{{{_EFA}}}{_BLOCK}))"},
            ),
            Panel(
                title="RDMA reads by node",
                says="Work requests that read another node's memory.",
                unit="ops",
                queries={"{{instance}}": f"sum by (instance) (rate(node_amazonefa_rdma_read_wrs{{{_EFA}}}{_BLOCK}))"},
            ),
            Panel(
                title="Dropped packets by node",
                says="Packets that arrived and were dropped.",
                unit="pps",
                queries={"{{instance}}": f"sum by (instance) (rate(node_amazonefa_rx_drops{{{_EFA}}}{_BLOCK}))"},
            ),
            Panel(
                title="RDMA errors by node",
                says="Reads that ended with an error.",
                unit="ops",
                queries={
                    "{{instance}}": f"sum by (instance) (rate(node_amazonefa_rdma_read_wr_err{{{_EFA}}}{_BLOCK}))"
                },
            ),
            Panel(
                title="Interfaces by node",
                says="A node with fewer than its type has does not reach its peers at full speed.",
                kind="table",
                columns=24,
                shows={"instance": "Node", "Value": "Interfaces"},
                queries={"interfaces": f"count by (instance) (node_amazonefa_info{{{_EFA}}})"},
            ),
        ),
    ),
    Dashboard(
        name="jobs",
        title="HyperPod jobs",
        says="Training jobs of the HyperPod training operator: uptime, restarts and what caused them, and their pods.",
        pickers={
            "namespace": f"label_values(kube_pod_info{{{_CLUSTER}}}, namespace)",
            "job": f"label_values(training_uptime_percentage{{{_CLUSTER}}}, job_name)",
        },
        panels=(
            *(
                Panel(
                    title=f"Jobs {word}",
                    says=f"Jobs that the operator counts as {word}.",
                    kind="stat",
                    columns=6,
                    queries={word: f"sum(hyperpod_training_operator_jobs_{word}_total{{{_OPERATOR}}})"},
                )
                for word in ("created", "successful", "failed", "deleted")
            ),
            Panel(
                title="Uptime in 24 hours",
                says="Share of the time in which the job trained.",
                kind="stat",
                unit="percent",
                columns=6,
                queries={"{{job_name}}": f"training_uptime_percentage{{{_JOB}}}"},
            ),
            Panel(
                title="Automatic restarts in 24 hours",
                says="Restarts after faults.",
                kind="stat",
                columns=6,
                queries={"{{job_name}}": f"training_fault_count{{{_JOB}}}"},
            ),
            Panel(
                title="Lost to automatic restarts",
                says="Time in 24 hours.",
                kind="stat",
                unit="ms",
                columns=6,
                queries={"{{job_name}}": f"training_auto_restart_downtime_ms{{{_JOB}}}"},
            ),
            Panel(
                title="Lost to manual restarts",
                says="Time in 24 hours.",
                kind="stat",
                unit="ms",
                columns=6,
                queries={"{{job_name}}": f"training_manual_downtime_ms{{{_JOB}}}"},
            ),
            Panel(
                title="Faults by type",
                says="What restarted jobs in 24 hours.",
                kind="bargauge",
                queries={"{{fault_type}}": f"training_fault_type_count{{{_JOB}}}"},
            ),
            Panel(
                title="Time to recover by type of fault",
                says="In 24 hours.",
                kind="bargauge",
                unit="ms",
                queries={"{{fault_type}}": f"training_fault_recovery_time_ms{{{_JOB}}}"},
            ),
            Panel(
                title="Restarts by reason",
                says="When jobs were restarted, and why.",
                columns=24,
                queries={
                    "{{reason}}": "sum by (reason)"
                    f" (increase(hyperpod_training_operator_jobs_restarted_total{{{_OPERATOR}}}{_BLOCK}))"
                },
            ),
            Panel(
                title="GPU utilization of pods",
                says="By pod: a rank that stands out holds up the others.",
                unit="percent",
                most=100,
                queries={
                    "{{pod}}": f'avg by (pod) (DCGM_FI_DEV_GPU_UTIL{{{_CLUSTER}, namespace=~"$namespace", pod!=""}})'
                },
            ),
            Panel(
                title="GPU memory of pods",
                says="Memory that pods hold.",
                unit="decmbytes",
                queries={
                    "{{pod}}": f'sum by (pod) (DCGM_FI_DEV_FB_USED{{{_CLUSTER}, namespace=~"$namespace", pod!=""}})'
                },
            ),
            Panel(
                title="Processors of pods",
                says="Processors that pods use.",
                queries={
                    "{{pod}}": "sum by (pod) (rate(container_cpu_usage_seconds_total"
                    f'{{{_CLUSTER}, namespace=~"$namespace", container!=""}}{_BLOCK}))'
                },
            ),
            Panel(
                title="Memory of pods",
                says="A pod that reaches its limit is killed.",
                unit="bytes",
                queries={
                    "{{pod}}": "sum by (pod) (container_memory_working_set_bytes"
                    f'{{{_CLUSTER}, namespace=~"$namespace", container!=""}})'
                },
            ),
        ),
    ),
    Dashboard(
        name="teams",
        title="HyperPod teams",
        says="What teams were given, what they use and who waits; the add-on collects it where"
        " metrics.task_governance is advanced.",
        pickers={"queue": f"label_values(kueue_pending_workloads{{{_CLUSTER}}}, cluster_queue)"},
        panels=(
            Panel(
                title="Running jobs",
                says="Workloads that were admitted and have not ended.",
                kind="stat",
                columns=8,
                queries={"running": f"sum(kueue_admitted_active_workloads{{{_QUEUE}}})"},
            ),
            Panel(
                title="Waiting jobs",
                says="Workloads that wait for compute.",
                kind="stat",
                columns=8,
                queries={"waiting": f"sum(kueue_pending_workloads{{{_QUEUE}}})"},
            ),
            Panel(
                title="Evicted in an hour",
                says="Workloads that had to give compute back.",
                kind="stat",
                columns=8,
                queries={"evicted": f"sum(increase(kueue_evicted_workloads_total{{{_QUEUE}}}[1h]))"},
            ),
            Panel(
                title="Used by team",
                says="Accelerators that each team's workloads have.",
                queries={
                    "{{cluster_queue}}": "sum by (cluster_queue) (kueue_cluster_queue_resource_usage"
                    f'{{resource=~"nvidia.com/gpu|aws.amazon.com/neuron.*", {_QUEUE}}})'
                },
            ),
            Panel(
                title="Share of the quota used",
                says="More than 100 % is borrowed from others.",
                unit="percentunit",
                queries={
                    "{{cluster_queue}} {{resource}}": "sum by (cluster_queue, resource)"
                    f" (kueue_cluster_queue_resource_usage{{{_QUEUE}}}) / (sum by (cluster_queue, resource)"
                    f" (kueue_cluster_queue_nominal_quota{{{_QUEUE}}}) > 0)"
                },
            ),
            Panel(
                title="Waiting by team",
                says="Inadmissible ones do not fit before something else ends.",
                queries={
                    "{{cluster_queue}} {{status}}": "sum by (cluster_queue, status)"
                    f" (kueue_pending_workloads{{{_QUEUE}}})"
                },
            ),
            Panel(
                title="Time until admission",
                says="Nine of ten workloads waited less.",
                unit="s",
                queries={
                    "{{cluster_queue}}": "histogram_quantile(0.9, sum by (cluster_queue, le)"
                    f" (rate(kueue_admission_wait_time_seconds_bucket{{{_QUEUE}}}[1h])))"
                },
            ),
            Panel(
                title="Evictions by reason",
                says="Preempted means that another team took its own back, or a higher priority came.",
                queries={
                    "{{cluster_queue}} {{reason}}": "sum by (cluster_queue, reason)"
                    f" (increase(kueue_evicted_workloads_total{{{_QUEUE}}}[1h]))"
                },
            ),
            Panel(
                title="GPU utilization by namespace",
                says="Compute that a team holds and does not use.",
                unit="percent",
                most=100,
                queries={"{{namespace}}": f'avg by (namespace) (DCGM_FI_DEV_GPU_UTIL{{{_CLUSTER}, namespace!=""}})'},
            ),
        ),
    ),
    Dashboard(
        name="lustre",
        title="HyperPod Lustre",
        says="File systems of FSx for Lustre: how full, how busy. From CloudWatch.",
        pickers={"file_system": "FileSystemId"},
        reads=CLOUDWATCH,
        panels=(
            Panel(
                title="Free",
                says="Room on all storage targets.",
                kind="stat",
                unit="bytes",
                columns=8,
                queries={
                    "free": Metric(name="FreeDataStorageCapacity", statistic="Sum", by="StorageTargetId", over="SUM")
                },
            ),
            Panel(
                title="Fullest storage target",
                says="Writes fail where one target is full, whatever room the others have.",
                kind="stat",
                unit="percent",
                columns=8,
                queries={
                    "fullest": Metric(
                        name="StorageCapacityUtilization", statistic="Maximum", by="StorageTargetId", over="MAX"
                    )
                },
            ),
            Panel(
                title="Clients",
                says="Connections of clients.",
                kind="stat",
                columns=8,
                queries={"clients": Metric(name="ClientConnections", statistic="Sum")},
            ),
            Panel(
                title="Storage targets used",
                says="Each target (OST).",
                unit="percent",
                most=100,
                queries={
                    "${PROP('Dim.StorageTargetId')}": Metric(
                        name="StorageCapacityUtilization", statistic="Maximum", by="StorageTargetId"
                    )
                },
            ),
            Panel(
                title="Bytes read and written in a minute",
                says="What clients read and write.",
                unit="bytes",
                queries={
                    "read": Metric(name="DataReadBytes", statistic="Sum"),
                    "written": Metric(name="DataWriteBytes", statistic="Sum"),
                },
            ),
            Panel(
                title="Operations in a minute",
                says="Many small files show as many metadata operations.",
                queries={
                    "reads": Metric(name="DataReadOperations", statistic="Sum"),
                    "writes": Metric(name="DataWriteOperations", statistic="Sum"),
                    "metadata": Metric(name="MetadataOperations", statistic="Sum"),
                },
            ),
            Panel(
                title="Network of file servers",
                says="100 % is what the file system's throughput pays for.",
                unit="percent",
                most=100,
                queries={
                    "${PROP('Dim.FileServer')}": Metric(
                        name="NetworkThroughputUtilization", statistic="Average", by="FileServer"
                    )
                },
            ),
            Panel(
                title="Processors of file servers",
                says="A server that is busy makes every client wait.",
                unit="percent",
                most=100,
                queries={
                    "${PROP('Dim.FileServer')}": Metric(name="CPUUtilization", statistic="Average", by="FileServer")
                },
            ),
            Panel(
                title="Operations of disks",
                says="Share of what the disks of each target can do.",
                unit="percent",
                most=100,
                queries={
                    "${PROP('Dim.StorageTargetId')}": Metric(
                        name="DiskIopsUtilization", statistic="Average", by="StorageTargetId"
                    )
                },
            ),
        ),
    ),
    Dashboard(
        name="inference",
        title="HyperPod inference",
        says="Endpoints of the inference operator: requests, errors, latency and tokens.",
        pickers={
            "namespace": f"label_values(model_invocations_total{{{_CLUSTER}}}, namespace)",
            "endpoint": f'label_values(model_invocations_total{{{_CLUSTER}, namespace=~"$namespace"}}, resource_name)',
        },
        panels=(
            Panel(
                title="Requests",
                says="Each second, of all endpoints.",
                kind="stat",
                unit="reqps",
                columns=6,
                queries={"requests": f"sum(rate(model_invocations_total{{{_ENDPOINT}}}{_BLOCK}))"},
            ),
            Panel(
                title="Errors",
                says="Share of requests that failed.",
                kind="stat",
                unit="percentunit",
                columns=6,
                queries={
                    "errors": f"(sum(rate(model_errors_total{{{_ENDPOINT}}}{_BLOCK})) or vector(0))"
                    f" / sum(rate(model_invocations_total{{{_ENDPOINT}}}{_BLOCK}))"
                },
            ),
            Panel(
                title="Requests under way",
                says="Of all endpoints.",
                kind="stat",
                columns=6,
                queries={"under way": f"sum(model_concurrent_requests{{{_ENDPOINT}}})"},
            ),
            Panel(
                title="Pods that serve",
                says="Pods that had a request.",
                kind="stat",
                columns=6,
                queries={
                    "pods": f"count(count by (pod_name) (rate(model_invocations_total{{{_ENDPOINT}}}{_BLOCK}) > 0))"
                },
            ),
            Panel(
                title="Requests by endpoint",
                says="Each second.",
                unit="reqps",
                queries={
                    "{{resource_name}}": "sum by (resource_name)"
                    f" (rate(model_invocations_total{{{_ENDPOINT}}}{_BLOCK}))"
                },
            ),
            Panel(
                title="Errors by endpoint",
                says="Failed requests each second.",
                unit="reqps",
                queries={
                    "{{resource_name}}": f"sum by (resource_name) (rate(model_errors_total{{{_ENDPOINT}}}{_BLOCK}))"
                },
            ),
            Panel(
                title="Latency",
                says="Nine of ten requests, and half of them, took less.",
                unit="ms",
                queries={
                    f"{{{{resource_name}}}} p{percent}": f"histogram_quantile({percent / 100},"
                    f" sum by (resource_name, le) (rate(model_latency_milliseconds_bucket{{{_ENDPOINT}}}{_BLOCK})))"
                    for percent in (90, 50)
                },
            ),
            Panel(
                title="Time to first byte",
                says="Nine of ten requests waited less.",
                unit="ms",
                queries={
                    "{{resource_name}}": "histogram_quantile(0.9, sum by (resource_name, le)"
                    f" (rate(model_ttfb_milliseconds_bucket{{{_ENDPOINT}}}{_BLOCK})))"
                },
            ),
            Panel(
                title="Requests under way by endpoint",
                says="Where they pile up, more pods are wanted.",
                queries={"{{resource_name}}": f"sum by (resource_name) (model_concurrent_requests{{{_ENDPOINT}}})"},
            ),
            Panel(
                title="Time per token (TGI)",
                says="Nine of ten requests, of containers with Text Generation Inference.",
                unit="s",
                queries={
                    "{{resource_name}}": "histogram_quantile(0.9, sum by (resource_name, le)"
                    f" (rate(tgi_request_mean_time_per_token_duration_bucket{{{_ENDPOINT}}}{_BLOCK})))"
                },
            ),
            Panel(
                title="Token latency (LMI)",
                says="Of containers with Large Model Inference, over ten requests each.",
                unit="ms",
                queries={"{{resource_name}}": f"max by (resource_name) (TokenLatency_p90{{{_ENDPOINT}}})"},
            ),
            Panel(
                title="Token throughput (LMI)",
                says="Of containers with Large Model Inference, tokens each second.",
                queries={"{{resource_name}}": f"max by (resource_name) (TokenThroughput_p90{{{_ENDPOINT}}})"},
            ),
        ),
    ),
)
"""What is put into a workspace, in the order in which the documentation shows it."""


def models(cluster_name: str, *, prometheus_type: str = PROMETHEUS_TYPE) -> list[dict[str, Any]]:
    """Return the dashboards as ``POST /api/dashboards/db`` takes them, with this cluster chosen at first."""
    text = json.dumps([_model(dashboard, cluster_name) for dashboard in DASHBOARDS])
    there = {"type": prometheus_type, "uid": PROMETHEUS}
    found: list[dict[str, Any]] = json.loads(text.replace(json.dumps(_source(PROMETHEUS)), json.dumps(there)))
    return found


def digest(*chosen: Dashboard) -> str:
    """Return a text that changes with any dashboard, or with what those that are chosen show."""
    found = [_model(each, "") for each in chosen] or models("")
    return sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def _source(uid: str) -> dict[str, str]:
    return {"type": CORE_PROMETHEUS_TYPE if uid == PROMETHEUS else uid, "uid": uid}


def _model(dashboard: Dashboard, cluster_name: str) -> dict[str, Any]:
    of_prometheus = dashboard.reads == PROMETHEUS
    variables = [
        *(_cluster_variables(cluster_name) if of_prometheus else ()),
        *(
            _variable(name, query) if of_prometheus else _dimension(name, query)
            for name, query in dashboard.pickers.items()
        ),
    ]
    return {
        "id": None,
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.says,
        "tags": ["hyperpod", "hyperpod-cdk"],
        # the next version of the library writes it anew: "Save as" makes a copy of one's own
        "editable": False,
        "schemaVersion": _SCHEMA,
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": variables},
        "panels": _placed(dashboard),
    }


def _placed(dashboard: Dashboard) -> list[dict[str, Any]]:
    found = []
    x = y = tallest = 0
    for number, panel in enumerate(dashboard.panels, start=1):
        height = _HEIGHTS[panel.kind]
        if x + panel.columns > _COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        found.append(_panel(number, panel, dashboard.reads) | {"gridPos": _place(x, y, panel.columns, height)})
        x, tallest = x + panel.columns, max(tallest, height)
    return found


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(number: int, panel: Panel, source: str) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.most is not None:
        defaults |= {"min": 0, "max": panel.most}
    latest = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    options = {
        "stat": latest,
        "bargauge": {**latest, "orientation": "horizontal"},
        "timeseries": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}},
        "table": {"showHeader": True},
    }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": _source(source),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options[panel.kind],
        "transformations": _columns(panel.shows) if panel.shows else [],
        "targets": [
            _promql(chr(ord("A") + index), legend, query, is_now=panel.kind in {"table", "stat", "bargauge"})
            | ({"format": "table"} if panel.kind == "table" else {})
            if isinstance(query, str)
            else _cloudwatch(chr(ord("A") + index), legend, query)
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _columns(shows: Mapping[str, str]) -> list[dict[str, Any]]:
    """Show these columns of a table, in this order."""
    chosen = {"id": "filterFieldsByName", "options": {"include": {"names": list(shows)}}}
    order = {name: number for number, name in enumerate(shows)}
    named = {"indexByName": order, "renameByName": dict(shows), "excludeByName": {}}
    return [chosen, {"id": "organize", "options": named}]


def _promql(letter: str, legend: str, query: str, *, is_now: bool) -> dict[str, Any]:
    return {
        "refId": letter,
        "datasource": _source(PROMETHEUS),
        "editorMode": "code",
        "expr": query,
        "legendFormat": legend,
        "instant": is_now,
        "range": not is_now,
    }


def _cloudwatch(letter: str, legend: str, metric: Metric) -> dict[str, Any]:
    found = (
        f"{metric.over}(SEARCH('{{AWS/FSx,FileSystemId,{metric.by}}}"
        f' MetricName="{metric.name}" FileSystemId="$file_system"\', \'{metric.statistic}\', 60))'
    )
    return {
        "refId": letter,
        "datasource": _source(CLOUDWATCH),
        "queryMode": "Metrics",
        "metricQueryType": 0,
        # 0 builds the query of what stands below, 1 takes the expression
        "metricEditorMode": 1 if metric.over else 0,
        "namespace": "AWS/FSx",
        "metricName": metric.name,
        "dimensions": {"FileSystemId": ["$file_system"], **({metric.by: ["*"]} if metric.by else {})},
        "matchExact": True,
        "statistic": metric.statistic,
        "period": "60",
        "region": "default",
        "label": legend,
        "expression": found if metric.over else "",
        "id": "",
    }


def _cluster_variables(cluster_name: str) -> list[dict[str, Any]]:
    chosen = {"text": cluster_name, "value": cluster_name}
    return [
        _query_variable("cluster_name", "label_values(kube_node_info, cluster_name)", "Cluster") | {"current": chosen},
        # a cluster that was made anew under its name has another ID: the labels say which
        _query_variable(
            "cluster_id", 'label_values(kube_node_info{cluster_name="$cluster_name"}, cluster_id)', "Cluster ID"
        ),
    ]


def _variable(name: str, query: str) -> dict[str, Any]:
    # of one that follows from another, all are those that are found, which Grafana lists
    follows = {"hide": 2} if name in _FOLLOWING else {"allValue": ".*"}
    return _query_variable(name, query, name.capitalize()) | {
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
        **follows,
    }


def _query_variable(name: str, query: str, label: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _source(PROMETHEUS),
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        # with every change of the time range, too: nodes come and go
        "refresh": 2,
        "sort": 1,
    }


def _dimension(name: str, key: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": "File system",
        "type": "query",
        "datasource": _source(CLOUDWATCH),
        "query": {
            "queryType": "dimensionValues",
            "namespace": "AWS/FSx",
            "metricName": "FreeDataStorageCapacity",
            "dimensionKey": key,
            "dimensionFilters": {},
            "region": "default",
            "refId": "CloudWatchVariableQueryEditor-VariableQuery",
        },
        "refresh": 2,
        "sort": 1,
    }
