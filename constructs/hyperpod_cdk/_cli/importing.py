"""The command ``import``: an environment file from an existing cluster."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    NO_APP,
    FormatOption,
    ProjectOption,
    StrictOption,
    TrustedOption,
    asked,
    aws_errors,
    extra,
    finish,
    has_app,
    os_errors,
    refuse_word,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Checked, Format, painted_word, print_checked, print_json
from hyperpod_cdk._cli.review import HeadOption
from hyperpod_cdk._cli.transitions import Terminal, access_of, head_of, opened

if TYPE_CHECKING:
    from hyperpod_cdk.importing.draft import Known
    from hyperpod_cdk.importing.model import Family, Imported
    from hyperpod_cdk.review.deployed import Api


class From(StrEnum):
    """The types of sources."""

    CREATE_CLUSTER = "create-cluster"
    SETUP = "setup"
    TERRAFORM = "terraform"


_SUBNET = re.compile(r"(subnet-[0-9a-f]+)=([a-z0-9-]+)")


def import_(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="SOURCE",
            help=(
                "JSON file for 'aws sagemaker create-cluster', parameters of AWS's setup stack, or tfvars or"
                " state of AWS's Terraform module. Omit with --cluster."
            ),
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Name of an existing HyperPod cluster, which is read from AWS."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the environment. Default: the command asks for it.")
    ] = None,
    kind: Annotated[
        From | None, typer.Option("--from", help="Type of the source. Default: detected from its content.")
    ] = None,
    account: Annotated[
        str | None,
        typer.Option("--account", help="AWS account ID, 12 digits. Default: the account in the ARNs of the source."),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            "--region",
            help=(
                "AWS Region. Default: the Region in the ARNs of the source; with --cluster, the Region of your"
                " AWS configuration."
            ),
        ),
    ] = None,
    vpc_id: Annotated[str | None, typer.Option("--vpc-id", help="ID of the VPC of the subnets in the source.")] = None,
    subnet: Annotated[
        list[str] | None,
        typer.Option("--subnet", help="Availability Zone ID of a subnet in the source. Can be repeated."),
    ] = None,
    zone: Annotated[
        list[str] | None,
        typer.Option("--zone", help="Additional Availability Zone ID for a network that is created. Can be repeated."),
    ] = None,
    eks_security_group: Annotated[
        str | None, typer.Option("--eks-security-group", help="ID of the cluster security group that EKS created.")
    ] = None,
    kubernetes_version: Annotated[
        str | None, typer.Option("--kubernetes-version", help="Kubernetes version of the existing EKS cluster.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write. Default: environments/NAME.yaml in the project.")
    ] = None,
    iam_policy: Annotated[
        bool,
        typer.Option("--iam-policy", help="Only print the read-only IAM policy that --cluster needs, and exit."),
    ] = False,
    takeover: Annotated[
        bool,
        typer.Option(
            "--takeover",
            help=(
                "With --cluster: write a file that describes the cluster; if the file exists, import the cluster"
                " into CloudFormation."
            ),
        ),
    ] = False,
    only_plan: Annotated[
        bool, typer.Option("--plan", help="With --takeover: only show what would be done, and change nothing.")
    ] = False,
    head: HeadOption = None,
    strict: StrictOption = False,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Create an environment file from an existing cluster. Nothing is invented, and what is lost is listed.

    The source is a file, or AWS with --cluster. Existing networks, EKS clusters and file systems become 'existing'
    in the environment file. An existing file is never overwritten.

    Exit code 1 if 'validate' does not accept the file yet. The first lines of the file list what is missing, and
    what AWS did not answer: "passed" in the JSON output is then null, and with --strict the exit code is 1.

    Nothing in AWS is changed, with one exception: if the file already exists, --takeover imports the cluster, its
    roles and what the environment would create for it (add-ons, access entries, cluster policy, compute quotas)
    unchanged into CloudFormation, after it shows a plan and you type the name of the cluster.
    The next deployment then changes what is different in the file. --takeover is refused if that would replace
    anything. If it was interrupted, run the same command again to continue.
    """
    from hyperpod_cdk._cli.scaffold import answer_problem  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.policy import policy_of  # noqa: PLC0415 - 'import --help' need not load it
    from hyperpod_cdk.config.environment import ENVIRONMENT_NAME  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.loading import FOLDER, SUFFIX  # noqa: PLC0415 - as above
    from hyperpod_cdk.importing.draft import Known  # noqa: PLC0415 - as above

    if iam_policy:
        print_json(policy_of("import --takeover" if takeover else "import"))
        return
    for is_wrong, said in (
        (
            (source is None) is (cluster is None),
            "specify either SOURCE, a file, or --cluster, the name of an existing cluster",
        ),
        (takeover and cluster is None, "--takeover is for --cluster"),
        ((only_plan or bool(head)) and not takeover, "--plan and --head are for --takeover"),
        (kind is not None and cluster is not None, "--from is the type of a file; omit it with --cluster"),
    ):
        if is_wrong:
            usage(said)
    if not name:
        name = asked("--name", "Name", judge=lambda given: answer_problem("name", given))
    refuse_word("--name", ENVIRONMENT_NAME.problem(name, key="--name"))
    root = root_of(project)
    target = out or root / FOLDER / f"{name}{SUFFIX}"
    if takeover and cluster is not None and target.exists():
        if output is Format.JSON:
            usage("--takeover shows its plan and asks for confirmation; omit --format json")
        _take_over(context, str(target), cluster, project, head=head, trusted=trusted, only_plan=only_plan)
        return
    zones = dict(_subnet(each, region) for each in subnet or ())
    _judge(
        cluster=cluster,
        account=account,
        region=region,
        vpc_id=vpc_id,
        eks_security_group=eks_security_group,
        kubernetes_version=kubernetes_version,
        zones=zone or (),
    )
    known = Known(
        name=name,
        account=account,
        region=region,
        vpc_id=vpc_id,
        eks_security_group_id=eks_security_group,
        kubernetes_version=kubernetes_version,
        subnet_zones=zones,
        zones=tuple(zone or ()),
        is_takeover=takeover,
    )
    said_kind: Family | None = None if kind is None else kind.value
    from hyperpod_cdk.config.documents import shown  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.loading import in_project  # noqa: PLC0415 - as above
    from hyperpod_cdk.importing.page import report_json, report_lines  # noqa: PLC0415 - as above

    found = _imported(context, known, source or cluster or "", target=target, root=root, kind=said_kind, output=output)
    if output is Format.JSON:
        typer.echo(report_json(found), nl=False)
    else:
        for word, line in report_lines(found):
            print(f"{painted_word(word)} {line}" if word else line)
        placed = in_project(root) if out is None else f" --out {shlex.quote(shown(out))}{in_project(root)}"
        again = f"hyperpod-cdk import --cluster {cluster} --name {name}{placed} --takeover --plan"
        commands = (found.next[0], again) if takeover else found.next
        is_project = has_app(root)
        print(f"next: {_next(commands if is_project else commands[:1], passed=found.passed is not False)}")
        if not is_project:
            print(f"      {NO_APP.format(root)};")
            print("      move the file into the project's environments/ before the next steps")
    finish(passed=found.passed, strict=strict)


