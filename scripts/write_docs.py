"""Writes the generated pages of docs/ and the schemas from models, commands and checks; `--check` only compares."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import cfnlint
import yaml

from hyperpod_cdk import cli
from hyperpod_cdk.catalog import create_only, updates
from hyperpod_cdk.checks.model import REGISTER, Check
from hyperpod_cdk.checks.policy import VERBS, actions_of, calls_of, policy, policy_of
from hyperpod_cdk.config import environment_schema
from hyperpod_cdk.review.changes.causes import other_paths, property_paths
from hyperpod_cdk.templates.rules import DATED, LEFT_OUT, TABLE, WITHOUT_REASON, Rule
from hyperpod_cdk.workloads.schema import job_schema
from hyperpod_cdk.workloads.submission import hyp_parameters_page

ROOT = Path(__file__).parent.parent
SCHEMAS = Path(cfnlint.__file__).parent / "data" / "schemas"
FAULTS = ROOT / "tests" / "rehearsal" / "faults.json"
OTHER_TYPES = ROOT / "tests" / "config" / "other_types.yaml"
API_ONLY = ROOT / "tests" / "config" / "api_only.yaml"
FIXTURES = ("every_property.yaml", "own_bucket_and_type.yaml")
"""Environments of tests/config with fields that no example uses."""
MOST_WORDS = 8
MOST_LINES = 16
MOST_COLUMNS = 110
LIVING = ("drift", "status", "observe", "node list", "node describe", "node logs")
"""Commands that read the running cluster."""
FAULT_CLASSES = {
    "creation": (
        "`❌ prod-hyperpod failed to deploy`, the stack is in `ROLLBACK_COMPLETE`",
        "deploy again: the CLI deletes the rest of the stack and creates it again",
    ),
    "update": (
        (
            "`❌ prod-hyperpod failed to deploy`, the stack is in `UPDATE_ROLLBACK_COMPLETE`, with the resources as "
            "before the update"
        ),
        "deploy again",
    ),
    "rollback of an update": (
        "the stack is in `UPDATE_ROLLBACK_FAILED`, and CloudFormation refuses deployments",
        "`hyperpod-cdk recover prod`, deploy again",
    ),
    "deletion": ("`cdk destroy` fails, the stack is in `DELETE_FAILED`", "destroy again"),
}
"""What a user sees of a fault and does about it, by kind of fault in the recorded runs."""


UPDATED_SERVICES = (
    *("SageMaker", "EKS", "EC2", "AutoScaling", "FSx", "EFS", "S3", "KMS", "RDS", "DynamoDB", "SQS", "SNS", "ECR"),
    *("OpenSearchService", "MSK", "Redshift", "ElastiCache", "Logs", "SSM", "SecretsManager", "APS", "Grafana"),
    *("Lambda", "IAM", "CloudWatch", "Events", "CloudFormation", "CodeBuild", "CodePipeline", "Chatbot", "WAFv2"),
)
"""The services in docs/updates.md."""


def main() -> int:
    """Write the pages, or print which ones are out of date."""
    pages = {
        "docs/environment-file.md": environment_page(environment_schema()),
        "docs/cli.md": cli_page(),
        "docs/job-file.md": job_page(job_schema()),
        "docs/hyp-parameters.md": hyp_parameters_page(),
        "docs/checks.md": checks_page(list(REGISTER)),
        "docs/policy-pack.md": policy_pack_page(TABLE),
        "docs/updates.md": updates_page(UPDATED_SERVICES),
        "docs/properties.md": properties_page(
            property_paths(), _other_types(), yaml.safe_load(API_ONLY.read_text(encoding="utf-8"))
        ),
        "docs/faults.md": faults_page(json.loads(FAULTS.read_text(encoding="utf-8")), _environments()),
        "docs/preflight-policy.json": f"{json.dumps(policy(REGISTER), indent=2)}\n",
        "docs/living-policy.json": f"{json.dumps(policy_of(*LIVING), indent=2)}\n",
        **{f"schemas/{page}.schema.json": cli.schema_text(page) for page in get_args(cli.Page)},
    }
    if "--check" not in sys.argv:
        for name, text in pages.items():
            (ROOT / name).write_text(text, encoding="utf-8")
        return 0
    old = [
        name
        for name, text in pages.items()
        if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != text
    ]
    for name in old:
        print(f"{name} is out of date; run 'make docs'")
    return 1 if old else 0


def updates_page(services: Sequence[str]) -> str:
    """Return the page with the number of properties per service whose changes a review knows."""
    lines = [
        "# What reviews know about updates",
        "",
        "This page is for people who want to know how complete the verdict of a [review](review.md) is. For each",
        "service, it counts the top-level properties that a template can set, by what a review knows about a",
        "change of them:",
        "",
        f"- *replaced*: create-only according to the CloudFormation schemas of {create_only.SCHEMAS_AS_OF}, or",
        "  always replaced according to the type's page or to `updates.json`;",
        "- *in place*, *interrupts*, *refused*: `catalog/data/updates.json` always says the same about the",
        "  property;",
        "- *depends*: the effect depends on the values, or on the properties inside;",
        "- *unknown*: a row says unknown, or there is no row. A schema alone is never sufficient.",
        "",
        "| service | types | properties | replaced | in place | interrupts | refused | depends | unknown |",
        "|---|" + "---:|" * 8,
    ]
    columns = ("replaced", "in place", "nodes interrupted", "refused by the service", "depends", "unknown")
    for service in services:
        found = {name: _properties(name) for name in _registry() if name.startswith(f"AWS::{service}::")}
        counted = Counter(_known(name, each) for name, properties in found.items() for each in properties)
        numbers = [len(found), counted.total(), *(counted[column] for column in columns)]
        lines.append(f"| {service} | {' | '.join(str(number) for number in numbers)} |")
    return "\n".join(lines) + "\n"


def properties_page(
    by_property: Mapping[str, Mapping[str, Mapping[str, str]]],
    others: Mapping[str, Mapping[str, Mapping[str, Any]]],
    api: Mapping[str, Any],
) -> str:
    """Return the page that shows what decides every property in the templates: the file, the library, or nothing."""
    lines = [
        "# What decides each property of the templates",
        "",
        "This page is for people who look for a property of a CloudFormation resource. It lists every resource",
        "type in the templates, and every property that CloudFormation allows for it: which field of the",
        "environment file sets it, or what the library sets and why, or why it cannot be set. A name stands for",
        "everything below it. If AWS adds a property, a test fails until it is listed here.",
        "",
        "The second table of a type lists what the AWS API accepts and CloudFormation does not. Neither a template",
        "nor the environment file can set it. `=` precedes a value of an enumeration. The calls are compared as",
        "botocore describes them, and a test fails if the API adds something. These calls are not compared:",
        "",
        *(f"- {', '.join(f'`{each}`' for each in names)}: {why}." for why, names in api["not_compared"].items()),
    ]
    for name in sorted({*by_property, *others}):
        table = by_property.get(name) or others[name]
        rows = [(f"`{each}`", f"`{place}`") for each, place in table.get("from", {}).items()]
        for how in ("made", "left_out"):
            reasons: dict[str, list[str]] = {}
            for key, value in table.get(how, {}).items():
                if isinstance(value, str):
                    reasons.setdefault(value, []).append(key)
                else:
                    reasons.setdefault(key, []).extend(value)
            said = "the library" if how == "made" else "nobody"
            rows += [(", ".join(f"`{each}`" for each in names), f"{said}: {why}") for why, names in reasons.items()]
        lines += ["", f"## {name}", "", "| property | decided by |", "|---|---|"]
        lines += [f"| {names} | {_cell(by)} |" for names, by in rows]
        if name in api["compared"]:
            lines += ["", *_api_only(api["compared"][name], api["lacks"].get(name, {}))]
    return "\n".join(lines) + "\n"


def _api_only(row: Mapping[str, Any], lacks: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the table of parameters of a type's API calls that CloudFormation does not support."""
    calls = " and ".join(f"`{each}`" for each in row["calls"])
    if not lacks:
        return [f"{calls} accept only what CloudFormation also supports."]
    rows = [f"| {', '.join(f'`{each}`' for each in names)} | {_cell(why)} |" for why, names in lacks.items()]
    return [f"| only in {calls} | why |", "|---|---|", *rows]


