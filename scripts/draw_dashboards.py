"""Draw the Grafana dashboards for the documentation: sample metrics, and every query answered by a real Prometheus.

    python scripts/draw_dashboards.py

Needs ``prometheus`` and ``promtool`` (``apt-get install prometheus``). A query that Prometheus refuses, or that finds
nothing in the sample metrics, ends it with the name of the panel, so that every query is tested. Responses of
CloudWatch are sample data. The pictures are not drawn by Grafana; each contains the digest of its dashboard, with which
a test checks that it is up to date.
"""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Self

from hyperpod_cdk.handlers.grafana import dashboards

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BEGINS, MINUTES, STEP = 1767225600, 180, 60
ENDS = BEGINS + MINUTES * 60
CLUSTER = {"cluster_id": "abcdef012345", "cluster_name": "prod"}
GPU_NODES = ("hyperpod-i-0a1", "hyperpod-i-0b2", "hyperpod-i-0c3")
NODES = (*GPU_NODES, "hyperpod-i-0d4")
CHOSEN = {
    "cluster_id": CLUSTER["cluster_id"],
    "cluster_name": "prod",
    "file_system": "fs-0123456789abcdef0",
    "__rate_interval": "5m",
}
"""The selected values of variables; all others are set to all."""

GiB, MiB = 2**30, 2**20
Value = Callable[[int], float]


def wave(mean: float, swing: float, phase: float = 0.0) -> Value:
    """Return a value that oscillates around its mean."""
    return lambda minute: mean + swing * (math.sin(minute / 11 + phase) + math.sin(minute / 4.3 + 2 * phase) / 2)


def grows(per_minute: float, *, wobble: float = 0.0, begins: int = 0) -> Value:
    """Return a counter that grows from a minute on, evenly or in waves."""

    def total(minute: int) -> float:
        passed = max(0, minute + 10 - begins)
        return per_minute * (passed + wobble * (1 - math.cos(passed / 9)))

    return total


def slope(begins: float, per_minute: float) -> Value:
    """Return a value that changes evenly."""
    return lambda minute: begins + per_minute * minute


def steps(*moments: int) -> Value:
    """Return a counter that grows by one at each moment."""
    return lambda minute: float(sum(minute >= each for each in moments))


def planted() -> Iterator[tuple[str, dict[str, str], Value]]:
    """Yield name, labels and values of every series: a job on three nodes, one of which overheats and is replaced."""
    for number, node in enumerate(NODES):
        has_gpus = node in GPU_NODES
        kind = "ml.p5.48xlarge" if has_gpus else "ml.m5.4xlarge"
        address = f"10.1.0.{10 + number}"
        at = {"node": node, "internal_ip": address, "instance": f"{address}:9100"}
        yield "kube_node_info", at, wave(1, 0)
        health = "Unschedulable" if number == 2 else "Schedulable"
        labels = {"sagemaker_amazonaws_com_node_health_status": health, "node_kubernetes_io_instance_type": kind}
        yield "kubelet_node_name", at | labels, wave(1, 0)
        yield "node_cpu_seconds_total", at | {"cpu": "0", "mode": "idle"}, grows(60 * (0.35 + 0.1 * number), wobble=1)
        yield "node_memory_MemTotal_bytes", at, wave(2048 * GiB if has_gpus else 64 * GiB, 0)
        yield "node_memory_MemAvailable_bytes", at, wave((900 if has_gpus else 30) * GiB, (60 if has_gpus else 3) * GiB)
        disk = at | {"mountpoint": "/", "fstype": "xfs", "device": "/dev/nvme0n1p1"}
        yield "node_filesystem_size_bytes", disk, wave(500 * GiB, 0)
        yield "node_filesystem_avail_bytes", disk, slope((330 - 60 * number) * GiB, -GiB / 4)
        yield "node_disk_read_bytes_total", at | {"device": "nvme0n1"}, grows(60 * 90 * MiB, wobble=3)
        yield "node_disk_written_bytes_total", at | {"device": "nvme0n1"}, grows(60 * 40 * MiB, wobble=5)
        if has_gpus:
            yield from gpus(number, node)
            yield from efa(number, node)
    yield from jobs()
    yield from teams()
    yield from endpoints()


