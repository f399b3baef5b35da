"""Measures synthesis and validation side by side with a reference in the same run; prints medians, judges nothing.

Each measurement starts a whole process, A and B in turn, so that a drifting machine drifts for both.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hyperpod_cdk.node import use_packaged_node

ROOT = Path(__file__).parent.parent
RUNS = 5
EMPTY_APP = """
import aws_cdk as cdk
app = cdk.App(builtin_cloud_formation_validation=False)
cdk.Stack(app, "Empty")
app.synth()
"""
HYP_VERSION = "3.12.0"


@dataclass(frozen=True)
class Measured:
    """Seconds of each run."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The run in the middle."""
        return statistics.median(self.seconds)


def main() -> None:
    """Run every comparison and print one table."""
    use_packaged_node()
    table = Table(title=f"median of {RUNS} whole processes, seconds", title_justify="left")
    for column in ("ours", "s", "reference", "s", "ratio", "at most"):
        table.add_column(column, justify="right" if column in ("s", "ratio", "at most") else "left")
    with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as scratch:
        for row in (_synth_against_empty, _synth_against_builtin, _fifty_environments, _validate_against_hyp):
            table.add_row(*row(Path(scratch)))
    Console().print(table)


def _synth_against_empty(scratch: Path) -> Sequence[str]:
    ours, empty = _paired(_app(scratch / "ours"), _python(EMPTY_APP, scratch / "empty"))
    return _row("python app.py, prod", ours, "an empty CDK app, validation off", empty, 4.0)


def _synth_against_builtin(scratch: Path) -> Sequence[str]:
    # the very same script, so that nothing but the validation differs
    code = (
        (ROOT / "app.py")
        .read_text(encoding="utf-8")
        .replace("Path(__file__).parent", "Path.cwd(), builtin_validation=True")
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
    code = "import sys\nfrom pathlib import Path\nfrom stacks.app import synthesize\nsynthesize(Path(sys.argv[1]))"
    many = _measure(_python(code, scratch / "many", arguments=[str(scratch / "fifty")]), runs=1)
    each = Measured((many.median / count,))
    return ("50 environments in one process, each", f"{each.median:.2f}", "", "", "", "0.50 s")


def _validate_against_hyp(scratch: Path) -> Sequence[str]:
    hyp = _hyp(ROOT / ".cache" / "bench")
    folder = scratch / "hyp"
    folder.mkdir()
    subprocess.run(
        [hyp, "init", "cluster-stack", "."], cwd=folder, check=True, input="y\n", text=True, capture_output=True
    )
    command = Path(sys.executable).with_name("hyperpod-cdk")
    ours, theirs = _paired(
        lambda: _run([str(command), "validate", "prod"], cwd=ROOT),
        lambda: _run([str(hyp), "validate"], cwd=folder),
    )
    return _row("hyperpod-cdk validate prod", ours, f"hyp validate {HYP_VERSION}", theirs, 0.25)


def _hyp(folder: Path) -> Path:
    """Install the reference into a virtual environment of its own, once."""
    target = folder / "hyp"
    command = target / "bin" / "hyp"
    if not command.exists():
        venv.create(target, with_pip=True)
        _run([str(target / "bin" / "pip"), "install", "--quiet", f"sagemaker-hyperpod=={HYP_VERSION}"], cwd=ROOT)
    return command


def _app(outdir: Path) -> Callable[[], None]:
    environment = {"CDK_OUTDIR": str(outdir), "CDK_CONTEXT_JSON": '{"env": "prod"}'}
    return lambda: _run([sys.executable, "app.py"], cwd=ROOT, environment=environment)


def _python(code: str, outdir: Path, *, env: str = "", arguments: Sequence[str] = ()) -> Callable[[], None]:
    environment = {"CDK_OUTDIR": str(outdir), "PYTHONPATH": str(ROOT)}
    if env:
        environment["CDK_CONTEXT_JSON"] = f'{{"env": "{env}"}}'
    return lambda: _run([sys.executable, "-c", code, *arguments], cwd=ROOT, environment=environment)


def _run(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}")


def _paired(ours: Callable[[], None], reference: Callable[[], None]) -> tuple[Measured, Measured]:
    ours()
    reference()
    pairs = [(_seconds(ours), _seconds(reference)) for _ in range(RUNS)]
    return Measured(tuple(a for a, _ in pairs)), Measured(tuple(b for _, b in pairs))


def _measure(action: Callable[[], None], *, runs: int) -> Measured:
    return Measured(tuple(_seconds(action) for _ in range(runs)))


def _seconds(action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _row(name: str, ours: Measured, reference_name: str, reference: Measured, bound: float) -> Sequence[str]:
    ratio = ours.median / reference.median
    return (name, f"{ours.median:.2f}", reference_name, f"{reference.median:.2f}", f"{ratio:.2f}", f"{bound:.2f}")


if __name__ == "__main__":
    main()