def _imported(
    context: typer.Context,
    known: Known,
    source: Path | str,
    *,
    target: Path,
    root: Path,
    kind: Family | None,
    output: Format,
) -> Imported:
    """Write the file for ``source``, a path or a cluster's name; exits if it is refused or the file exists already."""
    from hyperpod_cdk._cli.scaffold import SCHEMA, ScaffoldError, refuse_existing, write_new  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.documents import DocumentError, shown  # noqa: PLC0415 - as above
    from hyperpod_cdk.importing.run import Place, imported, imported_living  # noqa: PLC0415 - as above

    try:
        refuse_existing(target, shown=shown(target), fix="remove it to import again, choose another name or edit it")
        schema = Path(os.path.relpath(root / SCHEMA, target.parent)).as_posix()
        place = Place(target=target, root=root, schema=schema)
        if isinstance(source, Path):
            found, text = imported(source, known, to=place, kind=kind)
        else:
            aws = _opened(context, known.region, known.account)
            found, text = imported_living(aws, source, known, to=place)
        with os_errors(target):
            write_new(target, text, root)
    except ScaffoldError as error:
        usage(str(error))
    except DocumentError as error:
        print_checked([Checked(error.file, error.findings)], output=output)
        raise typer.Exit(FINDINGS) from None
    return found


