"""The ``hyperpod-cdk`` command line; each command is one call into another package."""

from __future__ import annotations

import errno
import gc
import getpass
import os
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from hyperpod_cdk._cli import (
    bootstrap_policy,
    extending,
    fleet,
    image,
    importing,
    job,
    living,
    members,
    node,
    observing,
    plans,
    prices,
    quotas,
    recovery,
    review,
    teams,
    templates,
    transitions,
    upgrade,
    words,
)
from hyperpod_cdk._cli.common import (
    FINDINGS,
    NO_APP,
    USAGE,
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    StrictOption,
    asked,
    assembly_errors,
    aws_errors,
    console,
    environment_file,
    extra,
    files_of,
    finish,
    has_app,
    judged_environment,
    loaded_environment,
    os_errors,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Checked, Format, let_readers_go, print_checked, print_json

app: typer.Typer = typer.Typer(
    name="hyperpod-cdk",
    help=(
        "Create and operate SageMaker HyperPod clusters on EKS, each described by one YAML file.\n\n"
        "Exit codes: 0; 1 if a command ran and refuses, finds or could not finish something, as its help says; 2 if it"
        " could not run (wrong words, no credentials, no such file); 130 after Ctrl-C. 'cdk' has those of the CDK CLI."
        " -h is short for --help."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=words.Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
)
charts: typer.Typer = typer.Typer(
    help="Fetch the HyperPod dependency chart and list its container images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(charts, name="charts")
app.add_typer(fleet.app, name="fleet")
app.add_typer(image.app, name="image")
app.add_typer(job.app, name="job")
app.add_typer(node.app, name="node")
app.add_typer(plans.app, name="plans")
plans.app.command()(extending.extend)
plans.app.command()(extending.attach)
app.add_typer(prices.app, name="prices")
app.add_typer(quotas.app, name="quotas")
app.add_typer(teams.app, name="teams")
app.command()(templates.templates)
app.command()(bootstrap_policy.bootstrap_policy)

_INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the signal's number, as in shells."""

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a full or broken device behind standard output."""

_OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""With Python's default of 700, garbage collection takes a fifth of the time to read a large file."""


def main() -> None:
    """Run the command; a user error is reported in one sentence with exit code 2, never as a traceback."""
    _open_closed_streams()
    let_readers_go()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        os.getcwd()  # noqa: PTH109 - Path.cwd would do the same
    except OSError as error:
        # every command needs it, even if another folder is given
        print(f"the current folder cannot be used: {error.strerror}; change to another folder", file=sys.stderr)
        sys.exit(USAGE)
    try:
        try:
            words.alone(app, sys.argv[1:2])(prog_name="hyperpod-cdk")
        finally:
            # otherwise Python writes the rest when it exits, too late for an error message
            print(end="", flush=True)
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            print("interrupted", file=sys.stderr)
        raise
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        # writing the rest of the buffer would fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"cannot write the output: {error.strerror}", file=sys.stderr)
        sys.exit(USAGE)


def _open_closed_streams() -> None:
    """Open the null device for streams that the shell has closed (``>&-``), so that no file gets their descriptor."""
    for name, flags, mode in (
        ("stdin", os.O_RDONLY, "r"),
        ("stdout", os.O_WRONLY, "w"),
        ("stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))


def _version(is_asked: bool) -> None:  # noqa: FBT001 - the signature of typer's callback
    if is_asked:
        from importlib import metadata  # noqa: PLC0415 - only here

        print(f"hyperpod-cdk {metadata.version('hyperpod-cdk')}")
        raise typer.Exit


@app.callback()
def hyperpod_cdk_command(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """SageMaker HyperPod clusters on EKS from one page of YAML per environment."""


@app.command()
def validate(
    environments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENV",
            autocompletion=words.environments,
            help="Names, files or folders. Default: all in environments/.",
        ),
    ] = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Check environment files.

    Exit code 0 if all files are accepted, 1 if a file is refused.
    """
    from hyperpod_cdk.config import UsageError, environment_files  # noqa: PLC0415 - 'schema --help' need not build the models
    from hyperpod_cdk.config.loading import made_in  # noqa: PLC0415 - as above

    root = root_of(project)
    nowhere: list[str] = []
    files: list[Path] = []
    for name in environments or ():
        try:
            files += files_of(name, root)
        except UsageError as error:
            # a mistyped name must not hide the errors of the other files
            nowhere.append(str(error))
    if not environments:
        files = environment_files(root)
        if not files:
            usage(f"no environment in {root / 'environments'}; {made_in(root)}")
    checked, _ = members.checked(files, root)
    if checked or not nowhere:
        print_checked(checked, output=output)
    if nowhere:
        usage("\n".join(nowhere))
    if not all(each.passed for each in checked):
        raise typer.Exit(FINDINGS)


class Forge(StrEnum):
    """The service that hosts a project's repository."""

    GITHUB = "github"
    GITLAB = "gitlab"


Page = Literal[
    "admission",
    "attachment",
    "bootstrap-policy",
    "chart",
    "chart-images",
    "drift",
    "environment",
    "extensions",
    "fleet",
    "fleet-report",
    "fleet-sums",
    "iam-policy",
    "image",
    "import",
    "init",
    "job",
    "job-manifests",
    "job-report",
    "new",
    "node-details",
    "node-logs",
    "node-work",
    "nodes",
    "observation",
    "plan",
    "plan-offerings",
    "plan-record",
    "preflight",
    "price-changes",
    "prices",
    "quota-requests",
    "quotas",
    "recovery",
    "rehearsal",
    "review",
    "review-report",
    "status",
    "teams-cost",
    "upgrade",
    "validate",
]
"""The pages with a JSON Schema."""


@app.command()
def schema(
    *,
    page: Annotated[
        Page,
        typer.Option(
            "--of",
            metavar="PAGE",
            help=(
                "Which schema. environment, fleet, job and review are of files, for editors; the others of the JSON"
                f" output of commands, for tools: {', '.join(get_args(Page))}."
            ),
        ),
    ] = "environment",
    out: Annotated[Path | None, typer.Option("--out", help="File to write. Default: standard output.")] = None,
) -> None:
    """Write the JSON Schema of the environment file, for editors, or another schema."""
    text = schema_text(page)
    if out is None:
        sys.stdout.write(text)
        return
    with os_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        plans.write_atomically(out, text)
    print(f"wrote {out}", file=sys.stderr)


def schema_text(page: Page) -> str:
    """Return the JSON Schema of a page as the text of its file."""
    match page:
        case "environment":
            from hyperpod_cdk.config.schema import schema_text as of_environment  # noqa: PLC0415 - as above

            # with the sections of the project's extensions
            root_of(None)
            return of_environment()
        case "fleet":
            from hyperpod_cdk.config.fleet import fleet_schema_text  # noqa: PLC0415 - as above

            return fleet_schema_text()
        case "job":
            from hyperpod_cdk.workloads.schema import schema_text as of_job  # noqa: PLC0415 - as above

            # with the kinds of jobs of the project's extensions
            root_of(None)
            return of_job()
        case "review":
            from hyperpod_cdk.review.review_file import rules_schema_text  # noqa: PLC0415 - as above

            return rules_schema_text()
        case _:
            from hyperpod_cdk._cli.answers import answer_schema_text  # noqa: PLC0415 - as above

            return answer_schema_text(page)


ZoneOption = Annotated[
    list[str] | None,
    typer.Option(
        "--zone",
        help=(
            "Availability Zone ID; repeat the option for each zone. At least two, the workers' zone first."
            " Default: the first two of the Region."
        ),
    ),
]
InstanceTypeOption = Annotated[
    str | None,
    typer.Option(
        "--instance-type", help="Instance type of the worker group. Default: no worker group, only a system group."
    ),
]
CountOption = Annotated[int, typer.Option("--count", help="Number of nodes in the worker group.")]
CapacityOption = Annotated[
    str | None, typer.Option("--capacity", help="Capacity of the worker group: on_demand, spot or training_plan.")
]
PlanOption = Annotated[
    str | None, typer.Option("--training-plan-arn", help="ARN of the training plan, with --capacity training_plan.")
]
TeamOption = Annotated[
    str | None, typer.Option("--team", help="Name of a team whose compute quota is the whole worker group.")
]
LustreOption = Annotated[bool, typer.Option("--lustre/--no-lustre", help="Also create an FSx for Lustre file system.")]
AdminRoleOption = Annotated[
    list[str] | None,
    typer.Option("--admin-role", help="ARN of an IAM role that administers the cluster. Can be repeated."),
]


@app.command()
def new(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to create. It must be empty or not exist.")],
    *,
    forge: Annotated[
        Forge | None, typer.Option("--with", help="Also write pipelines for pull requests and deployments.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the first environment.")] = "prod",
    account: Annotated[
        str | None, typer.Option("--account", help="AWS account ID, 12 digits. Default: a sample account.")
    ] = None,
    region: Annotated[str | None, typer.Option("--region", help="AWS Region. Default: a sample Region.")] = None,
    zone: ZoneOption = None,
    instance_type: InstanceTypeOption = None,
    count: CountOption = 2,
    capacity: CapacityOption = None,
    training_plan_arn: PlanOption = None,
    team: TeamOption = None,
    lustre: LustreOption = False,
    admin_role: AdminRoleOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Create a project of few files; everything else comes with the installed package.

    On a terminal, the command asks for the account and the Region. Without an answer, the environment is the sample
    in the README, which passes 'validate' and 'rehearse'. With --training-plan-arn they are those of the plan. The
    folder is new, empty, or a Git repository without files. Existing files are never overwritten.
    """
    from hyperpod_cdk._cli.project import SAMPLE, check_folder, write_project  # noqa: PLC0415 - as in validate
    from hyperpod_cdk._cli.scaffold import Answers, ScaffoldError, home_of_plan  # noqa: PLC0415 - as in validate

    try:
        check_folder(directory)
        if account is None and region is None and (of_plan := home_of_plan(training_plan_arn)) is not None:
            # no cluster uses a plan of another account or region
            account, region = of_plan
            print(f"account {account} and region {region}: those of --training-plan-arn", file=sys.stderr)
        elif sys.stdin.isatty() and account is None and region is None:
            account = _asked("--account", "AWS account ID", "account", default=SAMPLE.account)
            region = _asked("--region", "AWS Region", "region", default=SAMPLE.region)
        if (account is None) is not (region is None):
            usage("--account and --region: specify both, or neither for the sample environment")
        # an empty value, from a shell variable that is not set, does not mean the sample
        account = SAMPLE.account if account is None else account
        region = SAMPLE.region if region is None else region
        is_sample = (account, region) == (SAMPLE.account, SAMPLE.region)
        answers = Answers(
            name=name,
            account=account,
            region=region,
            zones=tuple(zone or ()),
            instance_type=instance_type,
            count=count,
            capacity=capacity,
            training_plan_arn=training_plan_arn,
            team=team,
            lustre=lustre,
            admin_role_arns=tuple((() if is_sample else _administrators()) if admin_role is None else admin_role),
        )
        with os_errors(directory):
            files = write_project(directory, answers, forge=forge)
    except ScaffoldError as error:
        usage(str(error))
    steps = [f"cd {shlex.quote(str(directory))}", f"hyperpod-cdk validate {name}", f"hyperpod-cdk rehearse {name}"]
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import Project, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(Project, {"project": str(directory), "files": files, "next": steps})
        return
    for file in files:
        print(f"wrote {directory / file}")
    print(f"next: {' && '.join(steps)}")
    print("      README.md there describes how to deploy it")


@app.command()
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the environment.")],
    *,
    region: Annotated[
        str | None, typer.Option("--region", help="AWS Region. Default: the command asks for it.")
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", help="AWS account ID, 12 digits. Default: the command asks for it.")
    ] = None,
    zone: ZoneOption = None,
    instance_type: InstanceTypeOption = None,
    count: CountOption = 2,
    capacity: CapacityOption = None,
    training_plan_arn: PlanOption = None,
    team: TeamOption = None,
    lustre: LustreOption = False,
    admin_role: AdminRoleOption = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Create environments/NAME.yaml.

    The file passes 'validate'. An existing file is never overwritten.
    """
    from hyperpod_cdk._cli.scaffold import Answers, ScaffoldError, write_environment  # noqa: PLC0415 - as in validate
    from hyperpod_cdk.config.documents import shown  # noqa: PLC0415 - as in validate
    from hyperpod_cdk.config.loading import called, in_project  # noqa: PLC0415 - as in validate

    root = root_of(project)
    answers = Answers(
        name=name,
        region=_asked("--region", "AWS Region", "region") if region is None else region,
        account=_asked("--account", "AWS account ID", "account") if account is None else account,
        zones=tuple(zone or ()),
        instance_type=instance_type,
        count=count,
        capacity=capacity,
        training_plan_arn=training_plan_arn,
        team=team,
        lustre=lustre,
        admin_role_arns=tuple(_administrators() if admin_role is None else admin_role),
    )
    try:
        with os_errors(root):
            path = write_environment(answers, root)
    except ScaffoldError as error:
        usage(str(error))
    word = called(path)
    steps = [
        f"hyperpod-cdk validate {word}",
        f"hyperpod-cdk rehearse {word}",
        f"hyperpod-cdk charts pull{in_project(root)}",
        f"hyperpod-cdk bootstrap-policy {word} --out policy.json",
        f"hyperpod-cdk preflight {word}",
        f"hyperpod-cdk review {word} --deployed",
        f"hyperpod-cdk deploy {word}",
    ]
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import WrittenEnvironment, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(WrittenEnvironment, {"file": str(path), "next": steps})
        return
    print(f"wrote {shown(path)}")
    if not has_app(root):
        print(f"next: {NO_APP.format(root)};")
        print(f"      move the file into the project's environments/, then run '{steps[0]}' and '{steps[1]}'")
        return
    print(f"next: read it, then '{steps[0]}' and '{steps[1]}';")
    print(f"      for a real deployment '{steps[2]}', and once for each account and region")
    print(f"      '{steps[3]}', which shows how to bootstrap;")
    print(f"      then '{steps[4]}', '{steps[5]}' and '{steps[6]}'")


def _administrators() -> list[str]:
    """Ask on a terminal who may use kubectl; without a terminal, validate warns instead."""
    if not sys.stdin.isatty():
        return []
    question = "ARN of the IAM role that administers the cluster (no other role has access; leave empty for none)"
    given = _asked("--admin-role", question, "admin_role_arns", default="")
    return [given] if given else []


def _asked(option: str, question: str, field: str, *, default: str | None = None) -> str:
    """Ask for the value of ``option``, which is ``field`` in the file."""
    from hyperpod_cdk._cli.scaffold import answer_problem  # noqa: PLC0415 - as in validate

    return asked(option, question, default=default, judge=lambda given: answer_problem(field, given))


app.command("import")(importing.import_)


@app.command()
def rehearse(
    environment: EnvironmentArgument,
    *,
    account_file: Annotated[
        Path | None,
        typer.Option(
            "--account-file",
            help=(
                "File with the quotas and training plans of the embedded account. Default: what the environment needs."
            ),
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the embedded AWS running for other clients until you press Enter.")
    ] = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Deploy an environment without an AWS account: the real CDK CLI against an AWS on this machine.

    It fails if a step fails, and if nodes do not run for a reason other than those that the account file states.
    """
    from hyperpod_cdk.config import EnvironmentFileError  # noqa: PLC0415 - as in validate

    root = root_of(project)
    file = environment_file(environment, root)
    if account_file is not None and not account_file.is_file():
        usage(f"--account-file: file {account_file} does not exist")
    if not has_app(root):
        # errors of the file are reported first, as with an app
        judged_environment(file, output=output)
        usage(NO_APP.format(root))
    from hyperpod_cdk.catalog.prices import PricesError  # noqa: PLC0415 - no other command of this file needs it
    from hyperpod_cdk.packaged_node import ToolMissingError  # noqa: PLC0415 - as above

    with extra("rehearsal"):
        from hyperpod_cdk_rehearsal import driver, report  # noqa: PLC0415 - an optional extra, and slow to import
        from hyperpod_cdk_rehearsal.embedded.account import AccountFileError  # noqa: PLC0415 - as above
        from hyperpod_cdk_rehearsal.process import EmbeddedAwsError  # noqa: PLC0415 - as above
    terminal = console(stderr=output is Format.JSON)
    try:
        done = driver.rehearse(file, project=root, account_file=account_file, keep=keep, console=terminal)
    except EnvironmentFileError as error:
        print_checked([Checked(error.file, error.findings)], output=output)
        raise typer.Exit(FINDINGS) from None
    except (AccountFileError, PricesError, ToolMissingError) as error:
        usage(str(error))
    except EmbeddedAwsError as error:
        print(str(error), file=sys.stderr)
        raise typer.Exit(FINDINGS) from None
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import Rehearsal, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(Rehearsal, done.as_dict())
    else:
        report.print_report(done, terminal)
    if not done.passed:
        raise typer.Exit(FINDINGS)


@app.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
def cdk(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENT", help="Arguments for the CDK CLI.")
    ] = None,
) -> None:
    """Run the CDK CLI in the version that this hyperpod-cdk is tested with.

    For example, 'hyperpod-cdk cdk deploy' runs 'cdk deploy'. If the project has its own CDK CLI in node_modules,
    that one runs. Otherwise the CDK CLI is installed once, into the cache folder of your user.

    A 'deploy' that does not say otherwise names its own change sets, so that it never executes those of another
    deployment.
    """
    from hyperpod_cdk.packaged_node import (  # noqa: PLC0415 - as in validate
        ToolMissingError,
        cdk_command,
        cdk_is_there,
        node_variables,
    )

    root = root_of(None, runs_extensions=False)
    if set(arguments or ()) <= {"--help", "-h"} and not cdk_is_there(root):
        # a request for help is not a request to install
        typer.echo(context.get_help())
        typer.echo(
            "The CDK CLI is not installed yet. The first command that needs it installs it; this then shows its help."
        )
        return
    problem = no_app(arguments or (), root)
    if problem:
        usage(problem)
    try:
        command = cdk_command(root, say=lambda text: print(text, file=sys.stderr))
    except ToolMissingError as error:
        usage(str(error))
    given = arguments or []
    if _verb(given) == "deploy":
        from hyperpod_cdk.transitions.cdk import by_hand  # noqa: PLC0415 - as in validate

        given = by_hand(given, os.environ)
    sys.stdout.flush()
    # replaces this process, so that Ctrl-C and the exit code are those of the CDK CLI
    os.execve(command[0], [*command, *given], {**os.environ, **node_variables()})  # noqa: S606 - no shell


_OF_AN_APP = frozenset(
    {"synth", "synthesize", "deploy", "diff", "list", "ls", "destroy", "watch", "import", "metadata", "rollback"}
)
"""Commands of the CDK CLI 2.1148.1 that do nothing without an app."""


def _verb(arguments: Sequence[str]) -> str | None:
    return next((each for each in arguments if each in _OF_AN_APP), None)


def no_app(arguments: Sequence[str], root: Path) -> str:
    """Return where an app is if the CDK CLI would not find one: it only reads cdk.json in the current folder."""
    is_given = any(each in {"-a", "--app"} or each.startswith(("-a=", "--app=")) for each in arguments)
    verb = _verb(arguments)
    try:
        places = [Path.cwd() / "cdk.json", Path.home() / ".cdk.json"]
        is_there = any(each.exists() for each in places)
    except (OSError, RuntimeError):
        # the home folder is unknown; the CDK CLI reports the error
        return ""
    if is_given or verb is None or is_there or "CDK_APP" in os.environ:
        return ""
    if (root / "cdk.json").exists():
        return f"'cdk {verb}' reads cdk.json in the current folder, and the project's is in {root}: run it there"
    return (
        f"'cdk {verb}' needs an app, and {Path.cwd()} has no cdk.json: run it in a project's folder, or create one"
        " with 'hyperpod-cdk new DIR'"
    )


@app.command()
def preflight(
    environment: EnvironmentArgument,
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", autocompletion=words.checks, help="Area or check to run. Can be repeated. Default: all."
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            "--skip",
            autocompletion=words.checks,
            help="Area or check to skip. Can be repeated.",
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not call AWS. Checks that need it are skipped.")
    ] = False,
    head: Annotated[
        Path | None,
        typer.Option(
            "--head",
            metavar="DIR",
            help="Cloud assembly of the environment. Only needed to check the permissions for what extensions add.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every check on its own line, with what it read.")
    ] = False,
    iam_policy: Annotated[
        bool, typer.Option("--iam-policy", help="Only print the IAM policy that these checks need, and exit.")
    ] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Compare the environment with the AWS account before a deployment. Read only.

    Exit code 1 if something would make the deployment fail. A check that could not read something is skipped:
    "passed" in the JSON output is then null, and with --strict the exit code is 1. Use --skip with the name of a
    check that cannot run from where you are.
    """
    from hyperpod_cdk._cli import preflight as verb  # noqa: PLC0415 - as in validate
    from hyperpod_cdk.checks.policy import policy  # noqa: PLC0415 - as in validate
    from hyperpod_cdk.checks.run import select  # noqa: PLC0415 - as in validate
    from hyperpod_cdk.config import UsageError  # noqa: PLC0415 - as in validate
    from hyperpod_cdk.templates.assembly import read_assembly  # noqa: PLC0415 - as in validate

    root = root_of(project)
    try:
        checks = select(only or (), skip or ())
    except UsageError as error:
        usage(f"--only and --skip: {error}")
    if iam_policy:
        print_json(policy(checks))
        return
    loaded = judged_environment(environment_file(environment, root), output=output)
    types = None
    if head is not None:
        with assembly_errors():
            types = verb.made_types(read_assembly(head, loaded.environment.name))
    with aws_errors(otherwise=", or use --offline"):
        report, asked = verb.run(
            loaded, project=root, only=only or (), skip=skip or (), is_offline=offline, types=types
        )
    verb.print_report(report, asked, output=output, verbose=verbose or bool(only), is_offline=offline)
    finish(passed=report.passed, strict=strict)


app.command()(review.review)
app.command()(review.diagram)
app.command()(transitions.plan)
app.command()(transitions.deploy)
app.command()(transitions.destroy)
app.command()(living.drift)
app.command()(living.status)
app.command()(observing.observe)
app.command()(upgrade.upgrade)
app.command()(recovery.recover)


@charts.command("images")
def chart_images(
    environment: EnvironmentArgument, project: ProjectOption = None, output: FormatOption = Format.TEXT
) -> None:
    """List the container images of the dependency chart, and which ones a closed network must copy.

    The list comes from the pulled chart, with the values of the environment. Without the chart, it comes from the
    catalog's dated table.
    """
    from hyperpod_cdk._cli import charts as verb  # noqa: PLC0415
    from hyperpod_cdk.eks import charts as chart_files  # noqa: PLC0415 - other verbs need no git and no helm

    root = root_of(project)
    loaded = loaded_environment(environment_file(environment, root), output=output)
    try:
        found = verb.images_of(loaded.environment, root)
    except chart_files.ChartError as error:
        print(str(error), file=sys.stderr)
        raise typer.Exit(FINDINGS) from None
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import ChartImages, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(ChartImages, found.as_dict())
    else:
        print(found.render())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name; Python 3.13 raises the latter
        return f"user {os.getuid()}"


@charts.command()
def pull(
    accept_digest: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHA256",
            help=(
                "Accept a digest that is not in charts/charts.lock.yaml, as shown by a refused pull. It is"
                " recorded there with your name. Can be repeated."
            ),
        ),
    ] = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Download the HyperPod dependency chart at the commit in charts/charts.lock.yaml, and verify it.

    A file that is not pinned in the lock file is refused, and its digest is shown.
    """
    from hyperpod_cdk.eks import charts as chart_files  # noqa: PLC0415 - other verbs need no git and no helm

    for digest in accept_digest or ():
        if not chart_files.DIGEST.fullmatch(digest):
            said = "a SHA-256 digest as shown by a refused pull, 64 hexadecimal digits"
            usage(f"--accept-digest: must be {said}, got {digest!r}")
    root = root_of(project)
    try:
        folder = chart_files.pull(
            root,
            progress=lambda line: print(line, file=sys.stderr),
            accepted=accept_digest or (),
            recorder=f"{_user()} accepted it on {datetime.now(UTC).date()}",
        )
    except chart_files.ChartError as error:
        print(str(error), file=sys.stderr)
        raise typer.Exit(FINDINGS) from None
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import PulledChart, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(PulledChart, {"chart": str(folder)})
    else:
        print(f"chart in {folder}")


words.dress(app)
