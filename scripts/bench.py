"""Measures synthesis and validation next to a reference in the same run; prints medians without a verdict.

Each measurement starts a complete process, alternating A and B, so that changes of the machine affect both.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.packaged_node import use_packaged_node
from hyperpod_cdk.templates.assembly import MOST_RESOURCES
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.process import EmbeddedAws

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.support.largest import GROUPS, ZONES, largest_environment  # noqa: E402 - a script adds its project to the path itself
from tests.support.many_nodes import ACCOUNT, REGION, many_nodes  # noqa: E402 - as above
from tests.support.many_nodes import environment as many_nodes_environment  # noqa: E402 - as above

RUNS = 5
EMPTY_APP = """
import aws_cdk as cdk
app = cdk.App(builtin_cloud_formation_validation=False)
cdk.Stack(app, "Empty")
app.synth()
"""
HYP_VERSION = "3.12.0"
LATENCY_MS = 100
LOG_LINES = 500_000


@dataclass(frozen=True)
class Measured:
    """Seconds of each run."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median."""
        return statistics.median(self.seconds)


def main() -> None:
    """Run every comparison and print one table."""
    use_packaged_node()
    # as pip compiles installed packages, compile ours: otherwise they, but not CDK, might be compiled at each start
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    table = Table(title=f"median of {RUNS} whole processes, seconds", title_justify="left")
    for column in ("ours", "s", "reference", "s", "ratio", "at most"):
        table.add_column(column, justify="right" if column in ("s", "ratio", "at most") else "left")
    with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as scratch:
        for row in (
            _synth_against_empty,
            _synth_against_builtin,
            _fifty_environments,
            _largest_against_two_groups,
            _validate_against_hyp,
            _preflight_with_latency,
            _preflight_throttled,
            _preflight_offline_against_hyp,
            _status_of_many_nodes,
            _review_of_largest,
            _plan_of_largest,
            _review_of_roles,
            _review_of_security_groups,
            _diagram_of_largest,
            _render_against_hyp,
            _report_of_long_log,
        ):
            cells = row(Path(scratch))
            # finished rows are kept if a later row fails
            print(*(cell for cell in cells if cell), sep=" | ", file=sys.stderr, flush=True)
            table.add_row(*cells)
    Console().print(table)


def _synth_against_empty(scratch: Path) -> Sequence[str]:
    ours, empty = _paired(_app(scratch / "ours"), _python(EMPTY_APP, scratch / "empty"))
    return _row("python app.py, prod", ours, "an empty CDK app, validation off", empty, 3.5)


def _synth_against_builtin(scratch: Path) -> Sequence[str]:
    # the same as app.py, so that only the validation differs
    code = (
        "from pathlib import Path\nfrom hyperpod_cdk.packaged_node import use_packaged_node\nuse_packaged_node()\n"
        "from hyperpod_cdk_stacks.app import synthesize\nsynthesize(Path.cwd(), builtin_validation=True)"
    )
    ours, builtin = _paired(_app(scratch / "ours"), _python(code, scratch / "builtin", env="prod"))
    return _row("python app.py, prod", ours, "the same with CDK's validation on", builtin, 0.5)


def _fifty_environments(scratch: Path) -> Sequence[str]:
    count = 50
    environments = scratch / "fifty" / "environments"
    environments.mkdir(parents=True)
    text = (ROOT / "environments" / "prod.yaml").read_text(encoding="utf-8")
    for index in range(count):
        name = f"env{index:02}"
        (environments / f"{name}.yaml").write_text(text.replace("name: prod", f"name: {name}", 1), encoding="utf-8")
    code = (
        "import sys\nfrom pathlib import Path\nfrom hyperpod_cdk_stacks.app import synthesize\n"
        "synthesize(Path(sys.argv[1]))"
    )
    many = _measure(_python(code, scratch / "many", arguments=[str(scratch / "fifty")]), runs=1)
    each = Measured((many.median / count,))
    return ("50 environments in one process, each", f"{each.median:.2f}", "", "", "", "0.50 s")


