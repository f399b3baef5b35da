"""The commands ``prices refresh`` and ``prices show``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    FormatOption,
    ProjectOption,
    StrictOption,
    aws_errors,
    extra,
    finish,
    refuse_word,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Format, table
from hyperpod_cdk.catalog.sentences import plural

if TYPE_CHECKING:
    from hyperpod_cdk.catalog.prices import Price, Prices
    from hyperpod_cdk.review.figures.price_list import Fetched, Pages

app = typer.Typer(
    help="Show and refresh the AWS prices that 'review' uses.", no_args_is_help=True, rich_markup_mode=None
)


@dataclass(frozen=True, kw_only=True)
class Access:
    """How the commands call AWS; tests pass another one as the context's object."""

    open: Callable[[], Pages]


@app.command()
def refresh(
    context: typer.Context,
    region: Annotated[
        list[str] | None,
        typer.Option("--region", help="AWS Region. Can be repeated. Default: the Regions in environments/."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write. Default: prices.json in the root folder of the project."),
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change, and write nothing.")] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Get prices from the AWS Pricing API and write the price file of the project.

    'review' uses this file instead of the prices that ship with the package. Prices of other Regions in the file
    are not changed. The command shows every price that changes. Exit code 1, and nothing is written, if AWS did not
    answer or no price was found. If a price was not found or could not be read, "passed" in the JSON output is
    null, and with --strict the exit code is 1, after the other prices are written.
    """
    from hyperpod_cdk.catalog import prices  # noqa: PLC0415 - 'schema --help' need not read the tables
    from hyperpod_cdk.checks.answers import NotAnswered  # noqa: PLC0415 - as above
    from hyperpod_cdk.findings import passed  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.figures import price_list  # noqa: PLC0415 - as above

    root = root_of(project)
    wanted = _regions(region, root)
    file = out or root / prices.FILE
    if file.exists() and not file.is_file():
        usage(f"{file} is not a file; remove it or specify another one with --out")
    old = _old(file)
    with aws_errors():
        pages = _access(context).open()
    try:
        fetched = price_list.fetch(pages, wanted)
    except NotAnswered as missing:
        _not_written(missing.sentence)
    new = price_list.merged(fetched, old, where=file.name)
    if new is None:
        for line in _left_out(fetched):
            print(line, file=sys.stderr)
        _not_written(f"the Pricing API has no price for {', '.join(wanted)}")
    changes = price_list.differences(old or prices.shipped(), new)
    if not dry_run:
        _write(file, new)
    verdict = passed(refuses=False, is_whole=not fetched.missing and not fetched.problems)
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import PriceChanges, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(
            PriceChanges,
            {
                "passed": verdict,
                "file": str(file),
                "written": not dry_run,
                "as_of": new.as_of.isoformat(),
                "changes": changes,
                "missing": list(fetched.missing),
                "left_out": list(fetched.problems),
            },
        )
    else:
        summary = _summary(file, new, changes, old=old, is_written=not dry_run)
        print("\n".join([*changes, *_left_out(fetched), summary]))
    finish(passed=verdict, strict=strict)


@app.command()
def show(
    region: Annotated[
        str | None, typer.Option("--region", help="AWS Region. Default: all Regions with prices.")
    ] = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the prices that 'review' uses, how old each one is, and which ones are not confirmed."""
    from hyperpod_cdk.catalog import prices  # noqa: PLC0415 - as in refresh

    if region is not None:
        _known(region)
    root = root_of(project)
    try:
        found = prices.of_project(root)
    except prices.PricesError as error:
        usage(str(error))
    rows = found.of_region(region) if region else tuple(found.rows[key] for key in sorted(found.rows))
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import PricesShown, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(
            PricesShown,
            {
                "file": found.where,
                "as_of": found.as_of.isoformat(),
                "sources": dict(found.sources),
                "prices": [{"unsure": "", **row.as_data()} for row in rows],
            },
        )
        return
    print("\n".join(_shown(found, rows, region)))


def _shown(found: Prices, rows: Sequence[Price], region: str | None) -> Iterator[str]:
    from hyperpod_cdk.review.figures.charge_lines import thing  # noqa: PLC0415 - as in refresh

    yield f"{found.where}, as of {found.as_of}"
    if not rows:
        yield f"no prices for {region}; run 'hyperpod-cdk prices refresh --region {region}'"
        return
    header = ("region", "what", "US dollars", "per", "as of", "source")
    # several rows have the same reason, which is longer than the rest of the table
    doubts = list(dict.fromkeys(row.unsure for row in rows if row.unsure))
    yield from table(
        [
            header,
            *(
                (
                    row.region,
                    thing(row.sku),
                    f"{row.usd:f}",
                    row.unit,
                    str(row.as_of or "unknown"),
                    f"{row.source}{f', not confirmed ({doubts.index(row.unsure) + 1})' if row.unsure else ''}",
                )
                for row in rows
            ),
        ]
    )
    yield ""
    for number, doubt in enumerate(doubts, start=1):
        yield f"not confirmed ({number}): {doubt}"
    for name in sorted({row.source for row in rows}):
        yield f"{name}: {found.sources[name]}"


def _regions(asked: Sequence[str] | None, root: Path) -> dict[str, list[str]]:
    """Return the Regions to read, each with the instance types that the project's environments have there."""
    from hyperpod_cdk.config import EnvironmentFileError, environment_files, load_environment  # noqa: PLC0415 - as above

    for name in asked or ():
        _known(name)
    used: dict[str, list[str]] = {}
    refused = []
    for file in environment_files(root):
        try:
            environment = load_environment(file, with_record=False).environment
        except EnvironmentFileError as error:
            refused.append(error.file)
            continue
        types = used.setdefault(environment.region, [])
        types += [name for _, group in environment.hyperpod.placed_groups for name in group.all_instance_types]
    if asked:
        return {name: used.get(name, []) for name in dict.fromkeys(asked)}
    if refused:
        usage(f"{refused[0]} is refused, so its Region is unknown; run 'hyperpod-cdk validate', or specify --region")
    if not used:
        usage(f"no environment in {root / 'environments'}; specify the Regions with --region")
    return used


def _known(region: str) -> None:
    from hyperpod_cdk.catalog import regions  # noqa: PLC0415 - as in refresh

    refuse_word("--region", regions.region_problem(region, key="--region"))


def _old(file: Path) -> Prices | None:
    """Return the content of the file that is about to be replaced, or None if it cannot be read."""
    from hyperpod_cdk.catalog import prices  # noqa: PLC0415 - as in refresh

    if not file.exists():
        return None
    try:
        return prices.read_prices(file, where=file.name)
    except prices.PricesError as error:
        print(f"replaces a file that could not be read: {error}", file=sys.stderr)
        return None


def _write(file: Path, new: Prices) -> None:
    from hyperpod_cdk._cli.plans import write_atomically  # noqa: PLC0415 - as in refresh

    try:
        write_atomically(file, new.text())
    except OSError as error:
        usage(f"cannot write {file}: {error.strerror or error}; the old file is unchanged")


def _left_out(fetched: Fetched) -> Iterator[str]:
    yield from (f"omitted: {problem}" for problem in fetched.problems)
    yield from (f"not found: {what}" for what in fetched.missing)


def _summary(file: Path, new: Prices, changes: Sequence[str], *, old: Prices | None, is_written: bool) -> str:
    count = f"{len(changes)} {plural(len(changes), 'change')}" if changes else "no change"
    against = f"since {old.as_of}" if old else "against the shipped prices"
    done = "wrote" if is_written else "would write"
    end = "; commit it with the environments" if is_written else ""
    return f"{done} {file}: {len(new.rows)} prices as of {new.as_of}, {count} {against}{end}"


def _not_written(reason: str) -> NoReturn:
    print(f"{reason}; nothing was written", file=sys.stderr)
    raise typer.Exit(FINDINGS)


def _access(context: typer.Context) -> Access:
    return context.obj if isinstance(context.obj, Access) else Access(open=_open)


def _open() -> Pages:
    with extra("aws"):
        from hyperpod_cdk.checks.aws import LiveAws  # noqa: PLC0415 - as above
    from hyperpod_cdk.handlers.quota_gate.reading import Own  # noqa: PLC0415 - boto3 is slow to load
    from hyperpod_cdk.review.figures.price_list import REGION  # noqa: PLC0415 - as above

    return LiveAws.open(region=REGION, account="", own=Own()).pages