def gpus(number: int, node: str) -> Iterator[tuple[str, dict[str, str], Value]]:
    for gpu in range(8):
        pod = {"namespace": "hyperpod-ns-research", "pod": f"llama-{number}", "container": "pytorch"}
        at = {"Hostname": node, "gpu": str(gpu)} | (pod if number != 2 else {"namespace": "", "pod": ""})
        idle = number == 2
        phase = gpu / 3
        yield "DCGM_FI_DEV_GPU_UTIL", at, wave(4 if idle else 93 - number, 1 if idle else 3, phase)
        yield "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", at, wave(0.01 if idle else 0.46, 0.005 if idle else 0.03, phase)
        yield "DCGM_FI_DEV_FB_USED", at, wave(900 if idle else 71000, 30 if idle else 900, phase)
        yield "DCGM_FI_DEV_FB_FREE", at, wave(80600 if idle else 10500, 30, phase)
        yield "DCGM_FI_DEV_GPU_TEMP", at, wave(82 if idle and gpu == 5 else 61 + number, 2, phase)
        yield "DCGM_FI_DEV_POWER_USAGE", at, wave(110 if idle else 640, 20, phase)
        yield "DCGM_FI_DEV_XID_ERRORS", at, wave(79 if idle and gpu == 5 else 0, 0)
        yield "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", at, wave(2 if idle and gpu == 5 else 0, 0)
        yield "DCGM_FI_DEV_ROW_REMAP_FAILURE", at, wave(0, 0)
        yield "DCGM_FI_DEV_THERMAL_VIOLATION", at, steps(120, 131, 140) if idle and gpu == 5 else steps()


def efa(number: int, node: str) -> Iterator[tuple[str, dict[str, str], Value]]:
    for device in range(4):
        at = {"instance": node, "device": f"rdmap{device}s0", "port": "1"}
        share = 0.1 if number == 2 else 1.0
        yield "node_amazonefa_info", at, wave(1, 0)
        yield "node_amazonefa_tx_bytes", at, grows(60 * 9 * GiB * share, wobble=2)
        yield "node_amazonefa_recv_bytes", at, grows(60 * 8.6 * GiB * share, wobble=2)
        yield "node_amazonefa_tx_pkts", at, grows(60 * 1.1e6 * share, wobble=2)
        yield "node_amazonefa_rdma_read_wrs", at, grows(60 * 4.2e4 * share, wobble=2)
        yield "node_amazonefa_rx_drops", at, grows(60 * 20, begins=115) if number == 2 else grows(0)
        yield "node_amazonefa_rdma_read_wr_err", at, grows(60 * 2, begins=115) if number == 2 else grows(0)


def jobs() -> Iterator[tuple[str, dict[str, str], Value]]:
    for word, count in (("created", 14), ("successful", 11), ("failed", 1), ("deleted", 1)):
        yield f"hyperpod_training_operator_jobs_{word}_total", {"jobName": "llama"}, wave(count, 0)
    at = {"job_name": "llama"}
    yield "training_uptime_percentage", at, wave(97.4, 0)
    yield "training_fault_count", at, wave(2, 0)
    yield "training_auto_restart_downtime_ms", at, wave(372_000, 0)
    yield "training_manual_downtime_ms", at, wave(0, 0)
    for fault, count, took in (("GPU", 1, 214_000), ("network", 1, 158_000)):
        yield "training_fault_type_count", at | {"fault_type": fault}, wave(count, 0)
        yield "training_fault_recovery_time_ms", at | {"fault_type": fault}, wave(took, 0)
    for reason, moment in (("GPU", 121), ("network", 47)):
        labels = {"jobName": "llama", "reason": reason}
        yield "hyperpod_training_operator_jobs_restarted_total", labels, steps(moment)
    for number in range(2):
        at = {"namespace": "hyperpod-ns-research", "pod": f"llama-{number}", "container": "pytorch"}
        yield "kube_pod_info", at, wave(1, 0)
        yield "container_cpu_usage_seconds_total", at, grows(60 * (41 + 3 * number), wobble=1)
        yield "container_memory_working_set_bytes", at, wave((610 + 40 * number) * GiB, 8 * GiB)