def _take_over(
    context: typer.Context,
    file: str,
    cluster: str,
    project: Path | None,
    *,
    head: str | None,
    trusted: bool,
    only_plan: bool,
) -> None:
    from hyperpod_cdk.checks.answers import NotAnswered  # noqa: PLC0415 - as below
    from hyperpod_cdk.transitions.takeover import Import, lines, planned  # noqa: PLC0415 - as below

    person = Terminal(is_there=True)
    with head_of(file, project, head=head, trusted=trusted) as new:
        aws = opened(context, new)()
        try:
            found = planned(aws, new.assembly, cluster)
            for line in lines(found):
                person.say(line)
            if found.refusals:
                raise typer.Exit(FINDINGS)
            if only_plan or not found.open:
                return
            if not person.types("Type the cluster's name to import it", cluster):
                person.say("Nothing was changed.")
                raise typer.Exit(FINDINGS)
            done = Import(aws=aws, say=person.say, pause=time.sleep).run(found)
        except NotAnswered as missing:
            person.say(f"{missing.sentence}; run the same command again to continue from the state in CloudFormation")
            raise typer.Exit(FINDINGS) from None
    finish(passed=done, strict=False)
    word = new.assembly.word
    person.say(f"next: 'hyperpod-cdk plan {word}' shows what a deployment changes, then 'hyperpod-cdk deploy {word}'")


def _opened(context: typer.Context, region: str | None, account: str | None) -> Api:
    """Connect to AWS in a Region with the current credentials; exits with code 2 without a Region or credentials."""
    with extra("aws"):
        from hyperpod_cdk.checks.aws_calls import configured_region  # noqa: PLC0415 - boto3 is slow to load
    where = region or configured_region()
    if where is None:
        usage("--cluster needs a Region; specify --region, set AWS_REGION, or set a Region in the AWS profile")
    with aws_errors():
        return access_of(context).open(where, account or "")


def _subnet(text: str, region: str | None) -> tuple[str, str]:
    match = _SUBNET.fullmatch(text)
    if match is None:
        usage(f'--subnet: must be a subnet and its AZ ID, such as subnet-0a1b2c3d4e5f67890=use1-az5, got "{text}"')
    if problem := _zone_problem(match[2], region, option="--subnet"):
        usage(f"--subnet {match[1]}: {problem}")
    return match[1], match[2]


def _judge(
    *,
    cluster: str | None,
    account: str | None,
    region: str | None,
    vpc_id: str | None,
    eks_security_group: str | None,
    kubernetes_version: str | None,
    zones: Sequence[str],
) -> None:
    """Refuse values that the file would refuse or that cannot be a cluster's name, before a source is read."""
    from hyperpod_cdk._cli.scaffold import answer_problem  # noqa: PLC0415 - as above
    from hyperpod_cdk.catalog.hyperpod import CLUSTER  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.eks import Eks, ExistingEks  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.environment import Environment  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.network import ExistingNetwork  # noqa: PLC0415 - as above

    if cluster is not None:
        refuse_word("--cluster", CLUSTER.problem(cluster, key="--cluster"))
    for option, said, section, field in (
        ("--account", account, Environment, "account"),
        ("--region", region, Environment, "region"),
        ("--vpc-id", vpc_id, ExistingNetwork, "vpc_id"),
        ("--eks-security-group", eks_security_group, ExistingEks, "security_group_id"),
        ("--kubernetes-version", kubernetes_version, Eks, "kubernetes_version"),
    ):
        if said is not None and (problem := answer_problem(field, said, section=section, option=option)):
            usage(f"{option}: {problem}")
    for zone in zones:
        if problem := _zone_problem(zone, region, option="--zone"):
            usage(f"--zone: {problem}")


def _zone_problem(zone: str, region: str | None, *, option: str) -> str | None:
    from hyperpod_cdk.catalog import regions  # noqa: PLC0415 - as above
    from hyperpod_cdk.catalog.sentences import Advice, Setting, by_option, in_words_of  # noqa: PLC0415 - as above

    def said(advice: Advice) -> str:
        is_other = isinstance(advice, Setting) and advice.key == "region"
        return by_option("--region" if is_other else option)(advice)

    # the name of a zone is the name of its Region and a letter
    problem = regions.az_id_problem(zone, region=region or zone.rstrip(ascii_lowercase), key=option)
    return None if problem is None else in_words_of(problem, said)


def _next(commands: Sequence[str], *, passed: bool) -> str:
    from hyperpod_cdk.catalog.rules import joined  # noqa: PLC0415 - as above

    what = "read it" if passed else "write into it what is missing"
    quoted = [f"'{each}'" for each in commands]
    return f"{what}, then {joined(quoted)}"
