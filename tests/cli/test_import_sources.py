"""`hyperpod-cdk import` of parameters of AWS's set-up stack and of variables of AWS's Terraform module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Run

SOURCES: dict[str, dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "import_sources.yaml").read_text("utf-8"), yaml.CSafeLoader
)
GROUP = '{"InstanceGroupName": "a", "InstanceType": "ml.m5.2xlarge", "InstanceCount": 1'
WORDS = ("--name", "lab", "--account", "111122223333", "--zone", "use1-az5", "--zone", "use1-az4")
UNKNOWN = (
    "cannot be imported: it must be a request of CreateCluster (with InstanceGroups), an answer of DescribeCluster,"
    " parameters of AWS's set-up stack (with InstanceGroupSettings1), variables of AWS's Terraform module (with"
    " instance_groups) or its state; name the right file"
)


@pytest.fixture(autouse=True)
def app(workspace: Path) -> Path:
    """Make the folder a project, which has an app."""
    path = workspace / "app.py"
    path.touch()
    return path


@pytest.mark.parametrize("name", SOURCES)
def test_sources(run: Run, workspace: Path, name: str) -> None:
    row = SOURCES[name]
    (workspace / row["file"]).write_text(row["text"], encoding="utf-8")
    done = run("import", row["file"], "--name", "lab", *row["words"])
    assert (done.returncode, done.stderr) == (row["exit"], "")
    assert done.stdout.splitlines()[1:-1] == row["says"]
    text = (workspace / "environments" / "lab.yaml").read_text(encoding="utf-8")
    assert text.partition("\n\nname: ")[2] == row["writes"].removeprefix("name: ")
    # what was said of it is what validate says
    assert run("validate", "lab").returncode == row["exit"]


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("Terraform") and "older" not in name])
def test_json_says_the_same(run: Run, workspace: Path, name: str) -> None:
    row = SOURCES[name]
    (workspace / "x.tfvars").write_text(row["text"], encoding="utf-8")
    done = run("import", "x.tfvars", "--name", "lab", "--format", "json", *row["words"])
    found = json.loads(done.stdout)
    assert (found["kind"], found["passed"], len(found["notes"])) == ("terraform", row["exit"] == 0, len(row["says"]))


BAD = {
    "a list of other parameters": (
        "params.json",
        '[{"ParameterKey": "Vpc", "ParameterValue": "x"}]',
        f"params.json:1: {UNKNOWN}",
    ),
    "groups that are no JSON": (
        "params.json",
        json.dumps({"InstanceGroupSettings1": "[{"}),
        "params.json InstanceGroupSettings1:1: is not JSON: expecting ',' delimiter",
    ),
    "groups that are no list": (
        "params.json",
        json.dumps({"InstanceGroupSettings1": "{}"}),
        "params.json:1 InstanceGroupSettings1: must be a list of groups as text",
    ),
    "a group of Slurm": (
        "params.json",
        json.dumps({"InstanceGroupSettings1": f'[{GROUP}, "InstanceGroupType": "Controller"}}]'}),
        (
            "params.json:1 InstanceGroupSettings1[0].InstanceGroupType: is for Slurm; this library is for HyperPod on"
            " EKS"
        ),
    ),
    "no cluster": (
        "params.json",
        json.dumps({"CreateHyperPodClusterStack": "false"}),
        "params.json:1 CreateHyperPodClusterStack: is false: there is no HyperPod cluster to import",
    ),
    "a size in words": (
        "params.json",
        json.dumps({"InstanceGroupSettings1": "[]", "StorageCapacity": "much"}),
        "params.json:1 StorageCapacity: must be a whole number, got much",
    ),
    "an expression": (
        "x.tfvars",
        "instance_groups = var.groups\n",
        "x.tfvars:1: needs literal values; heredocs and expressions are not read, got .",
    ),
    "a call": (
        "x.tfvars",
        "hyperpod_cluster_name = upper\n",
        "x.tfvars:1: needs a literal value: text in quotes, a number, true, false, null, [...] or {...}, got upper",
    ),
    "a template": (
        "x.tfvars",
        'hyperpod_cluster_name = "a-${b}"\n',
        'x.tfvars:1: needs literal text, without ${...} and %{...}, got "a-${b}"',
    ),
    "a heredoc": (
        "x.tfvars",
        "hyperpod_cluster_name = <<EOT\nx\nEOT\n",
        "x.tfvars:1: needs literal values; heredocs and expressions are not read, got <",
    ),
    "half a character": (
        "x.tfvars",
        'a = "\\ud800"\n',
        'x.tfvars:1: has an escape that is not a character, got "\\ud800"',
    ),
    "half a character in JSON": (
        "params.json",
        '{"InstanceGroupSettings1": "\\ud800"}',
        "params.json: is not JSON: it has half of a surrogate pair",
    ),
    "an end too early": (
        "x.tfvars",
        "instance_groups = [\n",
        (
            "x.tfvars:2: needs a literal value: text in quotes, a number, true, false, null, [...] or {...}, got the"
            " end of the file"
        ),
    ),
    "two in a line": (
        "x.tfvars",
        "a = 1 b = 2\n",
        "x.tfvars:1: needs a new line after a value, got b",
    ),
    "twice": (
        "x.tfvars",
        "a = 1\na = 2\n",
        "x.tfvars:2: a is written twice, first on line 1; keep one of the two, got a",
    ),
    "no comma": ("x.tfvars", "a = [1 2]\n", "x.tfvars:1: needs , or ] after an item, got 2"),
    "no new line": ("x.tfvars", "a = { b = 1 c = 2 }\n", "x.tfvars:1: needs a new line, , or } after a value, got c"),
    "a wrong escape": ("x.tfvars", 'a = "\\q"\n', 'x.tfvars:1: has the unknown escape \\q, got "\\q"'),
    "an escape of no character": (
        "x.tfvars",
        'a = "\\UFFFFFFFF"\n',
        'x.tfvars:1: has an escape that is not a character, got "\\UFFFFFFFF"',
    ),
    "a long number": (
        "x.tfvars",
        f"a = {'1' * 41}\n",
        f"x.tfvars:1: needs a number of at most 40 characters, got {'1' * 41}",
    ),
    "deep": ("x.tfvars", "a = " + "[" * 5000, "x.tfvars:1: nests deeper than 32 levels, got ["),
    "variables of another module": ("x.tfvars", "bucket = 1\n", f"x.tfvars:1: {UNKNOWN}"),
    "a group without a type": (
        "x.tfvars",
        'instance_groups = [\n  {name = "a", instance_count = 1}\n]\n',
        "x.tfvars:2 instance_groups[0]: instance_type is missing",
    ),
    "a count in quotes": (
        "x.tfvars",
        'instance_groups = [\n  {name = "a", instance_type = "ml.m5.2xlarge", instance_count = "1"}\n]\n',
        'x.tfvars:2 instance_groups[0].instance_count: must be a whole number, got "1"',
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_sources(run: Run, workspace: Path, name: str) -> None:
    file, text, wanted = BAD[name]
    (workspace / file).write_text(text, encoding="utf-8")
    done = run("import", file, *WORDS)
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, wanted)
    assert not (workspace / "environments" / "lab.yaml").exists()


def test_literals(run: Run, workspace: Path) -> None:
    (workspace / "x.tfvars").write_text(
        '/* a\n   comment */ # another\naws_region = "us-east-1" // and one more\n'
        'hyperpod_cluster_name : "x"\n'.replace(" :", " =")
        + 'instance_groups = [{ "name" : "a", instance_type = "ml.m5.2xlarge", instance_count = 1.0,\n'
        '  availability_zone_id = "use1-az5", threads_per_core = 2, ebs_volume_size_in_gb = 1e2\n'
        '  labels = { "example.com/\\u0061" = "b", c = "$${d}", }, image_id = null, },]\n'.replace("$${d}", "d"),
        encoding="utf-8",
    )
    done = run("import", "x.tfvars", *WORDS)
    assert (done.returncode, done.stderr) == (0, "")
    text = (workspace / "environments" / "lab.yaml").read_text(encoding="utf-8")
    (group,) = yaml.safe_load(text)["hyperpod"]["instance_groups"]
    assert group == {
        "name": "a",
        "instance_type": "ml.m5.2xlarge",
        "count": 1,
        "availability_zone_id": "use1-az5",
        "labels": {"example.com/a": "b", "c": "d"},
        "volume_gib": 100,
    }


@pytest.mark.parametrize("kind", ["create-cluster", "setup"])
def test_a_source_that_is_given_as_another(run: Run, workspace: Path, kind: str) -> None:
    name = "Terraform, everything existing"
    (workspace / "x.json").write_text(SOURCES[name]["text"], encoding="utf-8")
    done = run("import", "x.json", *WORDS, "--from", kind)
    if kind == "create-cluster":
        assert done.returncode == 1
        assert done.stdout.startswith("x.json:1 Orchestrator: must be Eks, got Slurm")
    else:
        # a template of parameters without any group is still one
        assert "lost x.json:3 create_vpc_module: is unknown here and was not imported" in done.stdout
