"""From a job file and options to a job: lines, options that win, names, files that cannot be read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.workloads.job import KINDS, TRAINING, Job
from hyperpod_cdk.workloads.loading import JobFileError, LoadedJob, load_job
from hyperpod_cdk.workloads.plan import plan
from tests.workloads.test_rules import environment

FILE = Path("jobs/llama.yaml")
TEXT = """\
kind: hyperpod-pytorch
name: llama
group: h100
team: research
nodes: 2
image: registry.example.com/llama:1
command: [train.py, --steps, "1000"]
volumes:
  - { claim: scratch, mount_path: /data }
checkpoints:
  path: /data/runs
"""


@pytest.fixture(scope="module")
def lab() -> LoadedEnvironment:
    """The environment of the table."""
    return environment(None, ())


def lines(environment: LoadedEnvironment, path: Path | None, text: str | None = None, **overrides: object) -> list[str]:
    with pytest.raises(JobFileError) as caught:
        load_job(path, environment=environment, overrides=overrides, text=text)
    assert isinstance(caught.value, EnvironmentFileError)
    assert str(caught.value) == "\n".join(finding.render() for finding in caught.value.findings)
    return [finding.render() for finding in caught.value.findings]


def test_a_job_of_a_file(lab: LoadedEnvironment) -> None:
    loaded = load_job(FILE, environment=lab, text=TEXT)
    assert (loaded.job.name, loaded.job.kind, loaded.job.group) == ("llama", "hyperpod-pytorch", "h100")
    assert loaded.job.command == ("train.py", "--steps", "1000")
    assert (loaded.file, loaded.warnings) == ("jobs/llama.yaml", ())


def test_a_job_of_options_gets_a_name(lab: LoadedEnvironment) -> None:
    loaded = load_job(
        None, environment=lab, overrides={"kind": "nccl", "group": "h100", "team": "research", "nodes": 2}
    )
    assert (loaded.job.name, loaded.file, loaded.line_of("nodes")) == ("nccl-h100", "", None)
    assert plan(lab.environment, loaded.job).name == loaded.job.name


@pytest.mark.parametrize(
    ("place", "s3_uri"),
    [
        ("s3://lab-checkpoints/llama", "s3://lab-checkpoints/llama"),
        ("s3://lab-checkpoints/llama/", "s3://lab-checkpoints/llama"),
        ("s3://lab-checkpoints/llama", "s3://lab-checkpoints/llama/7b/"),
        ("lab-checkpoints", "s3://lab-checkpoints/llama"),
        ("s3://lab-checkpoints", "lab-checkpoints"),
    ],
)
def test_addresses_inside_what_the_account_may_write(place: str, s3_uri: str) -> None:
    granting = environment(None, (("[s3://lab-checkpoints/llama]", f"[{place}]"),))
    text = TEXT.replace("  path: /data/runs\n", f"  tiered: true\n  s3_uri: {s3_uri}\n") + "service_account: trainer\n"
    assert load_job(FILE, environment=granting, text=text).warnings == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[train.py, --steps,", "[./train.sh,"),
        ("claim: scratch, mount_path: /data", "claim: scratch, mount_path: /data, sub_path: llama"),
        ("path: /data/runs", "path: /data"),
        ("llama:1", "llama@sha256:" + "0" * 64),
        (
            "nodes: 2",
            "nodes: 2\nefa_per_node: 32\nvcpu_per_node: 179\nmemory_gib_per_node: 1439\nshared_memory_gib: 1439",
        ),
        ("nodes: 2", "nodes: 2\npriority: training"),
        ("nodes: 2", "nodes: 2\npassed_deep_health_checks: true"),
        ("nodes: 2", "nodes: 1\nrestart: { spares: 1, evaluation_seconds: 3600 }"),
        ("nodes: 2", "nodes: 2\nelastic: { min_nodes: 1, max_nodes: 3, increment: 1 }"),
    ],
)
def test_what_is_right_at_its_bounds(lab: LoadedEnvironment, old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert load_job(FILE, environment=lab, text=TEXT.replace(old, new)).warnings == ()


def test_a_diagnostic_of_minutes_may_run_on_spot_nodes(lab: LoadedEnvironment) -> None:
    text = "kind: dcgm\ngroup: spot\nteam: research\nmeasure: { diagnostic_level: 3 }\n"
    assert "spot" not in " ".join(
        warning.message.lower() for warning in load_job(FILE, environment=lab, text=text).warnings
    )


def test_lines_of_what_is_there_and_of_what_is_not(lab: LoadedEnvironment) -> None:
    loaded = load_job(FILE, environment=lab, text=TEXT)
    places = ("nodes", "volumes[0].claim", "checkpoints.path", "checkpoints.s3_uri", "topology", "nodes..")
    assert [loaded.line_of(place) for place in places] == [5, 9, 11, 10, 1, None]


def test_an_option_wins_over_the_file_and_has_no_line(lab: LoadedEnvironment) -> None:
    loaded = load_job(FILE, environment=lab, overrides={"nodes": 3}, text=TEXT)
    assert (loaded.job.nodes, loaded.line_of("nodes"), loaded.line_of("team")) == (3, None, 4)
    assert [(each.path, each.file, each.line) for each in loaded.warnings] == [("--nodes", "", None)]


def test_an_option_overrides_an_error_in_the_file(lab: LoadedEnvironment) -> None:
    text = TEXT.replace("nodes: 2", 'nodes: "two"')
    assert lines(lab, FILE, text) == [
        'jobs/llama.yaml:5 nodes: must be a whole number, got "two"; write digits, such as nodes: 2',
    ]
    assert load_job(FILE, environment=lab, overrides={"nodes": 2}, text=text).job.nodes == 2


def test_options_of_the_measurement_leave_the_rest_of_it(lab: LoadedEnvironment) -> None:
    text = "kind: nccl\ngroup: h100\nteam: research\nnodes: 2\nmeasure: { min_bytes: 1024 }\n"
    overrides = {"collectives": ("all_gather", "alltoall"), "pairs": True}
    measure = load_job(FILE, environment=lab, overrides=overrides, text=text).job.measure
    assert (measure.min_bytes, measure.collectives, measure.pairs) == (1024, ("all_gather", "alltoall"), True)


def test_what_is_wrong_with_a_measurement_is_found_at_its_own_option(lab: LoadedEnvironment) -> None:
    overrides = {"kind": "nccl", "group": "h100", "team": "research", "nodes": 2, "max_bytes": 1000, "min_bytes": 2000}
    with pytest.raises(JobFileError) as refused:
        load_job(None, environment=lab, overrides={**overrides, "iterations": 0})
    assert [each.render() for each in refused.value.findings] == [
        "--iterations: must be at least 1, got 0; set iterations: 1 or more",
        "--min-bytes: must be at most max_bytes, 1000, got 2000; set min_bytes: 1000 or less",
    ]


def test_an_unknown_override_is_a_mistake_of_the_caller(lab: LoadedEnvironment) -> None:
    measured = "collectives, min_bytes, max_bytes, iterations, pairs, diagnostic_level"
    with pytest.raises(ValueError, match=f'^must be a field of a job or one of {measured}, got "node"$'):
        load_job(None, environment=lab, overrides={"node": 2})


def test_errors_of_values_and_of_rules_come_together_with_warnings(lab: LoadedEnvironment) -> None:
    text = TEXT.replace("claim: scratch", "claim: scratsh").replace(":1\n", ":latest\n") + "namespce: l\n"
    assert lines(lab, FILE, text) == [
        (
            "jobs/llama.yaml:6 image: registry.example.com/llama:latest is whatever image has this tag when a"
            " node pulls it, so a pod that is replaced may run other code than the others; specify a version or a"
            " digest"
        ),
        (
            "jobs/llama.yaml:9 volumes[0].claim: must be a claim of lab in hyperpod-ns-research (scratch, corpus,"
            ' results or runs), got "scratsh"; did you mean scratch?'
        ),
        "jobs/llama.yaml:12 namespce: is not a known key here; did you mean namespace?",
    ]


def test_files_that_cannot_be_read(lab: LoadedEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes.yaml").write_bytes(b"kind: nccl\nname: \xff\n")
    (tmp_path / "large.yaml").write_bytes(b"#" * 1_000_001)
    (tmp_path / "good.yaml").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert lines(lab, Path("none.yaml")) == [
        "none.yaml: does not exist; write it, or name another; 'job render --group GROUP --kind nccl' needs none"
    ]
    assert lines(lab, Path("folder")) == ["folder: is a folder; name the file itself"]
    assert lines(lab, Path("bytes.yaml")) == ["bytes.yaml:2: is not UTF-8 text: byte 0xff; save it as UTF-8"]
    assert lines(lab, Path("large.yaml")) == [
        "large.yaml: must have at most 1000000 bytes, got 1000001; a job file is much smaller: name the right file"
    ]
    assert load_job(tmp_path / "good.yaml", environment=lab).file == "good.yaml"


def test_what_is_too_deep(lab: LoadedEnvironment) -> None:
    assert lines(lab, FILE, "command: " + "[" * 40 + "]" * 40) == [
        "jobs/llama.yaml:1: is nested deeper than 32 levels; a job file needs fewer than 10"
    ]


def test_loading_a_job_starts_neither_cdk_nor_boto3() -> None:
    code = (
        "import sys, hyperpod_cdk.workloads.loading;"
        "print([m for m in ('aws_cdk', 'jsii', 'boto3', 'hyperpod_cdk.checks', 'rapidfuzz') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


counts = st.sampled_from([1, 2, 3, 4, 8, 16])
LLAMA = {"name": "llama", "image": "registry.example.com/llama:1", "command": ["train.py"]}
jobs = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "group": st.sampled_from(["h100", "a10g", "trn1", "slices", "spot", "elastic"]),
        "nodes": st.sampled_from([1, 2, 2, 3, 4, 5]),
    },
    optional={
        "team": st.sampled_from(["research", "vision"]),
        "accelerators_per_node": counts,
        "efa_per_node": counts,
        "vcpu_per_node": counts,
        "memory_gib_per_node": counts,
        "shared_memory_gib": counts,
        "elastic": st.fixed_dictionaries({"min_nodes": counts, "max_nodes": counts}, optional={"increment": counts}),
    },
).map(lambda data: {**data, **(LLAMA if data["kind"] in TRAINING else {})})


@given(data=jobs)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_passes_the_rules_can_be_planned_within_a_node(lab: LoadedEnvironment, data: dict[str, Any]) -> None:
    try:
        loaded = load_job(FILE, environment=lab, text=json.dumps(data))  # JSON is YAML
    except JobFileError as error:
        refused = error
    else:
        _require_fit(lab, loaded)
        return
    errors = [finding for finding in refused.findings if finding.severity is Severity.ERROR]
    assert errors
    assert all("; " in finding.message for finding in errors)


def _require_fit(lab: LoadedEnvironment, loaded: LoadedJob) -> None:
    planned = plan(lab.environment, loaded.job)
    assert planned.name == loaded.job.name
    assert planned.accelerators <= planned.shape.accelerator_count
    assert planned.vcpu <= planned.shape.vcpu
    assert planned.shared_memory_gib <= planned.memory_gib <= planned.shape.memory_gib
    assert planned.nodes <= planned.group.count or planned.is_autoscaled
    assert planned.efa <= (planned.shape.efa_count or 0)


scraps = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.sampled_from(["", "h100", "research", "0x1f", "${a}", "a\nb"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["claim", "path", "pairs", "min_nodes", "pattern", "spares", "x"]), inner, max_size=2
        )
    ),
    max_leaves=6,
)


@given(data=st.dictionaries(st.sampled_from([*Job.model_fields, "nods"]), scraps), override=scraps)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_file_says_is_answered_with_findings(
    lab: LoadedEnvironment, data: dict[str, Any], override: object
) -> None:
    """A rule over several values must not stumble over one that is wrong by itself."""
    findings = lines(lab, FILE, json.dumps({**data, "elastic": {"min_nodes": "two"}}), pairs=override)
    assert all("\n" not in finding for finding in findings)
    assert any("elastic.max_nodes" in finding for finding in findings)
