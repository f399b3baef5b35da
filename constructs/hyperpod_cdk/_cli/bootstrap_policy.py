"""The command ``bootstrap-policy``: the permissions that CloudFormation needs to deploy, for ``cdk bootstrap``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    TrustedOption,
    assembly_errors,
    environment_file,
    loaded_environment,
    os_errors,
    root_of,
    synthesized,
    usage,
)
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk._cli.review import HeadOption, with_deployed

if TYPE_CHECKING:
    from hyperpod_cdk.bootstrap_policy import Policy
    from hyperpod_cdk.catalog.deployer_actions import LeftOut
    from hyperpod_cdk.config import Environment

_CONTEXT = {"chart": "placeholder"}
_OWN_POLICY = "ARN_OF_YOUR_POLICY"


def bootstrap_policy(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REF|DIR",
            help="Git revision or cloud assembly that is deployed. Adds the permissions to remove its resources.",
        ),
    ] = None,
    deployed: Annotated[
        bool,
        typer.Option("--deployed", help="Instead of --base: read the deployed templates. Needs AWS credentials."),
    ] = False,
    head: HeadOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="File to write the policy to. If one policy is too small: FILE-1, FILE-2 and so on.",
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="List the permissions that CloudFormation lists and the policy omits."),
    ] = False,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Write the IAM policy that CloudFormation needs to deploy the environment, and nothing else.

    The policy is for 'cdk bootstrap --cloudformation-execution-policies'. It is computed from the synthesized
    templates. An update that removes resources needs permissions that the new templates do not show: in that case,
    write the policy with --base or --deployed, deploy, and afterwards write it again without that option.

    Exit code 1 if the IAM actions of a resource that you added are unknown. The policy is then written without
    them, and the resource type is shown.
    """
    from hyperpod_cdk.bootstrap_policy import BootstrapPolicyError, left_out, policies, unknown_types  # noqa: PLC0415 - '--help' need not build the models
    from hyperpod_cdk.review.isolation import Limits  # noqa: PLC0415 - as above

    if deployed and base is not None:
        usage("--deployed is what to compare with; omit --base")
    root = root_of(project, runs_extensions=False)
    loaded = loaded_environment(environment_file(environment, root), output=output).environment
    limits = Limits(is_trusted=trusted)
    with (
        assembly_errors(),
        synthesized(root, environment, base=base, head=head, context=_CONTEXT, limits=limits) as (old, source),
    ):
        assembly, before = source.assembly, old.assembly if old else None
        if deployed:
            before = with_deployed(context, source, is_asked=False, looks_beside=False)[0].assembly
    try:
        made = policies(assembly, loaded, base=before)
    except BootstrapPolicyError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(FINDINGS) from None
    files = _write(made, out) if out is not None else []
    sides = [each for each in (assembly, before) if each is not None]
    without, unknown = left_out(*sides), unknown_types(*sides)
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import BootstrapPolicies, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(BootstrapPolicies, _as_dict(made, loaded, files, without, unknown))
    else:
        _say(made, loaded, assembly.word, files, without, verbose=verbose, is_whole=not unknown)
    if unknown:
        _say_unknown(unknown)
        raise typer.Exit(FINDINGS)


def _say_unknown(unknown: Mapping[str, Sequence[str]]) -> None:
    from hyperpod_cdk.review.nouns import count  # noqa: PLC0415 - as above

    for name, resources in unknown.items():
        more = f" and {count(len(resources) - 1, 'other')}" if len(resources) > 1 else ""
        typer.echo(
            f"{resources[0]}{more}: no IAM actions are known for {name}; the policy allows none for it", err=True
        )
    these = "this type" if len(unknown) == 1 else "these types"
    typer.echo(
        f"Write your own policy for {these}, and pass its ARN to --cloudformation-execution-policies in place of"
        f" {_OWN_POLICY}. The schema of the type lists the actions under handlers, as permissions of create, read,"
        " update and delete: aws cloudformation describe-type --type RESOURCE --type-name"
        f" {next(iter(unknown))} --query Schema --output text",
        err=True,
    )


def _write(made: Sequence[Policy], out: Path) -> list[Path]:
    names = [out.name] if len(made) == 1 else [f"{out.stem}-{n}{out.suffix}" for n in range(1, len(made) + 1)]
    files = [out.with_name(name) for name in names]
    for file, policy in zip(files, made, strict=True):
        with os_errors(file):
            write_atomically(file, json.dumps(policy.document, indent=2) + "\n")
    return files


def _as_dict(
    made: Sequence[Policy],
    environment: Environment,
    files: Sequence[Path],
    without: Sequence[LeftOut],
    unknown: Mapping[str, Sequence[str]],
) -> dict[str, object]:
    return {
        "environment": environment.name,
        "account": environment.account,
        "region": environment.region,
        "policies": [{"name": each.name, "characters": each.characters, "document": each.document} for each in made],
        "reasons": {statement.sid: statement.why for each in made for statement in each.statements},
        "left_out": [
            {"types": each.types, "properties": each.properties, "actions": each.actions.pattern, "why": each.why}
            for each in without
        ],
        "unknown": [{"type": name, "resources": resources} for name, resources in unknown.items()],
        "files": [str(file) for file in files],
    }


def _say(
    made: Sequence[Policy],
    environment: Environment,
    word: str,
    files: Sequence[Path],
    without: Sequence[LeftOut],
    *,
    verbose: bool,
    is_whole: bool,
) -> None:
    from hyperpod_cdk.bootstrap_policy import MOST_CHARACTERS  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.nouns import count  # noqa: PLC0415 - as above

    for policy in made:
        print(f"{policy.name}: {policy.characters:,} of {MOST_CHARACTERS:,} characters")
        for statement in policy.statements:
            actions = statement.actions[0] if len(statement.actions) == 1 else f"{len(statement.actions)} actions"
            print(f"  {statement.sid}: {actions}; {statement.why}")
    if without:
        types = count(len({name for each in without for name in each.types}), "resource type")
        how = "" if verbose else "; --verbose lists them with the reasons"
        print(f"omitted: permissions that CloudFormation lists for {types} but these stacks do not need{how}")
    for each in without if verbose else ():
        asking = f", for {', '.join(each.properties)}" if each.properties else ""
        print(f"  {', '.join(each.types)}{asking}: {each.why}")
    print()
    if not files:
        command = f"hyperpod-cdk bootstrap-policy {word} --out policy.json"
        print(f"nothing was written; write it with '{command}'")
        return
    for file, policy in zip(files, made, strict=True):
        print(f"aws iam create-policy --policy-name {policy.name} --policy-document file://{file}")
    account = f"arn:{environment.partition}:iam::{environment.account}"
    arns = ",".join([*(f"{account}:policy/{policy.name}" for policy in made), *([] if is_whole else [_OWN_POLICY])])
    where = f"aws://{environment.account}/{environment.region}"
    # a project that 'new' created has no other CDK CLI
    print(f"hyperpod-cdk cdk bootstrap {where} --cloudformation-execution-policies {arns}")
