"""`hyperpod-cdk job`: manifests that fit, admission before submission, a log judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Run

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


def test_a_test_of_a_group_is_yaml_on_standard_output_and_steps_beside_it(run: Run) -> None:
    done = run("job", "render", "dev", "--group", "a10g", "--kind", "nccl", "--nodes", "2", "--team", "john")
    assert done.returncode == 0
    (manifest,) = yaml.safe_load_all(done.stdout)
    assert (manifest["kind"], manifest["metadata"]["namespace"]) == ("MPIJob", "hyperpod-ns-john")
    assert manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    assert done.stderr.splitlines() == [
        "# start it",
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
    answer: dict[str, Any] = json.loads(run(*options, "--format", "json").stdout)
    assert answer["manifests"] == list(yaml.safe_load_all(plain.stdout))
    assert answer["next"]["apply"] == "kubectl apply -f -"
    assert answer["warnings"] == []


def test_options_win_over_the_job_file(run: Run, workspace: Path, project: Path) -> None:
    file = _job(workspace, _fsdp(project, "john"))
    done = run("job", "render", "dev", "--job", str(file), "--nodes", "3", "--name", "longer")
    (manifest,) = yaml.safe_load_all(done.stdout)
    assert manifest["metadata"]["name"] == "longer"
    assert manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 3


def test_a_wrong_job_is_refused_with_all_its_mistakes(run: Run, workspace: Path, project: Path) -> None:
    text = _fsdp(project, "john").replace("group: a10g", "group: a10").replace("team: john", "team: jon")
    done = run("job", "render", "dev", "--job", str(_job(workspace, text)))
    assert done.returncode == 1
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "job.yaml",
        "job.yaml",
        "1 of 1 file refused, 2 errors",
    ]
    assert "did you mean a10g?" in done.stdout
    assert "did you mean john?" in done.stdout


def test_what_options_get_wrong_is_found_at_the_option(run: Run) -> None:
    done = run("job", "render", "dev", "--group", "a10g", "--kind", "nccom", "--team", "john")
    assert done.returncode == 1
    assert done.stdout.startswith("--kind: ") or done.stdout.startswith("--group: ")
    assert done.stdout.splitlines()[-1] == "refused, 1 error"


def test_a_job_file_that_is_not_there_is_one_line(run: Run) -> None:
    done = run("job", "render", "dev", "--job", "nowhere.yaml")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("nowhere.yaml: is not there; ")


def test_two_teams_fill_the_cluster_by_borrowing(run: Run, workspace: Path, project: Path) -> None:
    john = _job(workspace, _fsdp(project, "john"), "john.yaml")
    smith = _job(workspace, run("job", "render", "dev", "--job", _smith(workspace, project)).stdout, "manifests.yaml")
    done = run("job", "admit", "dev", str(john), str(smith), "--format", "json")
    assert done.returncode == 0
    decisions = json.loads(done.stdout)["decisions"]
    assert [each["status"] for each in decisions] == ["admitted", "admitted"]
    assert [each["after"]["nvidia.com/gpu"]["percent"] for each in decisions] == [50.0, 100.0]
    assert decisions[1]["lenders"] == ["john"]
    text = run("job", "admit", "dev", str(john), str(smith)).stdout.splitlines()
    assert text[0].split() == ["job", "team", "own", "quota", "borrowed", "cluster", "after"]
    assert [line.split()[0] for line in text[1:3]] == ["admitted", "admitted"]


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
def test_a_log_is_judged(options: tuple[str, ...], code: int) -> None:
    with (REPORTS / "nccl-g5-8xlarge.log").open("rb") as log:
        done = _report(*options, "--format", "json", stdin=log)
    assert done.returncode == code
    report = json.loads(done.stdout)
    assert report["verdict"] == "unknown"
    (measured,) = report["runs"]
    assert (measured["plateau_gb_s"], measured["average_gb_s"]) == (2.88, 1.35737)


def test_evidence_is_written_as_json(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    done = _report(str(REPORTS / "nccl-g5-8xlarge.log"), "--out", str(out))
    assert (done.returncode, done.stdout.split()[0]) == (0, "unknown")
    assert json.loads(out.read_text(encoding="utf-8"))["verdict"] == "unknown"


def test_no_test_and_no_file_are_exit_code_2(tmp_path: Path) -> None:
    empty = tmp_path / "empty.log"
    empty.write_text("nothing\n", encoding="utf-8")
    assert _report(str(empty)).returncode == 2
    missing = _report(str(tmp_path / "missing.log"))
    assert missing.returncode == 2
    assert missing.stderr.endswith("missing.log: No such file or directory\n")
    unknown = _report(str(REPORTS / "nccl-g5-8xlarge.log"), "--instance-type", "ml.g5.8xlarg")
    assert (unknown.returncode, unknown.stderr.splitlines()[0].startswith("--instance-type: ")) == (2, True)


def _report(*arguments: str, stdin: Any = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from hyperpod_cdk.cli import main; main()", "job", "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=stdin)
