"""cdk-nag's AwsSolutions on a plain template, which is read into a temporary CDK app in a separate process.

Only that process of a review uses CDK: importing it takes a second, and a template that it cannot read, or that crashes
it, does not affect the rest of the report.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from hyperpod_cdk.findings import Severity

_SECONDS: Final = 120
_THREW: Final = "Rule threw an error"
_STACK, _INCLUDE = "template", "included"
_REPORT: Final = "validation-report.json"


class NagError(Exception):
    """cdk-nag could not run; the text gives the reason in one line."""


@dataclass(frozen=True, kw_only=True)
class NagViolation:
    """One finding of cdk-nag; ``rule`` with its brackets (``AwsSolutions-IAM5[Action::s3:*]``).

    ``is_undecided`` where the rule could not read the resource.
    """

    rule: str
    severity: Severity
    message: str
    logical_id: str
    is_undecided: bool = False


def nag_violations(template: Mapping[str, Any]) -> list[NagViolation]:
    """Return the findings of AwsSolutions on a template, in the order of IDs and rules. Raises NagError."""
    try:
        text = json.dumps(template)
    except (TypeError, ValueError) as error:
        raise NagError(f"the template contains a value that JSON cannot represent: {error}") from None
    return list(_violations_in(text))


# a program that reviews one template against many (each way to deploy it, each branch) starts CDK only once for it
@lru_cache(maxsize=16)
def _violations_in(text: str) -> tuple[NagViolation, ...]:
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder, "template.json"), Path(folder, "answer.json")
        given.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "hyperpod_cdk.review.nag", str(given), str(answer)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=folder)
        except subprocess.TimeoutExpired:
            raise NagError(f"it did not end within {_SECONDS} seconds") from None
        if done.returncode or not answer.exists():
            raise NagError(f"CDK cannot read the template: {_last_words(done.stderr)}")
        rows = json.loads(answer.read_text(encoding="utf-8"))
    found = [NagViolation(**{**row, "severity": Severity(row["severity"])}) for row in rows]
    return tuple(sorted(found, key=lambda each: (each.logical_id, each.rule)))


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if "Error" in line), lines[-1] if lines else "it printed nothing")
    return said.removeprefix("RuntimeError: ").removeprefix("Error: ")[:300]


def _look(template: Path) -> list[NagViolation]:
    # only the separate process runs this
    from hyperpod_cdk.packaged_node import use_packaged_node  # noqa: PLC0415

    use_packaged_node()
    import aws_cdk as cdk  # noqa: PLC0415
    from aws_cdk import cloudformation_include as include  # noqa: PLC0415
    from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(
            analytics_reporting=False,
            auto_synth=False,
            builtin_cloud_formation_validation=False,
            outdir=folder,
            stack_traces=False,
            tree_metadata=False,
        )
        stack = cdk.Stack(app, _STACK, synthesizer=cdk.BootstraplessSynthesizer())
        include.CfnInclude(stack, _INCLUDE, template_file=str(template), allow_cyclical_references=True)
        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
        report = Path(folder, _REPORT)
        # read as a file: in Python, each text of the report would be a separate request to Node.js
        try:
            app.synth()
        except RuntimeError:
            # also if there are findings
            if not report.exists():
                raise
        rows = json.loads(report.read_text(encoding="utf-8"))["pluginReports"]
    return [
        NagViolation(
            rule=violation["ruleName"],
            severity=Severity.ERROR if violation["severity"] == "error" else Severity.WARNING,
            message=violation["description"],
            logical_id=found["constructPath"].rpartition("/")[2],
            is_undecided=violation["description"].startswith(_THREW),
        )
        for of_plugin in rows
        for violation in of_plugin["violations"]
        for found in violation["violatingConstructs"]
    ]


if __name__ == "__main__":
    _given, _answer = map(Path, sys.argv[1:3])
    _answer.write_text(json.dumps([asdict(each) for each in _look(_given)]), encoding="utf-8")