@cache
def _other_types() -> dict[str, Any]:
    """Return what decides the properties of types without a table in the review data."""
    others = yaml.safe_load(OTHER_TYPES.read_text(encoding="utf-8"))
    return {
        kind: {**({"from": other_paths()[kind]} if kind in other_paths() else {}), **row}
        for kind, row in others.items()
    }


def _registry() -> dict[str, str]:
    """Return the digest of each type's schema in cfn-lint for us-east-1."""
    names: dict[str, str] = json.loads((SCHEMAS / "providers" / "us-east-1.json").read_text(encoding="utf-8"))
    return names


def _properties(resource_type: str) -> list[str]:
    """Return the top-level properties of a type that a template can set."""
    schema = json.loads((SCHEMAS / "resources" / f"{_registry()[resource_type]}.json").read_text(encoding="utf-8"))
    return [name for name in schema["properties"] if f"/properties/{name}" not in schema.get("readOnlyProperties", ())]


def _known(resource_type: str, name: str) -> str:
    """Return what is known about a change of one property: an effect, ``depends`` or ``unknown``."""
    rule = create_only.update_rule(resource_type)
    if rule is not None and (name,) in (*rule.create_only, *rule.documented):
        return "replaced"
    effects = updates.effects_of(resource_type, name)
    if rule is not None and any(path[0] == name for path in (*rule.create_only, *rule.documented)):
        effects = {*effects, "replaced"}
    if len(effects) > 1:
        return "depends"
    if effects:
        return next(iter(effects))
    return "unknown"


