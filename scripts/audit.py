"""Synthesizes all shipped environments and checks their templates with checkov, from a separate virtual environment."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperpod_cdk.packaged_node import use_packaged_node
from hyperpod_cdk.templates.engine import warm_up

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
CHECKOV = ROOT / ".cache" / "audit" / "bin" / "checkov"
ASSEMBLY = ROOT / ".cache" / "audit-templates"
FOLDERS = ("environments", "examples")

FLAGS = ("--framework", "cloudformation", "--compact", "--quiet", "--skip-download", "--output", "json")
OFFLINE = {"CKV_SKIP_PACKAGE_UPDATE_CHECK": "true", "BC_SKIP_MAPPING": "TRUE"}


def main() -> int:
    """Print checkov's findings, or why its report is incomplete; exit code 1 in both cases."""
    templates = synthesize()
    resources = sum(len(json.loads(each.read_text(encoding="utf-8"))["Resources"]) for each in templates)
    report = checkov([each.relative_to(ASSEMBLY).as_posix() for each in templates])
    problems = [*findings(report), *doubts(report, resources=resources)]
    for problem in problems:
        print(problem)
    if not problems:
        answered = summary(report)["skipped"]
        print(f"checkov has no findings for {len(templates)} templates; {answered} findings have a reason")
    return 1 if problems else 0


def synthesize() -> list[Path]:
    """Write one assembly of all environments and return its templates, sorted."""
    gc.disable()
    use_packaged_node()
    warm_up("hyperpod_cdk.config")
    from hyperpod_cdk_stacks.app import build, new_app, read_environments  # noqa: PLC0415 - jsii reads JSII_NODE when it is imported

    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.yaml"))]
    shutil.rmtree(ASSEMBLY, ignore_errors=True)
    app = new_app(outdir=ASSEMBLY)
    build(app, [each for file in files for each in read_environments(ROOT, file)], root=ROOT)
    app.synth()
    return sorted(ASSEMBLY.glob("assembly-*/*.template.json"))


def checkov(templates: Sequence[str]) -> Mapping[str, Any]:
    """Run checkov on all templates at once; exits with 1 and its output if it fails."""
    done = subprocess.run(
        [CHECKOV, *FLAGS, "--file", *templates],
        cwd=ASSEMBLY,
        # settings in the home folder and keys in variables have no effect, and checkov calls no service
        env={**OFFLINE, "PATH": os.environ["PATH"], "HOME": str(ASSEMBLY)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        sys.exit(f"checkov failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    report: Mapping[str, Any] = json.loads(done.stdout)
    return report


def findings(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each finding that no construct suppresses."""
    for each in report.get("results", {}).get("failed_checks", []):
        yield f"{each['file_path'].lstrip('/')} {each['resource']}: {each['check_id']}: {each['check_name']}"


def doubts(report: Mapping[str, Any], *, resources: int) -> Iterator[str]:
    """Yield the reasons why the report does not cover all ``resources`` of the templates."""
    found = summary(report)
    if found["parsing_errors"]:
        yield f"checkov could not read {found['parsing_errors']} of the templates"
    if found["resource_count"] != resources:
        yield f"checkov saw {found['resource_count']} resources, but the templates contain {resources}"
    if not found["skipped"]:
        yield "checkov skipped nothing: it does not read the reasons in the templates' metadata any more"


def summary(report: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the counts of a report, which consists only of counts if there was no resource."""
    counts: Mapping[str, int] = report.get("summary", report)
    return counts


if __name__ == "__main__":
    sys.exit(main())