def teams() -> Iterator[tuple[str, dict[str, str], Value]]:
    for team, quota, used, waiting in (("research", 16, 20, 3), ("products", 8, 4, 0)):
        at = {"cluster_queue": f"hyperpod-ns-{team}-clusterqueue"}
        row = at | {"cohort": "hyperpod", "flavor": "ml.p5.48xlarge", "resource": "nvidia.com/gpu"}
        yield "kueue_cluster_queue_nominal_quota", row, wave(quota, 0)
        yield "kueue_cluster_queue_resource_usage", row, slope(used, 0)
        yield "kueue_admitted_active_workloads", at, wave(used / 4, 0)
        for status, count in (("active", waiting), ("inadmissible", waiting // 3)):
            yield "kueue_pending_workloads", at | {"status": status}, wave(count, 0)
        yield "kueue_evicted_workloads_total", at | {"reason": "Preempted"}, steps(150) if waiting else steps(135, 160)
        for bound, part in (("30", 0.3), ("120", 0.7), ("600", 0.95), ("+Inf", 1.0)):
            labels = at | {"le": bound}
            yield "kueue_admission_wait_time_seconds_bucket", labels, grows(part * (0.4 if waiting else 0.2), wobble=1)


def endpoints() -> Iterator[tuple[str, dict[str, str], Value]]:
    for number, name in enumerate(("llama-chat", "embeddings")):
        at = {"namespace": "models", "resource_name": name, "pod_name": f"{name}-0"}
        yield "model_invocations_total", at, grows(60 * (14 + 30 * number), wobble=4)
        yield "model_errors_total", at, grows(60 * 0.05, wobble=4)
        yield "model_concurrent_requests", at, wave(9 + 3 * number, 2, number)
        for bound, part in (
            ("50", 0.1 + 0.6 * number),
            ("200", 0.4 + 0.5 * number),
            ("1000", 0.93 + 0.05 * number),
            ("+Inf", 1),
        ):
            of_all = part * 60 * (14 + 30 * number)
            yield "model_latency_milliseconds_bucket", at | {"le": bound}, grows(of_all, wobble=4)
            yield (
                "model_ttfb_milliseconds_bucket",
                at | {"le": bound},
                grows(min(of_all * 1.4, 60 * (14 + 30 * number))),
            )
    at = {"namespace": "models", "resource_name": "llama-chat", "pod_name": "llama-chat-0"}
    for bound, part in (("0.02", 0.2), ("0.05", 0.92), ("+Inf", 1.0)):
        yield "tgi_request_mean_time_per_token_duration_bucket", at | {"le": bound}, grows(part * 840)
    yield "TokenLatency_p90", at, wave(38, 3)
    yield "TokenThroughput_p90", at, wave(1240, 80)


FSX: dict[str, list[tuple[str, Value]]] = {
    "FreeDataStorageCapacity": [
        (f"OST000{number}", slope((880 - 110 * number) * GiB, -GiB / 2)) for number in range(4)
    ],
    "StorageCapacityUtilization": [(f"OST000{number}", slope(38 + 9 * number, 1 / 22)) for number in range(4)],
    "ClientConnections": [("clients", wave(4, 0))],
    "DataReadBytes": [("read", wave(95 * GiB, 20 * GiB))],
    "DataWriteBytes": [("written", wave(30 * GiB, 12 * GiB, 1))],
    "DataReadOperations": [("reads", wave(90_000, 20_000))],
    "DataWriteOperations": [("writes", wave(31_000, 9_000, 1))],
    "MetadataOperations": [("metadata", wave(12_000, 4_000, 2))],
    "NetworkThroughputUtilization": [(f"OSS000{number}", wave(52 + 6 * number, 9, number)) for number in range(2)],
    "CPUUtilization": [(f"OSS000{number}", wave(31 + 5 * number, 5, number)) for number in range(2)],
    "DiskIopsUtilization": [(f"OST000{number}", wave(24 + 4 * number, 6, number)) for number in range(4)],
}
"""The response of CloudWatch for each metric of the file system."""


@dataclass(frozen=True)
class Series:
    """A line: its name, its labels, and its values by minute; a gap is None."""

    name: str
    labels: dict[str, str]
    values: list[float | None]

    @property
    def latest(self) -> float | None:
        """Return the last value."""
        return next((value for value in reversed(self.values) if value is not None), None)


class Prometheus:
    """A Prometheus on the loopback interface with the sample metrics."""

    def __init__(self, folder: Path) -> None:
        for tool in ("prometheus", "promtool"):
            if shutil.which(tool) is None:
                sys.exit(f"{tool} is not installed; apt-get install prometheus")
        text = folder / "planted.txt"
        text.write_text("".join(_openmetrics()), encoding="utf-8")
        made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")]
        subprocess.run(made, check=True, capture_output=True)
        (folder / "prometheus.yml").write_text("")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        self._process = subprocess.Popen(
            [  # noqa: S607 - found in the path above
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address={self._address}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        for _ in range(100):
            try:
                with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=2):
                    return self
            except OSError:
                time.sleep(0.2)
        raise TimeoutError("Prometheus does not start")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def ask(self, query: str) -> list[Series]:
        """Return the lines that a query draws."""
        for name, value in CHOSEN.items():
            query = query.replace(f"${name}", value)
        for name in ("node", "address", "job", "namespace", "endpoint", "queue"):
            query = query.replace(f"${name}", ".*")
        asked = urllib.parse.urlencode({"query": query, "start": BEGINS, "end": ENDS, "step": STEP})
        url = f"http://{self._address}/api/v1/query_range?{asked}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                rows = json.load(response)["data"]["result"]
        except urllib.error.HTTPError as error:
            sys.exit(f"Prometheus refuses {query}: {error.read().decode()}")
        found = []
        for row in rows:
            by_minute = {int((moment - BEGINS) // 60): float(value) for moment, value in row["values"]}
            found.append(Series("", row["metric"], [_finite(by_minute.get(minute)) for minute in range(MINUTES + 1)]))
        return found


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _openmetrics() -> Iterator[str]:
    by_name: dict[str, list[tuple[dict[str, str], Value]]] = {}
    for name, labels, value in planted():
        by_name.setdefault(name, []).append((labels | CLUSTER, value))
    for name, rows in by_name.items():
        yield f"# TYPE {name} unknown\n"
        for labels, value in rows:
            text = ",".join(f'{key}="{each}"' for key, each in labels.items())
            # starts before the drawn period, because rates look back
            for minute in range(-10, MINUTES + 1):
                yield f"{name}{{{text}}} {value(minute):.6f} {BEGINS + minute * 60}\n"
    yield "# EOF\n"


def answers(panel: dashboards.Panel, prometheus: Prometheus) -> list[Series]:
    """Return the lines of a panel, each with its name in the legend."""
    found = []
    for legend, query in panel.queries.items():
        if isinstance(query, str):
            rows = prometheus.ask(query)
        else:
            rows = [
                Series(name, {}, [value(minute) for minute in range(MINUTES + 1)]) for name, value in FSX[query.name]
            ]
            if query.over:
                columns = zip(*(row.values for row in rows), strict=True)
                rows = [Series(legend, {}, [sum(each) if query.over == "SUM" else max(each) for each in columns])]  # type: ignore[arg-type,type-var] - sample values have no gaps
        if not rows:
            sys.exit(f"{panel.title}: no sample data for {query}")
        for row in rows:
            name = legend
            for label, value in row.labels.items():
                name = name.replace(f"{{{{{label}}}}}", value)
            found.append(Series(row.name or name, row.labels, row.values))
    return found


INK, FAINT, LINE, PAPER, FRAME = "#1f2329", "#5f6672", "#d5d9df", "#ffffff", "#f3f4f6"
COLORS = ("#3274d9", "#e0752d", "#3f8f43", "#a352cc", "#c4162a", "#0f8b8d", "#8a6d00", "#64748b")
COLUMN, ROW, GAP, TOP = 48, 26, 6, 64


def drawn(dashboard: dashboards.Dashboard, prometheus: Prometheus) -> str:
    """Draw a dashboard as SVG."""
    (model,) = [each for each in dashboards.models("prod") if each["uid"] == dashboard.uid]
    places = [each["gridPos"] for each in model["panels"]]
    height = TOP + max(each["y"] + each["h"] for each in places) * ROW + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {24 * COLUMN} {height}" role="img"',
        f' aria-label="{escape(dashboard.title)}: {escape(dashboard.says)}"',
        ' font-family="Helvetica, Arial, sans-serif">',
        f"<!-- {dashboards.digest(dashboard)} -->",
        f'<rect width="100%" height="100%" fill="{FRAME}"/>',
        _text(14, 28, dashboard.title, size=19, weight="bold"),
        _text(14, 50, f"{dashboard.says} Planted data.", size=12, color=FAINT),
    ]
    for panel, place in zip(dashboard.panels, places, strict=True):
        x, y = place["x"] * COLUMN + GAP // 2, TOP + place["y"] * ROW
        width, tall = place["w"] * COLUMN - GAP, place["h"] * ROW - GAP
        lines = answers(panel, prometheus)
        inside = {"stat": _stat, "timeseries": _timeseries, "table": _table, "bargauge": _bars}[panel.kind]
        parts += [
            f'<g transform="translate({x},{y})">',
            f'<rect width="{width}" height="{tall}" rx="3" fill="{PAPER}" stroke="{LINE}"/>',
            _text(10, 19, panel.title, size=13, weight="bold"),
            *inside(panel, lines, width, tall),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def _stat(panel: dashboards.Panel, lines: list[Series], width: int, tall: int) -> list[str]:
    (line, *_) = lines
    value = _written(line.latest, panel.unit)
    return [_text(width / 2, tall / 2 + 22, value, size=30, color=COLORS[0], anchor="middle")]


def _timeseries(panel: dashboards.Panel, lines: list[Series], width: int, tall: int) -> list[str]:
    left, top, bottom = 80, 34, 46
    values = [value for line in lines for value in line.values if value is not None]
    low, high = (0.0, panel.most) if panel.most else (min(0.0, *values), max(values) * 1.1 or 1.0)
    high = max(high, *values)

    def across(minute: int) -> float:
        return left + (width - left - 14) * minute / MINUTES

    def down(value: float) -> float:
        return top + (tall - top - bottom) * (1 - (value - low) / (high - low))

    parts = []
    for part in (0, 0.5, 1):
        value = low + (high - low) * part
        parts += [
            f'<line x1="{left}" x2="{width - 14}" y1="{down(value):.1f}" y2="{down(value):.1f}" stroke="{LINE}"/>',
            _text(left - 6, down(value) + 4, _written(value, panel.unit), size=10, color=FAINT, anchor="end"),
        ]
    for hour, label in enumerate(("09:00", "10:00", "11:00", "12:00")):
        anchor = ("start", "middle", "middle", "end")[hour]
        parts.append(_text(across(hour * 60), tall - bottom + 15, label, size=10, color=FAINT, anchor=anchor))
    for number, line in enumerate(lines):
        color = COLORS[number % len(COLORS)]
        path, pen = [], "M"
        for minute, value in enumerate(line.values):
            if value is None:
                pen = "M"
                continue
            path.append(f"{pen}{across(minute):.1f},{down(value):.1f}")
            pen = "L"
        parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{color}" stroke-width="1.6"/>')
    return [*parts, *_legend(lines, width, tall)]


def _legend(lines: list[Series], width: int, tall: int) -> list[str]:
    parts, x = [], 10.0
    for number, line in enumerate(lines):
        wide = 26 + 6.3 * len(line.name)
        if x + wide > width - (40 if number < len(lines) - 1 else 0):
            parts.append(_text(x, tall - 10, f"+ {len(lines) - number}", size=11, color=FAINT))
            break
        parts.append(f'<rect x="{x:.0f}" y="{tall - 16}" width="10" height="4" fill="{COLORS[number % len(COLORS)]}"/>')
        parts.append(_text(x + 14, tall - 10, line.name, size=11, color=FAINT))
        x += wide
    return parts


def _table(panel: dashboards.Panel, lines: list[Series], width: int, tall: int) -> list[str]:
    step = (width - 20) / len(panel.shows)
    parts = [_text(10 + step * at, 42, title, size=11, weight="bold") for at, title in enumerate(panel.shows.values())]
    for row, line in enumerate(lines[: (tall - 56) // 20]):
        y = 62 + row * 20
        cells = [_written(line.latest, "short") if key == "Value" else line.labels.get(key, "") for key in panel.shows]
        parts.append(f'<line x1="10" x2="{width - 10}" y1="{y - 14}" y2="{y - 14}" stroke="{LINE}"/>')
        parts += [_text(10 + step * at, y, text, size=11) for at, text in enumerate(cells)]
    return parts


def _bars(panel: dashboards.Panel, lines: list[Series], width: int, tall: int) -> list[str]:
    most = max((line.latest or 0 for line in lines), default=0) or 1
    parts = []
    for number, line in enumerate(lines[: (tall - 40) // 34]):
        y = 40 + number * 34
        long = (width - 230) * (line.latest or 0) / most
        parts += [
            _text(10, y + 16, line.name, size=12),
            f'<rect x="110" y="{y}" width="{long:.0f}" height="22" fill="{COLORS[number % len(COLORS)]}"/>',
            _text(118 + long, y + 16, _written(line.latest, panel.unit), size=12),
        ]
    return parts


def _text(x: float, y: float, text: str, *, size: int, color: str = INK, weight: str = "", anchor: str = "") -> str:
    more = (f' font-weight="{weight}"' if weight else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{color}"{more}>{escape(text)}</text>'


def _written(value: float | None, unit: str) -> str:
    if value is None:
        return "No data"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    plain = {"percent": " %", "celsius": " °C", "short": "", "pps": " p/s", "ops": " ops/s", "reqps": " req/s"}
    if unit == "ms" and 1000 <= value < 60000:
        value, unit = value / 1000, "s"
    if unit == "ms":
        return f"{value / 60000:.3g} min" if value >= 60000 else f"{value:.3g} ms"
    if unit == "s":
        return f"{value:.3g} s"
    if unit == "decmbytes":
        value, unit = value * 1e6, "bytes"
    base, ending = (1024, {"bytes": "iB", "Bps": "iB/s"}[unit]) if unit in {"bytes", "Bps"} else (1000, "")
    power = 0
    while abs(value) >= base and power < 4:
        value, power = value / base, power + 1
    prefix = ("", "K" if base == 1024 else "k", "M", "G", "T")[power]
    plain["watt"] = "W" if prefix else " W"
    if base == 1024:
        return f"{value:.3g} {prefix + ending if prefix else ending.replace('i', '')}"
    return f"{value:.3g}{' ' + prefix if prefix else ''}{plain.get(unit, '')}"


def main() -> None:
    """Write a picture of each dashboard."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Prometheus(Path(folder)) as prometheus:
        for dashboard in dashboards.DASHBOARDS:
            (PICTURES / f"grafana-{dashboard.name}.svg").write_text(drawn(dashboard, prometheus), encoding="utf-8")


if __name__ == "__main__":
    main()