def environment_page(schema: dict[str, Any]) -> str:
    """Return the reference of every field, section by section, in the order of the file, with an example of each."""
    return fields_page(
        schema,
        [
            "# The environment file",
            "",
            "This page is the reference of all fields of an environment file, for everybody who writes one. One YAML",
            "file describes one environment. The fields are grouped by section, in the order of the file; the heading",
            "is the path of the section. To begin, copy an example from [examples/](../examples), or run",
            "`hyperpod-cdk init`.",
            "",
            "- Unknown keys are refused, and every value is checked. All mistakes are reported at once, each with",
            "  file, line, path and the smallest fix.",
            "- An editor that supports YAML schemas shows the same descriptions, from",
            "  `schemas/environment.schema.json`.",
            "- The examples are excerpts from files that ship with the project or are tested.",
            "",
            "This page is generated from the models with `make docs`.",
        ],
        [
            ROOT / "environments" / "prod.yaml",
            *sorted((ROOT / "examples").glob("*.yaml")),
            *(ROOT / "tests" / "config" / name for name in FIXTURES),
        ],
    )


def job_page(schema: dict[str, Any]) -> str:
    """Return the reference of every field of a job file."""
    return fields_page(
        schema,
        [
            "# The job file",
            "",
            "This page is the reference of all fields of a job file, for everybody who runs jobs on a cluster. One",
            "YAML file describes one job. `hyperpod-cdk job render ENV --job FILE` writes its manifests and checks",
            "them against the environment: its instance groups, teams, quotas, priorities and claims. Options of the",
            "command override the file.",
            "",
            "[workloads.md](workloads.md) shows how to use job files, and [examples/jobs](../examples/jobs) contains",
            "examples. An editor that supports YAML schemas reads `schemas/job.schema.json`. This page is generated",
            "from the models with `make docs`.",
        ],
    )


def fields_page(schema: dict[str, Any], head: Sequence[str], files: Sequence[Path] = ()) -> str:
    """Return a page of fields by section, below ``head``, with examples from ``files``."""
    documents = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    lines = [*head, ""]
    for path, section in _sections(schema, schema, ""):
        # Markdown parses text in angle brackets as HTML
        lines += [
            f"## {path.replace('<', chr(92) + '<') or 'top level'}",
            "",
            _cell(section.get("description", "")),
            "",
        ]
        lines += ["| field | values | default | description |", "|---|---|---|---|"]
        required = section.get("required", [])
        for name, field in section["properties"].items():
            shown = "**required**" if name in required else _default(field)
            lines.append(f"| `{name}` | {_values(schema, field)} | {shown} | {_cell(_description(schema, field))} |")
        lines.append("")
        if documents:
            lines += ["```yaml", *example_of(schema, documents, path), "```", ""]
    return "\n".join(lines)


