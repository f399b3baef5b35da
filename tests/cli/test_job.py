"""`hyperpod-cdk job`: manifests that fit, admission before submission, a log judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run
from tests.support.answers import answered

LOGS = (
    "kubectl logs -n hyperpod-ns-john -l app.kubernetes.io/instance=nccl-a10g,app.kubernetes.io/component=launcher"
    " --prefix --tail=-1 --max-log-requests=5 | hyperpod-cdk job report"
)
REPORTS = Path(__file__).parents[1] / "workloads" / "report" / "logs"


def _job(workspace: Path, text: str, name: str = "job.yaml") -> Path:
    path = workspace / name
    path.write_text(text, encoding="utf-8")
    return path


def _fsdp(project: Path, team: str) -> str:
    return (project / "examples" / "jobs" / f"{team}-fsdp.yaml").read_text(encoding="utf-8")


def test_a_test_of_a_group_is_yaml_on_standard_output_and_steps_beside_it(run_process: Run) -> None:
    done = run_process("job", "render", "dev", "--group", "a10g", "--kind", "nccl", "--nodes", "2", "--team", "john")
    assert done.returncode == 0
    (manifest,) = yaml.safe_load_all(done.stdout)
    assert (manifest["kind"], manifest["metadata"]["namespace"]) == ("MPIJob", "hyperpod-ns-john")
    assert manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    assert done.stderr.splitlines() == [
        "# start it: pipe the manifests into",
        "kubectl apply -f -",
        "# watch it",
        "kubectl get mpijob,pods -n hyperpod-ns-john -l app.kubernetes.io/instance=nccl-a10g",
        "kubectl get workloads.kueue.x-k8s.io -n hyperpod-ns-john",
        LOGS,
        "# remove it",
        "kubectl delete mpijob -n hyperpod-ns-john -l app.kubernetes.io/instance=nccl-a10g",
    ]


def test_the_same_goes_into_a_file_and_into_json(run: Run, workspace: Path) -> None:
    options = ("job", "render", "dev", "--group", "a10g", "--kind", "efa-info", "--team", "smith", "--nodes", "1")
    plain = run(*options)
    written = run(*options, "--out", "efa.yaml")
    assert (written.returncode, written.stdout) == (0, "")
    assert written.stderr.startswith("wrote efa.yaml\n# start it\nkubectl apply -f efa.yaml\n")
    assert (workspace / "efa.yaml").read_text(encoding="utf-8") == plain.stdout
    told = answered("job-manifests", run(*options, "--format", "json").stdout)
    assert told["manifests"] == list(yaml.safe_load_all(plain.stdout))
    assert told["next"]["apply"] == "kubectl apply -f -"
    assert told["warnings"] == []


def test_options_win_over_the_job_file(run: Run, workspace: Path, project: Path) -> None:
    file = _job(workspace, _fsdp(project, "john"))
    done = run("job", "render", "dev", "--job", str(file), "--nodes", "3", "--name", "longer")
    (manifest,) = yaml.safe_load_all(done.stdout)
    assert manifest["metadata"]["name"] == "longer"
    assert manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 3


def test_a_wrong_job_is_refused_with_all_its_mistakes(run: Run, workspace: Path, project: Path) -> None:
    text = _fsdp(project, "john").replace("group: a10g", "group: a10").replace("team: john", "team: jon")
    done = run("job", "render", "dev", "--job", str(_job(workspace, text)))
    # standard output is what kubectl would apply
    assert (done.returncode, done.stdout) == (1, "")
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == [
        "job.yaml",
        "job.yaml",
        "1 of 1 file refused, 2 errors",
    ]
    assert "did you mean a10g?" in done.stderr
    assert "did you mean john?" in done.stderr
    told = answered("validate", run("job", "render", "dev", "--job", "job.yaml", "--format", "json").stdout)
    assert (told["passed"], len(told["files"][0]["findings"])) == (False, 2)


def test_a_wrong_environment_is_no_manifest_either(run: Run, workspace: Path) -> None:
    (workspace / "environments" / "dev.yaml").write_text("name: dev\n", encoding="utf-8")
    done = run("job", "render", "dev", "--group", "a10g", "--kind", "nccl")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("1 of 1 file refused, ")


def test_what_options_get_wrong_is_found_at_the_option(run: Run) -> None:
    done = run("job", "render", "dev", "--group", "a10g", "--kind", "nccom", "--team", "john")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("--kind: ")
    assert done.stderr.splitlines()[-1] == "refused, 1 error"


def test_a_job_file_that_is_not_there_is_one_line(run: Run) -> None:
    done = run("job", "render", "dev", "--job", "nowhere.yaml")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].startswith("nowhere.yaml: does not exist; ")


@pytest.mark.parametrize("out", ["nowhere/job.yaml", "environments"])
def test_what_cannot_be_written_is_named_as_the_user_did(run: Run, out: str) -> None:
    done = run("job", "render", "dev", "--group", "a10g", "--kind", "nccl", "--team", "john", "--out", out)
    why = "Is a directory" if out == "environments" else "No such file or directory"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"cannot write {out}: {why}"


def test_two_teams_fill_the_cluster_by_borrowing(run: Run, workspace: Path, project: Path) -> None:
    john = _job(workspace, _fsdp(project, "john"), "john.yaml")
    smith = _job(workspace, run("job", "render", "dev", "--job", _smith(workspace, project)).stdout, "manifests.yaml")
    done = run("job", "admit", "dev", str(john), str(smith), "--format", "json")
    assert done.returncode == 0
    decisions = answered("admission", done.stdout)["decisions"]
    assert [each["status"] for each in decisions] == ["admitted", "admitted"]
    assert [each["after"]["nvidia.com/gpu"]["percent"] for each in decisions] == [50.0, 100.0]
    assert decisions[1]["lenders"] == ["john"]
    assert run("job", "admit", "dev", str(john), str(smith)).stdout.splitlines() == [
        "          team   own quota         borrowed          cluster after  job",
        "admitted  john   8 nvidia.com/gpu  -                 50 %           PyTorchJob hyperpod-ns-john/fsdp",
        "admitted  smith  4 nvidia.com/gpu  4 nvidia.com/gpu  100 %          PyTorchJob hyperpod-ns-smith/fsdp",
        "",
        "PyTorchJob hyperpod-ns-john/fsdp: within the quota of john",
        (
            "PyTorchJob hyperpod-ns-smith/fsdp: borrows 4 nvidia.com/gpu, 1 vpc.amazonaws.com/efa, 40 vCPUs and 114 GiB"
            " of memory of ml.g5.12xlarge, idle in the quota of john"
        ),
    ]


def test_who_had_to_stop_is_reported_at_the_end(run: Run, workspace: Path, project: Path) -> None:
    smith = _smith(workspace, project)
    text = _fsdp(project, "john").replace("nodes: 2", "nodes: 3")
    done = run("job", "admit", "dev", smith, str(_job(workspace, text)))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == [
        "running at the end: PyTorchJob hyperpod-ns-john/fsdp",
        "waiting at the end: PyTorchJob hyperpod-ns-smith/fsdp",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
            "must contain a job, got objects that no queue admits; omit it",
        ),
        ("{apiVersion: v1, kind: List, items: []}", "must contain a job, got objects that no queue admits; omit it"),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: 3}}",
            "Job a: spec.template: must be a mapping, got 3",
        ),
    ],
)
def test_manifests_that_are_no_jobs_are_one_line(run: Run, workspace: Path, text: str, says: str) -> None:
    done = run("job", "admit", "dev", str(_job(workspace, text)))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{workspace / 'job.yaml'}: {says}\n")


def test_one_job_is_not_submitted_twice(run: Run, workspace: Path, project: Path) -> None:
    file = _job(workspace, _fsdp(project, "john"))
    done = run("job", "admit", "dev", "job.yaml", "job.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == f"{file.name}: must have a unique name, got PyTorchJob hyperpod-ns-john/fsdp again; give it another name\n"
    )


def _smith(workspace: Path, project: Path) -> str:
    return str(_job(workspace, _fsdp(project, "smith"), "smith.yaml"))


def test_a_job_that_never_starts_is_exit_code_1(run: Run, workspace: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "big",
            "namespace": "hyperpod-ns-smith",
            "labels": {"kueue.x-k8s.io/queue-name": "hyperpod-ns-smith-localqueue"},
        },
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": 9}}}]},
    }
    file = _job(workspace, yaml.safe_dump(pod))
    done = run("job", "admit", "dev", str(file))
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].split()[0] == "never"


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 0), (("--strict",), 1), (("--instance-type", "ml.g5.8xlarge", "--strict"), 1)],
)
def test_a_log_is_judged(run: Run, options: tuple[str, ...], code: int) -> None:
    done = run("job", "report", str(REPORTS / "nccl-g5-8xlarge.log"), *options, "--format", "json")
    assert done.returncode == code
    report = answered("job-report", done.stdout)
    assert report["verdict"] == "unknown"
    (measured,) = report["runs"]
    assert (measured["plateau_gb_s"], measured["average_gb_s"]) == (2.88, 1.35737)


def test_standard_input_is_judged_too(run_process: Run) -> None:
    log = REPORTS / "nccl-g5-8xlarge.log"
    with log.open("rb") as piped:
        done = run_process("job", "report", "--strict", stdin=piped)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("unknown ")


def test_evidence_is_written_as_json(run: Run, workspace: Path) -> None:
    done = run("job", "report", str(REPORTS / "nccl-g5-8xlarge.log"), "--out", "report.json")
    assert (done.returncode, done.stdout.split()[0]) == (0, "unknown")
    assert json.loads((workspace / "report.json").read_text(encoding="utf-8"))["verdict"] == "unknown"


def test_no_test_and_no_file_are_exit_code_2(run: Run, workspace: Path) -> None:
    empty = _job(workspace, "nothing\n", "empty.log")
    assert run("job", "report", str(empty)).returncode == 2
    missing = run("job", "report", "missing.log")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "cannot read missing.log: No such file or directory; name the log of one job\n"
    unknown = run("job", "report", str(REPORTS / "nccl-g5-8xlarge.log"), "--instance-type", "ml.g5.8xlarg")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr.startswith("--instance-type: ")
