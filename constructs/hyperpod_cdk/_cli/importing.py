"""The verb ``import``: an environment file from what exists."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    FormatOption,
    ProjectOption,
    StrictOption,
    aws_errors,
    extra,
    finish,
    os_errors,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Checked, Format, painted_word, print_checked, print_json
from hyperpod_cdk._cli.transitions import access_of

if TYPE_CHECKING:
    from hyperpod_cdk.importing.model import Family
    from hyperpod_cdk.review.deployed import Api


class From(StrEnum):
    """What a source is said to be."""

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
            help="JSON for 'aws sagemaker create-cluster', parameters of AWS's set-up stack, tfvars or state of its"
            " module. Left out with --cluster.",
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="A HyperPod cluster that stands, by name: AWS is asked, and only read."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the environment. Default: it is asked.")] = None,
    kind: Annotated[
        From | None, typer.Option("--from", help="What the source is. Default: what its content tells.")
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", help="AWS account ID, 12 digits. Default: that of the source's ARNs.")
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            "--region",
            help="AWS region. Default: that of the source's ARNs; with --cluster that of your AWS configuration.",
        ),
    ] = None,
    vpc_id: Annotated[str | None, typer.Option("--vpc-id", help="The VPC that the source's subnets are of.")] = None,
    subnet: Annotated[
        list[str] | None, typer.Option("--subnet", help="The AZ ID of a subnet of the source; may be given again.")
    ] = None,
    zone: Annotated[
        list[str] | None,
        typer.Option("--zone", help="AZ ID of a network to make, beside the source's; may be given again."),
    ] = None,
    eks_security_group: Annotated[
        str | None, typer.Option("--eks-security-group", help="The security group that EKS made for its cluster.")
    ] = None,
    kubernetes_version: Annotated[
        str | None, typer.Option("--kubernetes-version", help="Version of the existing EKS cluster.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write. Default: environments/NAME.yaml of the project.")
    ] = None,
    iam_policy: Annotated[
        bool,
        typer.Option("--iam-policy", help="Only print the IAM policy that --cluster needs, which reads only."),
    ] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Write an environment file from a cluster that exists: nothing is invented, and what is lost is named.

    From a file, or with --cluster from AWS. Existing networks, EKS clusters and file systems become 'existing'. Exit
    code 1 where 'validate' does not accept the file yet: what is missing stands in its first lines, and so does what
    AWS did not answer; "passed" in JSON is then null, and with --strict the exit code is 1. An existing file is never
    overwritten. Nothing in AWS is changed, and no cluster is taken over.
    """
    from hyperpod_cdk._cli.scaffold import (  # noqa: PLC0415 - 'import --help' need not load it
        SCHEMA,
        ScaffoldError,
        refuse_existing,
        write_new,
    )
    from hyperpod_cdk.checks.policy import policy_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.documents import DocumentError, shown  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.environment import ENVIRONMENT_NAME  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.loading import FOLDER, SUFFIX  # noqa: PLC0415 - as above
    from hyperpod_cdk.importing import page  # noqa: PLC0415 - as above
    from hyperpod_cdk.importing.draft import Known  # noqa: PLC0415 - as above
    from hyperpod_cdk.importing.run import Place, imported, imported_living  # noqa: PLC0415 - as above

    if iam_policy:
        print_json(policy_of("import"))
        return
    if (source is None) is (cluster is None):
        usage("give either SOURCE, a file, or --cluster, the name of a cluster that stands")
    if kind is not None and cluster is not None:
        usage("--from says what a file is; leave it out with --cluster")
    name = name or typer.prompt("Name")
    if problem := ENVIRONMENT_NAME.problem(name, key="name"):
        usage(f"--name {problem}")
    root = root_of(project)
    target = out or root / FOLDER / f"{name}{SUFFIX}"
    known = Known(
        name=name,
        account=account,
        region=region,
        vpc_id=vpc_id,
        eks_security_group_id=eks_security_group,
        kubernetes_version=kubernetes_version,
        subnet_zones=dict(_subnet(each) for each in subnet or ()),
        zones=tuple(zone or ()),
    )
    said: Family | None = None if kind is None else kind.value
    try:
        refuse_existing(target, shown=shown(target))
        schema = Path(os.path.relpath(root / SCHEMA, target.parent)).as_posix()
        place = Place(target=target, root=root, schema=schema)
        if source is not None:
            found, text = imported(source, known, to=place, kind=said)
        else:
            aws = _opened(context, region, account)
            found, text = imported_living(aws, cluster or "", known, to=place)
        with os_errors(target):
            write_new(target, text, root)
    except ScaffoldError as error:
        usage(str(error))
    except DocumentError as error:
        print_checked([Checked(error.file, error.findings)], output=output)
        raise typer.Exit(FINDINGS) from None
    if output is Format.JSON:
        typer.echo(page.report_json(found), nl=False)
    else:
        for word, line in page.report_lines(found):
            print(f"{painted_word(word)} {line}" if word else line)
        print(f"next: {_next(found.next, passed=found.passed is not False)}")
    finish(passed=found.passed, strict=strict)


def _opened(context: typer.Context, region: str | None, account: str | None) -> Api:
    """Reach AWS in a region, as whoever the credentials are; exits 2 where there is no region, or nobody to ask as."""
    with extra("aws"):
        from hyperpod_cdk.checks.aws import configured_region  # noqa: PLC0415 - boto3 is slow to load
    where = region or configured_region()
    if where is None:
        usage("--cluster needs a region; give --region, or set AWS_REGION or one in the AWS profile")
    with aws_errors():
        return access_of(context).open(where, account or "")


def _subnet(text: str) -> tuple[str, str]:
    match = _SUBNET.fullmatch(text)
    if match is None:
        usage(f'--subnet: must be a subnet and its AZ ID, such as subnet-0a1b2c3d4e5f67890=use1-az5, got "{text}"')
    return match[1], match[2]


def _next(commands: Sequence[str], *, passed: bool) -> str:
    first, *others = (f"'{each}'" for each in commands)
    what = "read it" if passed else "write into it what is missing"
    return f"{what}, then {first}, {' and '.join(others)}"