def example_of(schema: dict[str, Any], documents: Sequence[Any], path: str) -> list[str]:
    """Return the example for the section at ``path`` with the most fields in few lines, within its parent sections."""
    sections = dict(_sections(schema, schema, ""))
    fields = sections[path]["properties"]
    # a nested section has its own example
    plain = {name for name, field in fields.items() if not any(_inner(schema, field))}
    shown = [
        (len(plain.intersection(leaf)), _yaml(whole))
        for document in documents
        for whole, leaf in _stated(document, path.replace("[]", ".[]").split(".") if path else [], plain)
    ]
    short = [each for each in shown if each[1].count("\n") <= MOST_LINES]
    return max(short or shown, key=itemgetter(0))[1].splitlines()


def _yaml(value: Any) -> str:
    """Return YAML with the innermost lists and sections on one line each, if the lines are short."""
    text = str(yaml.safe_dump(value, sort_keys=False, default_flow_style=None, width=float("inf")))
    if all(len(line) <= MOST_COLUMNS for line in text.splitlines()):
        return text
    return str(yaml.safe_dump(value, sort_keys=False, default_flow_style=False, width=float("inf")))


def _stated(value: Any, parts: Sequence[str], plain: set[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each place at ``parts``: its parent sections with only their names, and its own content."""
    if not parts:
        if isinstance(value, dict):
            leaf = {name: each for name, each in value.items() if name in plain} or value
            yield leaf, leaf
        return
    name, *rest = parts
    inside: list[tuple[Any, Any]] = []
    if name == "[]" and isinstance(value, list):
        inside = [([], each) for each in value]
    elif isinstance(value, dict):
        inside = [(key, each) for key, each in value.items() if name in (key, "<name>")]
    for key, each in inside:
        for whole, leaf in _stated(each, rest, plain):
            if name != "[]":
                yield {key: whole}, leaf
            elif rest and "name" in each:
                yield [{"name": each["name"], **whole}], leaf
            else:
                yield [whole], leaf


def cli_page() -> str:
    """Return the reference of every command, as typer writes it."""
    command = [sys.executable, "-m", "typer", "hyperpod_cdk.cli", "utils", "docs", "--name", "hyperpod-cdk"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_plain_environment())
    # a Python type does not help the reader of a command
    return re.sub(r"(\* `[A-Z]+) <[^`]+>`", r"\1`", f"{done.stdout.rstrip()}\n")


def checks_page(checks: Sequence[Check]) -> str:
    """Return the card of every check by area, with its AWS calls."""
    areas = list(dict.fromkeys(check.area for check in checks))
    lines = [
        "# The checks of preflight",
        "",
        "This page is the reference of the checks that `hyperpod-cdk preflight ENV` runs, for people who want to",
        "know what a check does or how to do it by hand. All checks run in parallel and only read. `--only` and",
        "`--skip` take areas and names of checks.",
        "",
        "- A check that **fails** sets exit code 1.",
        "- A check that could not read something is **skipped**, with the reason and the missing IAM action. It",
        "  never counts as passed. A check of a resource that does not exist, such as a VPC, is also skipped,",
        "  because another check reports the missing resource.",
        "- `--offline` skips every check that calls AWS.",
        "- With `--strict`, a skipped check sets exit code 1. If a check cannot run from where you are, for",
        "  example because the API server is private, exclude it by name with `--skip`.",
        '- In the JSON output, `"passed"` is `true` only if everything could be read and nothing fails, `false`',
        "  if a check fails, and `null` if something was skipped.",
        "- If AWS returned only a part of a list, that part still counts: it can make a check fail, but never",
        "  pass.",
        "",
        "[preflight-policy.json](preflight-policy.json) is the IAM policy for all checks. `hyperpod-cdk preflight",
        "ENV --iam-policy` prints it, limited by `--only` and `--skip`. This page is generated from the checks",
        "with `make docs`.",
        "",
        "| area | checks | call AWS |",
        "|---|---|---|",
    ]
    for area in areas:
        members = [check for check in checks if check.area == area]
        asking = sum(bool(check.asks) for check in members)
        lines.append(f"| [{area}](#{area}) | {len(members)} | {_how_many(asking, len(members))} |")
    lines += [
        "",
        "## Permissions of other commands",
        "",
        "Other commands also call AWS. A role that runs them needs these actions, with the resource `*`.",
        "",
        "- `quotas request`, `deploy`, `destroy`, `recover`, `node replace`, `node reboot`, `node check`, and",
        "  `plans extend` with `--buy` make changes. `node cordon` and `uncordon` change objects in Kubernetes,",
        "  which EKS's access entries allow. The other commands only read.",
        "- `deploy` also runs the CDK CLI, which assumes CDK's bootstrap roles (`cdk-hnb659fds-*`).",
        "- `plan` calls AWS unless you use `--base`.",
        "",
        "| command | IAM actions | if AWS does not answer completely |",
        "|---|---|---|",
    ]
    for verb in sorted(VERBS, key=lambda each: "Request" not in " ".join(each.actions)):
        lines.append(f"| `{verb.name}` | {', '.join(f'`{each}`' for each in verb.actions)} | {verb.when_unseen} |")
    for area in areas:
        lines += ["", f"## {area}"]
        for check in checks:
            if check.area == area:
                lines += ["", *_card(check)]
    return "\n".join([*lines, ""])


def faults_page(recorded: Mapping[str, Any], environments: Sequence[str]) -> str:
    """Return the page of failures, what a user sees and does, with the counts of the recorded runs."""
    ran = recorded["environments"]
    counts = {kind: _sum_of(ran, kind) for kind in FAULT_CLASSES}
    lines = [
        "# When a deployment fails",
        "",
        "This page is for people whose deployment failed. It lists what can fail, what you see and what to do,",
        "with the results of tests. The tests were deployments to the embedded AWS of the rehearsal, not to an",
        "AWS account.",
        "",
        "[Recover from a failed deployment](lifecycle-of-an-environment.md#recover-from-a-failed-deployment)",
        "explains why deploying again works. To repeat the tests, run `make faults`. `python scripts/faults.py",
        "--record` and `make docs` write this page.",
        "",
        "## Any resource",
        "",
        "In each test, one resource fails once, before or after AWS did what was requested. Between the failure",
        "and the next deployment, only the action in the third column is done.",
        "",
        "| what fails | what you see | what to do | recovered |",
        "|---|---|---|---|",
        *(
            f"| {kind} | {seen} | {todo} | {counts[kind]['recovered']} of {counts[kind]['ran']} |"
            for kind, (seen, todo) in FAULT_CLASSES.items()
        ),
        "",
        "A creation counts as recovered if a later deployment created the resource that had failed, no resource with",
        f"hourly costs was left behind, and every stack that should be protected is protected. {_how_drawn(ran)}:",
        "",
        "| environment | " + " | ".join(f"{kind}: tested of all" for kind in FAULT_CLASSES) + " | recovered | run |",
        "|---|" + "---|" * (len(FAULT_CLASSES) + 2),
    ]
    for name, run in ran.items():
        kinds = [run["kinds"][kind] for kind in FAULT_CLASSES]
        tried = " | ".join(f"{each['ran']} of {each['possible']}" for each in kinds)
        good, number = sum(each["recovered"] for each in kinds), sum(each["ran"] for each in kinds)
        seed = "whole" if run["seed"] is None else f"seed {run['seed']}"
        lines.append(f"| {name} | {tried} | {good} of {number} | {run['date']}, {seed} |")
    lines += [
        "",
        "## Whole deployments by the CDK CLI",
        "",
        "Each test uses its own account: the unmodified CDK CLI bootstraps, deploys, fails as shown, and deploys",
        "again. If a test made a resource fail deliberately, the text of that failure is invented; all other text",
        "is what a user sees.",
    ]
    for case in recorded["cli"]:
        lines += ["", f"### {case['case'].capitalize()}: {case['happens']}", ""]
        lines += ["```text", *case["seen"], "```", ""]
        lines.append(f"Then: {_statuses(case['stacks'])}.")
        if case["at_once"]:
            lines += ["", "If you deploy again at once, the CLI prints:", "", "```text", *case["at_once"], "```"]
        what = "recovered" if case["recovered"] else f"did not recover: {case['problem']}"
        lines += ["", f"To do: {case['todo']}. On {case['date']} `{case['environment']}` {what}."]
        if "ROLLBACK_FAILED" in case["stacks"].values():
            named = f"`hyperpod-cdk recover {case['environment']}`"
            lines.append(
                f"Before `hyperpod-cdk deploy`, the rest of the stack must be deleted: {named} names it and deletes it."
            )
    possible = sum(each["possible"] for each in counts.values())
    number = sum(each["ran"] for each in counts.values())
    lines += [
        "",
        "## What was not tested",
        "",
        *_left_out(possible - number, possible, ran),
        f"- Any fault in {', '.join(name for name in environments if name not in ran)};",
        f"  of these, {_named(recorded)} were used in the cases above. All of them are",
        "  deployed, changed and destroyed without faults in the tests.",
        "- Two resources that fail in the same deployment for two reasons, in addition to a rollback that fails.",
        "- An AWS that answers slowly, throttles or denies calls in the middle of a deployment.",
        "- AWS itself: its services fail in more ways, with other messages, and take minutes instead of seconds.",
    ]
    return "\n".join(lines) + "\n"


def _sum_of(ran: Mapping[str, Any], kind: str) -> dict[str, int]:
    kinds = [run["kinds"][kind] for run in ran.values()]
    return {member: sum(each[member] for each in kinds) for member in ("possible", "ran", "recovered")}


def _statuses(stacks: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {status}" for name, status in stacks.items())


def _named(recorded: Mapping[str, Any]) -> str:
    return ", ".join(sorted({case["environment"] for case in recorded["cli"]}))


def _left_out(number: int, possible: int, ran: Mapping[str, Any]) -> list[str]:
    if not number:
        return []
    return [f"- {number} of the {possible} possible faults of {', '.join(ran)}; all deletions were tested."]


def _how_drawn(ran: Mapping[str, Any]) -> str:
    sampled = [name for name, run in ran.items() if run["seed"] is not None]
    return f"Random samples were tested for {', '.join(sampled)}" if sampled else "Every possible fault was tested"


def _environments() -> list[str]:
    """Return the names of all shipped environments."""
    files = [file for folder in ("environments", "examples") for file in sorted((ROOT / folder).glob("*.yaml"))]
    return [yaml.safe_load(file.read_text(encoding="utf-8"))["name"] for file in files]


def policy_pack_page(rules: Sequence[Rule]) -> str:
    """Return the page about the use of the policy pack, with every rule and its reason."""
    lines = [
        "# The policy pack",
        "",
        "This page is for people who use the policy rules of hyperpod-cdk, on this project's templates or on",
        "other CloudFormation templates. The rules check what no schema says about HyperPod templates, in",
        "addition to CloudFormation's own engine and cdk-nag's AwsSolutions. They check only what is in the",
        "template: a parameter without a default, or a resource outside of the template, is no finding. A",
        "resource whose condition is false counts as absent.",
        "",
        "## Use it",
        "",
        "Every synthesis of this project runs the rules. Errors fail `cdk synth` and `cdk deploy`; warnings are",
        "printed. The CDK CLI looks only at the stacks that you name, and stacks of a stage, as those of an",
        "environment are, have to be named: `cdk synth 'prod/*'`, or `'**'` for all. In your app:",
        "",
        "```python",
        "import aws_cdk as cdk",
        "from cdk_nag import AwsSolutionsChecks",
        "from hyperpod_cdk import TemplateChecks",
        "",
        "app = cdk.App(builtin_cloud_formation_validation=False)  # the same engine, older and slower",
        "cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), TemplateChecks())",
        "```",
        "",
        "For any template in JSON or YAML, including cdk-nag:",
        "",
        "```console",
        "hyperpod-cdk review --template cluster.yaml",
        "```",
        "",
        "A review of an environment shows how a change affects the findings: new, existing, resolved, and",
        "suppressed, each with its reason.",
        "",
        "## Suppress a finding",
        "",
        "In CDK, next to the construct that causes it:",
        "",
        "```python",
        "cdk.Validations.of(cluster).acknowledge(",
        '    cdk.Acknowledgment(id="hyperpod-cdk::node-recovery", reason="a test bed: nodes are replaced by hand")',
        ")",
        "```",
        "",
        "In a template, in the metadata of the resource. This works for this pack, the engine and cdk-nag:",
        "",
        "```yaml",
        "Metadata:",
        "  cdk_nag:",
        "    rules_to_suppress:",
        "      - id: node-recovery",
        "        reason: 'a test bed: nodes are replaced by hand'",
        "```",
        "",
        "`cfn-lint: { config: { ignore_checks: [...] } }` also works, but contains no reason: add one as shown above.",
        f"A finding that is suppressed without a reason causes another finding, `{WITHOUT_REASON}`.",
        "",
        "## The rules",
        "",
        "An error fails the deployment for certain, loses data, or is something that this project never does. All",
        "other rules are warnings. This table is generated from the rules with `make docs`.",
        "",
        "| rule | severity | reason | fix | source |",
        "|---|---|---|---|---|",
        *(
            f"| `{rule.id}` | {rule.severity.value} | {_cell(rule.reason)} | {_cell(rule.fix)} | {_cell(rule.source)} |"
            for rule in rules
        ),
        "",
        "## Findings of the engine that are not reported",
        "",
        "| rule | reason |",
        "|---|---|",
        *(f"| `{rule}` | {_cell(why)} |" for rule, why in LEFT_OUT.items()),
        "",
        "## Errors of the engine that are warnings here",
        "",
        "| rule | reason |",
        "|---|---|",
        *(f"| `{rule}` | {_cell(why)} |" for rule, why in DATED.items()),
    ]
    return "\n".join([*lines, ""])


def _how_many(asking: int, members: int) -> str:
    if asking in {0, members}:
        return "all" if asking else "none"
    return f"{asking} of {members}"


def _card(check: Check) -> list[str]:
    rows = [
        ("Inputs", check.inputs),
        ("PASS", check.passes),
        ("FAIL", check.fails),
        ("SKIP", check.skips),
        ("AWS calls", ", ".join(f"`{call}`" for call in calls_of(check)) or "none"),
        ("IAM actions", ", ".join(f"`{action}`" for action in actions_of(check)) or "none"),
    ]
    title = check.title[0].upper() + check.title[1:]
    table = [f"| {name} | {_cell(text)} |" for name, text in rows]
    return [
        f"### {title}",
        "",
        f"`{check.name}`",
        "",
        "| | |",
        "|---|---|",
        *table,
        "",
        "By hand:",
        "",
        "```console",
        *check.by_hand.strip().splitlines(),
        "```",
    ]


def _plain_environment() -> dict[str, str]:
    return {"COLUMNS": "100", "NO_COLOR": "1", "PATH": "", "PYTHONPATH": ""}


def _sections(schema: dict[str, Any], section: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, section
    for name, field in section["properties"].items():
        for inner, suffix in _inner(schema, field):
            yield from _sections(schema, inner, f"{path}.{name}{suffix}".lstrip("."))


def _inner(schema: dict[str, Any], field: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for option in field.get("anyOf", [field]):
        if "$ref" in option:
            yield _resolve(schema, option), ""
        for key, suffix in (("items", "[]"), ("additionalProperties", ".<name>")):
            if isinstance(option.get(key), dict):
                for inner, more in _inner(schema, option[key]):
                    yield inner, suffix + more


def _resolve(schema: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["$defs"][reference["$ref"].rsplit("/", 1)[-1]]
    return found


def _values(schema: dict[str, Any], field: dict[str, Any]) -> str:
    options = [_value(schema, option) for option in field.get("anyOf", [field]) if option.get("type") != "null"]
    return " or ".join(dict.fromkeys(option for option in options if option)) or "text"


def _value(schema: dict[str, Any], field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return _values(schema, field)
    if "$ref" in field:
        return "section"
    words = [f"`{word}`" for word in field.get("enum", [field["const"]] if "const" in field else [])]
    if words:
        return " ".join(words) if len(words) <= MOST_WORDS else f"one of {len(words)} known"
    if field.get("type") == "array":
        return f"list of {_value(schema, field.get('items', {}))}"
    if field.get("type") == "object":
        inner = field.get("additionalProperties")
        return f"map to {_values(schema, inner)}" if isinstance(inner, dict) else "map"
    return _scalar(field)


def _scalar(field: dict[str, Any]) -> str:
    kinds = {"integer": "number", "number": "number", "boolean": "`true` `false`", "string": "text"}
    kind = kinds.get(field.get("type", ""), "")
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"{low} or more"
    return kind


def _default(field: dict[str, Any]) -> str:
    if field.get("default") is None:
        return ""
    value = field["default"]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _description(schema: dict[str, Any], field: dict[str, Any]) -> str:
    inner = (section["description"] for section, _ in _inner(schema, field) if "description" in section)
    return str(field.get("description") or next(inner, ""))


def _cell(text: str) -> str:
    plain = text.replace("|", "\\|").replace("\n", " ").replace("``", "`")
    # outside of code, Markdown parses text in angle brackets as HTML
    return re.sub(r"`[^`]*`|<", lambda found: "\\<" if found[0] == "<" else found[0], plain)


if __name__ == "__main__":
    sys.exit(main())