def _largest_against_two_groups(scratch: Path) -> Sequence[str]:
    file = scratch / "largest.yaml"
    file.write_text(yaml.safe_dump(largest_environment()), encoding="utf-8")
    small = str(ROOT / "examples" / "two-teams.yaml")
    ours, reference = _paired(_app(scratch / "large", env=str(file)), _app(scratch / "small", env=small))
    return _row(f"python app.py, {GROUPS} groups", ours, "the example of two groups", reference, 3.0)


def _validate_against_hyp(scratch: Path) -> Sequence[str]:
    ours, theirs = _paired(
        lambda: _run([_command(), "validate", "prod"], cwd=ROOT), _hyp_validate(scratch / "hyp-validate")
    )
    return _row("hyperpod-cdk validate prod", ours, f"hyp validate {HYP_VERSION}", theirs, 0.25)


def _preflight_with_latency(scratch: Path) -> Sequence[str]:
    """Measure all checks of the example with the most nodes, against an account that satisfies it, over HTTP."""
    return _preflight(scratch, {}, note=f"with {LATENCY_MS} ms each", at_most="4.00 s")


def _preflight_throttled(scratch: Path) -> Sequence[str]:
    """Measure the same with every third call of every service throttled."""
    faults = [{"service": "*", "kind": "throttle", "every": 3}]
    return _preflight(scratch, {"faults": faults}, note="and every third throttled", at_most="8.00 s")


def _preflight(scratch: Path, changes: Mapping[str, object], *, note: str, at_most: str) -> Sequence[str]:
    file = max((ROOT / "examples").glob("*.yaml"), key=lambda path: _nodes(load_environment(path).environment))
    environment = load_environment(file).environment
    account = scratch / "account.yaml"
    account.write_text(yaml.safe_dump({**satisfying(environment), **changes}), encoding="utf-8")
    with EmbeddedAws(
        account=environment.account,
        region=environment.region,
        log=scratch / "aws.log",
        account_file=account,
        latency_ms=LATENCY_MS,
    ) as aws:
        command = [_command(), "preflight", str(file), "--format", "json"]
        # the modules that moto loads at the first call of a service are not part of preflight's time
        # after the warnings about the file
        said = _run(command, cwd=ROOT, environment=aws.environment())
        asked = json.loads(said[said.index("{\n") :])["aws"]
        ours = _measure(lambda: _run(command, cwd=ROOT, environment=aws.environment()), runs=RUNS)
    seen = f"{asked['calls']} calls, {asked['depth']} deep (at most 4), {note}"
    return (f"hyperpod-cdk preflight {file.stem}", f"{ours.median:.2f}", seen, "", "", at_most)


def _status_of_many_nodes(scratch: Path) -> Sequence[str]:
    """Measure status with 2,000 nodes on 500 pages, in 20 groups."""
    file = scratch / "dev.yaml"
    group = {"instance_type": "ml.p5.48xlarge", "count": 100, "capacity": "on_demand"}
    zones = [ZONES[number % len(ZONES)] for number in range(20)]
    made = [{"name": f"g{number:02}", **group, "availability_zone_id": zone} for number, zone in enumerate(zones)]
    environment = {"name": "dev", "account": ACCOUNT, "region": REGION}
    environment |= {"network": {"availability_zones": dict.fromkeys(ZONES)}}
    file.write_text(yaml.safe_dump({**environment, "hyperpod": {"instance_groups": made}}), encoding="utf-8")
    command = [_command(), "status", str(file), "--project", str(ROOT), "--strict", "--format", "json"]
    with many_nodes(groups=20, nodes=2000, on_a_page=4, latency_s=LATENCY_MS / 1000) as (address, asked):
        ours = _measure(lambda: _run(command, cwd=ROOT, environment=many_nodes_environment(address)), runs=RUNS)
    seen = f"2,000 nodes on 500 pages, {len(asked) // RUNS} calls with {LATENCY_MS} ms each"
    return ("hyperpod-cdk status", f"{ours.median:.2f}", seen, "", "", "10.00 s")


