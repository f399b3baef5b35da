"""The commands ``plans extend`` and ``plans attach``: extensions of training plans, and attaching one to a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    StrictOption,
    aws_errors,
    extra,
    finish,
    refuse_word,
    usage,
)
from hyperpod_cdk._cli.living import print_skipped, stated_of
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.plans import numbers
from hyperpod_cdk._cli.review import Access, open_aws
from hyperpod_cdk._cli.transitions import Terminal, access_of
from hyperpod_cdk._cli.words import groups, training_plans

if TYPE_CHECKING:
    from hyperpod_cdk.review.deployed import Api


@dataclass(frozen=True, kw_only=True)
class Buying(Access):
    """How ``plans extend`` calls AWS; ``once`` opens a connection that never retries. Tests pass another one."""

    once: Callable[[str, str], Api]


def extend(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    plan: Annotated[
        str | None,
        typer.Option("--plan", help="Name or ARN of one training plan. Default: all training plans in the file."),
    ] = None,
    days: Annotated[
        str | None,
        typer.Option("--days", help="Durations in days: 14, 7..14 or 1,7,14. Default: eleven durations from 1 to 182."),
    ] = None,
    buy: Annotated[
        str | None,
        typer.Option(
            "--buy", metavar="OFFER", help="Buy this extension, after you type the name of its training plan."
        ),
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(
            "--confirm", metavar="PLAN", help="With --buy: the name of the training plan, instead of typing it."
        ),
    ] = None,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show extensions of the training plans by price per accelerator-hour, and what ends without them.

    Nothing is bought without --buy. The fee is charged at once, and an extension cannot be cancelled. Exit code 1
    if nobody confirms, or if it is not known whether the purchase succeeded. If AWS did not answer, that part is
    skipped: "passed" in the JSON output is then null, and with --strict the exit code is 1.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - 'plans extend --help' need not load it

    from hyperpod_cdk.living import extending, pages  # noqa: PLC0415 - as above

    _judge_words(plan=plan, buy=buy, confirm=confirm, output=output)
    wanted = extending.USUAL_DAYS if days is None else _days(days)
    stated = stated_of(environment, project, output).environment
    try:
        extending.arns_of(stated, plan or "")
    except ValueError as error:
        usage(f"{stated.name}: {error}" if plan is None else f"--plan: {error}")
    way = context.obj if isinstance(context.obj, Buying) else Buying(open=open_aws, once=_open_once)
    with aws_errors():
        aws = way.open(stated.region, stated.account)
    found = extending.extensions(aws, stated, days=wanted, now=datetime.now(UTC), plan=plan or "")
    if output is Format.TEXT:
        typer.echo(pages.extensions_text(found), nl=False)
        print_skipped(found.skipped)
    if buy:
        try:
            name = extending.plan_of(found, buy).name
        except ValueError as error:
            usage(f"--buy: {error}")
        if confirm is not None and confirm != name:
            usage(f"--confirm: must be the name of the plan that the extension is for, {name}, got {confirm}")
        question = f"The fee is charged at once and not refunded. Type {name} to buy it"
        if confirm is None and not Terminal(is_there=True, instead=f"--confirm {name}").types(question, name):
            typer.echo("Nothing was bought.")
            finish(passed=False, strict=False)
        with aws_errors():
            found = extending.buy(way.once(stated.region, stated.account), found, buy)
        if output is Format.TEXT:
            typer.echo(f"{found.environment}: {found.verdict}")
            if found.bought is not None and found.bought.problem:
                typer.echo(found.bought.problem)
    if output is Format.JSON:
        typer.echo(pages.as_json(found), nl=False)
    finish(passed=found.passed, strict=strict)


def attach(
    context: typer.Context,
    environment: EnvironmentArgument,
    group: Annotated[str, typer.Argument(metavar="GROUP", autocompletion=groups, help="Instance group in the file.")],
    plan: Annotated[
        str,
        typer.Argument(metavar="PLAN", autocompletion=training_plans, help="Name or ARN of a training plan."),
    ],
    *,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show what attaching a training plan to an instance group does to its nodes. Changes nothing.

    It also shows what to write into the file. Exit code 1 if the plan does not fit the group: its status, end,
    instance type, zone or instances. What could not be read is skipped: "passed" in the JSON output is then null,
    and with --strict the exit code is 1.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    from hyperpod_cdk.catalog.instance_groups import plan_home_problems  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.answers import NotAnswered  # noqa: PLC0415 - as above
    from hyperpod_cdk.living import attaching, pages  # noqa: PLC0415 - as above

    loaded = stated_of(environment, project, output)
    stated = loaded.environment
    try:
        attaching.placed(stated, group)
    except ValueError as error:
        usage(f"GROUP: {error}")
    _judge("PLAN", plan)
    if plan.startswith("arn:"):
        for problem in plan_home_problems(
            plan, partition=stated.partition, region=stated.region, account=stated.account
        ):
            usage(f"PLAN: {problem}")
    with aws_errors():
        aws = access_of(context).open(stated.region, stated.account)
    try:
        found = attaching.attach(aws, stated, group=group, plan=plan, now=datetime.now(UTC), called=loaded.called)
    except NotAnswered as missing:
        usage(f"plan {plan} could not be read: {missing.sentence}")
    if output is Format.JSON:
        typer.echo(pages.as_json(found), nl=False)
    else:
        typer.echo(pages.attachment_text(found), nl=False)
        print_skipped(found.skipped)
    finish(passed=found.passed, strict=strict)


def _judge_words(*, plan: str | None, buy: str | None, confirm: str | None, output: Format) -> None:
    if buy is not None and not buy.strip():
        usage("--buy: must be the ID of an extension, which 'plans extend' shows in the column offer, got no ID")
    if confirm is not None and buy is None:
        usage("--confirm is for --buy")
    if buy is not None and output is Format.JSON and confirm is None:
        usage("--format json cannot ask for confirmation; add --confirm with the name of the plan")
    for option, name in (("--plan", plan), ("--confirm", confirm)):
        if name is not None:
            _judge(option, name)


def _judge(word: str, plan: str) -> None:
    """Refuse a value that is neither the name nor the ARN of a training plan, before AWS is called."""
    from hyperpod_cdk.catalog.hyperpod import TRAINING_PLAN_ARN, TRAINING_PLAN_NAME  # noqa: PLC0415 - as above

    pattern = TRAINING_PLAN_ARN if plan.startswith("arn:") else TRAINING_PLAN_NAME
    refuse_word(word, pattern.problem(plan, key=word))


def _days(text: str) -> tuple[int, ...]:
    from hyperpod_cdk.living.extending import BY_DAY, DAYS  # noqa: PLC0415 - as above

    wanted = tuple(sorted(set(numbers("--days", text, most=DAYS[-1]))))
    unsold = [number for number in wanted if number not in DAYS]
    if unsold:
        near = min(each for each in DAYS if each > unsold[0])
        usage(
            f"--days: extensions are sold by the day up to {BY_DAY} days and by the week from there to {DAYS[-1]}, got"
            f" {unsold[0]}; take {near}"
        )
    return wanted


def _open_once(region: str, account: str) -> Api:
    """Open AWS without retries: a purchase without a response may have succeeded."""
    with extra("aws"):
        from hyperpod_cdk.checks.aws import LiveAws  # noqa: PLC0415 - boto3 is slow to load
        from hyperpod_cdk.checks.aws_calls import Patience  # noqa: PLC0415 - as above
    from hyperpod_cdk.handlers.quota_gate.reading import Own  # noqa: PLC0415 - as above

    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    patience = Patience(read_timeout_s=60.0, attempts=1, call_s=90.0)
    aws = LiveAws.open(region=region, account=account, own=own, patience=patience)
    aws.require_account()
    return aws