def _preflight_offline_against_hyp(scratch: Path) -> Sequence[str]:
    file = scratch / "largest.yaml"
    file.write_text(yaml.safe_dump(largest_environment()), encoding="utf-8")
    command = [_command(), "preflight", str(file), "--offline", "--project", str(ROOT)]
    hyp = _hyp_validate(scratch / "hyp-offline")
    ours, theirs = _paired(lambda: _run(command, cwd=ROOT), hyp)
    peak = _peak_mb(command)
    name = f"preflight --offline, {GROUPS} groups, {peak:.0f} MB (at most 150)"
    ratio = ours.median / theirs.median
    return (name, f"{ours.median:.2f}", f"hyp validate {HYP_VERSION}", f"{theirs.median:.2f}", f"{ratio:.2f}", "0.50 s")


def _review_of_largest(scratch: Path) -> Sequence[str]:
    """Measure all analyses and renderings, next to a process that only reads the two assemblies."""
    base, head = _largest_pair(scratch)
    reports = [f"--out={scratch / 'report'}{suffix}" for suffix in (".md", ".html", ".json")]
    command = [_command(), "review", "--base", str(base), "--head", str(head), *reports]
    code = """
import sys
from pathlib import Path
from hyperpod_cdk.templates.assembly import read_assembly
print([len(list(read_assembly(Path(each)).resources())) for each in sys.argv[1:]])
"""
    # a change that the service refuses correctly ends with 1
    ours, reading = _paired(
        lambda: _run(command, cwd=ROOT, allowed=(0, 1)),
        _python(code, scratch / "unused", arguments=[str(base), str(head)]),
    )
    name = f"hyperpod-cdk review, {GROUPS} groups, {_peak_mb(command, allowed=(0, 1)):.0f} MB (at most 300)"
    beyond = f"{ours.median - reading.median:.2f} s"
    return (name, f"{ours.median:.2f}", "reading the two assemblies", f"{reading.median:.2f}", beyond, "1.50 s")


def _plan_of_largest(scratch: Path) -> Sequence[str]:
    """Measure plan as users run it: with the app, and changes of every group, team and file system."""
    base, head = _largest_pair(scratch)
    project = scratch / "project"
    shutil.copytree(ROOT / "lifecycle_scripts", project / "lifecycle_scripts")
    (project / "environments").mkdir()
    shutil.copy(head.with_suffix(".yaml"), project / "environments" / "largest.yaml")
    shutil.copy(ROOT / "app.py", project)
    app = {"app": shlex.join([sys.executable, "app.py"])}
    (project / "cdk.json").write_text(json.dumps(app), encoding="utf-8")
    command = [_command(), "plan", "largest", "--project", str(project), "--base", str(base)]
    ours, app_alone = _paired(
        lambda: _run(command, cwd=ROOT), _app(scratch / "head-alone", env=str(head.with_suffix(".yaml")))
    )
    return (
        f"hyperpod-cdk plan, {GROUPS} groups",
        f"{ours.median:.2f}",
        "python app.py of its file",
        f"{app_alone.median:.2f}",
        "",
        "6.00 s",
    )


def _review_of_roles(scratch: Path) -> Sequence[str]:
    """Measure the largest possible number of roles in a template, each replaced."""
    trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}

    def role(number: int, side: str) -> dict[str, object]:
        allowed = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": f"arn:aws:s3:::b{number}-{side}/*"}
        return {
            "RoleName": f"{side}-{number}",
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
            "Policies": [{"PolicyName": "p", "PolicyDocument": {"Version": "2012-10-17", "Statement": [allowed]}}],
        }

    return _review_of_many(scratch, "AWS::IAM::Role", "roles", role)


def _review_of_security_groups(scratch: Path) -> Sequence[str]:
    """Measure the largest possible number of security groups in a template, each replaced and open to the previous."""

    def group(number: int, side: str) -> dict[str, object]:
        before = {"Fn::GetAtt": [f"It{number - 1}", "GroupId"]}
        return {
            "GroupDescription": f"{side} {number}",
            "VpcId": "vpc-0a1b2c3d4e5f60718",
            **({"SecurityGroupIngress": [{"IpProtocol": "-1", "SourceSecurityGroupId": before}]} if number else {}),
        }

    return _review_of_many(scratch, "AWS::EC2::SecurityGroup", "security groups", group)


def _review_of_many(
    scratch: Path, kind: str, name: str, properties: Callable[[int, str], Mapping[str, object]]
) -> Sequence[str]:
    files = {}
    for side in ("base", "head"):
        files[side] = scratch / f"{kind.rpartition(':')[2]}-{side}.json"
        resources = {f"It{n}": {"Type": kind, "Properties": properties(n, side)} for n in range(MOST_RESOURCES)}
        files[side].write_text(json.dumps({"Resources": resources}), encoding="utf-8")
    report = f"--out={scratch / 'many.json'}"
    sides = ["--template", str(files["head"]), "--base", str(files["base"]), "--region", "us-east-1"]
    command = [_command(), "review", *sides, report]
    ours = _measure(lambda: _run(command, cwd=ROOT, allowed=(0, 1)), runs=RUNS)
    label = f"hyperpod-cdk review, {MOST_RESOURCES} {name}, {_peak_mb(command, allowed=(0, 1)):.0f} MB (at most 300)"
    return (label, f"{ours.median:.2f}", "", "", "", "5.00 s")


def _diagram_of_largest(scratch: Path) -> Sequence[str]:
    base, _ = _largest_pair(scratch)
    command = [_command(), "diagram", "--head", str(base), "--out", str(scratch / "diagram.svg")]
    ours = _measure(lambda: _run(command, cwd=ROOT), runs=RUNS)
    return (f"hyperpod-cdk diagram, {GROUPS} groups", f"{ours.median:.2f}", "", "", "", "1.00 s")


def _render_against_hyp(scratch: Path) -> Sequence[str]:
    """Measure a training job of the shipped environment, next to hyp's validation of a YAML file."""
    command = [_command(), "job", "render", "prod", "--job", "examples/jobs/research.yaml"]
    ours, theirs = _paired(lambda: _run(command, cwd=ROOT), _hyp_validate(scratch / "hyp-render"))
    return _row("hyperpod-cdk job render prod", ours, f"hyp validate {HYP_VERSION}", theirs, 0.35)


def _report_of_long_log(scratch: Path) -> Sequence[str]:
    """Measure a log of 64 nodes with NCCL_DEBUG=INFO, next to counting its lines."""
    log = scratch / "nccl.log"
    line = (
        "ip-10-1-{node}-7:{rank}:{rank} [{gpu}] NCCL INFO Channel {gpu:02}/0 :"
        " {rank}[{gpu}] -> 9[1] [send] via NET/Libfabric/0\n"
    )
    with log.open("w", encoding="utf-8") as stream:
        for number in range(LOG_LINES):
            stream.write(line.format(node=number % 64, rank=number % 512, gpu=number % 8))
    size = log.stat().st_size / 1e6
    command = [_command(), "job", "report", str(log)]
    count = "import sys; print(sum(1 for line in open(sys.argv[1], 'rb')))"
    ours, counting = _paired(lambda: _run(command, cwd=ROOT), _python(count, scratch / "unused", arguments=[str(log)]))
    name = f"hyperpod-cdk job report, {size:.0f} MB, {_peak_mb(command):.0f} MB of memory (at most 100)"
    return (name, f"{ours.median:.2f}", "counting its lines", f"{counting.median:.2f}", "", "8.00 s")


def _largest_pair(scratch: Path) -> tuple[Path, Path]:
    """Synthesize the largest environment, and a copy in which every group, team and file system is changed."""
    base, head = scratch / "largest-base", scratch / "largest-head"
    if not head.exists():
        data = largest_environment()
        for target in (base, head):
            file = scratch / f"{target.name}.yaml"
            file.write_text(yaml.safe_dump(data), encoding="utf-8")
            _app(target, env=str(file))()
            for group in data["hyperpod"]["instance_groups"]:
                group["labels"]["label-00"] = "changed"
                group["count"] -= 1
            for team in data["task_governance"]["teams"]:
                team["fair_share_weight"] = 10
            for file_system in data["storage"]["lustre"]:
                file_system["compression"] = "none"
            data["tags"] = {"owner": "another team"}
    return base, head


def _nodes(environment: Environment) -> int:
    return sum(group.count for group in environment.hyperpod.instance_groups)


def _command() -> str:
    return str(Path(sys.executable).with_name("hyperpod-cdk"))


def _hyp_validate(folder: Path) -> Callable[[], object]:
    hyp = _hyp(ROOT / ".cache" / "bench")
    folder.mkdir()
    subprocess.run(
        [hyp, "init", "cluster-stack", "."], cwd=folder, check=True, input="y\n", text=True, capture_output=True
    )
    return lambda: _run([str(hyp), "validate"], cwd=folder)


def _hyp(folder: Path) -> Path:
    """Install the reference once, into a separate virtual environment."""
    target = folder / "hyp"
    command = target / "bin" / "hyp"
    if not command.exists():
        venv.create(target, with_pip=True)
        _run([str(target / "bin" / "pip"), "install", "--quiet", f"sagemaker-hyperpod=={HYP_VERSION}"], cwd=ROOT)
    return command


def _app(outdir: Path, *, env: str = "prod") -> Callable[[], object]:
    environment = {"CDK_OUTDIR": str(outdir), "CDK_CONTEXT_JSON": json.dumps({"env": env})}
    return lambda: _run([sys.executable, "app.py"], cwd=ROOT, environment=environment)


def _python(code: str, outdir: Path, *, env: str = "", arguments: Sequence[str] = ()) -> Callable[[], object]:
    environment = {"CDK_OUTDIR": str(outdir), "PYTHONPATH": str(ROOT)}
    if env:
        environment["CDK_CONTEXT_JSON"] = f'{{"env": "{env}"}}'
    return lambda: _run([sys.executable, "-c", code, *arguments], cwd=ROOT, environment=environment)


def _run(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None, allowed: Sequence[int] = (0,)
) -> str:
    """Run a command and return its output; ends the benchmark if its exit code is not ``allowed``."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.stdout


def _paired(ours: Callable[[], object], reference: Callable[[], object]) -> tuple[Measured, Measured]:
    ours()
    reference()
    pairs = [(_seconds(ours), _seconds(reference)) for _ in range(RUNS)]
    return Measured(tuple(a for a, _ in pairs)), Measured(tuple(b for _, b in pairs))


def _measure(action: Callable[[], object], *, runs: int) -> Measured:
    return Measured(tuple(_seconds(action) for _ in range(runs)))


def _peak_mb(command: Sequence[str], *, allowed: Sequence[int] = (0,)) -> float:
    """Run a command and return its peak memory; ends the benchmark as ``_run`` does."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    # macOS counts in bytes, Linux in kibibytes
    return usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _row(name: str, ours: Measured, reference_name: str, reference: Measured, bound: float) -> Sequence[str]:
    ratio = ours.median / reference.median
    return (name, f"{ours.median:.2f}", reference_name, f"{reference.median:.2f}", f"{ratio:.2f}", f"{bound:.2f}")


if __name__ == "__main__":
    main()
