"""Help texts: the order of the commands, placeholders for values, examples, usage errors, completions."""

from __future__ import annotations

import copy
import functools
import json
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_name
from typer.models import CommandInfo

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.file_reading import read_text

_LONGEST_FILE = 1_000_000

ORDER: Final = (
    *("new", "init", "import", "validate", "rehearse", "quotas", "plans", "charts", "bootstrap-policy", "preflight"),
    *(
        "templates",
        "review",
        "diagram",
        "plan",
        "deploy",
        "status",
        "drift",
        "observe",
        "node",
        "fleet",
        "teams",
        "upgrade",
        "recover",
        "destroy",
        "cdk",
        "image",
        "job",
        "prices",
        "schema",
    ),
)
"""The commands in the order in which users need them."""

EXAMPLES: Final[Mapping[str, Sequence[str]]] = {
    "new": ("new demo", "new demo --with github --account 111122223333 --region us-west-2"),
    "init": (
        "init staging --account 111122223333 --region us-west-2",
        "init gpu --account 111122223333 --region us-east-1 --instance-type ml.g5.12xlarge --capacity on_demand",
    ),
    "import": (
        "import cluster.json --name prod --vpc-id vpc-0a1b2c3d4e5f67890 --subnet subnet-0a1b2c3d4e5f67890=use1-az5",
        "import --cluster ml-cluster --name prod --takeover --plan",
    ),
    "validate": ("validate", "validate prod --format json"),
    "rehearse": ("rehearse prod", "rehearse prod --account-file my-account.yaml"),
    "quotas show": ("quotas show prod", "quotas show prod --record"),
    "quotas request": ("quotas request prod", "quotas request prod --yes"),
    "plans search": (
        "plans search prod",
        "plans search --instance-type ml.p5.48xlarge --count 2 --days 30 --region us-east-1",
    ),
    "plans record": ("plans record prod", "plans record prod --format json"),
    "plans extend": ("plans extend prod --days 7..14", "plans extend prod --plan h100-april --format json"),
    "plans attach": ("plans attach prod h100 h100-may", "plans attach prod h100 h100-may --format json"),
    "charts pull": ("charts pull", "charts pull --format json"),
    "charts images": ("charts images prod", "charts images prod --format json"),
    "bootstrap-policy": (
        "bootstrap-policy prod --out policy.json",
        "bootstrap-policy prod --head cdk.out --out policy.json",
    ),
    "preflight": ("preflight prod --offline", "preflight prod --only quotas --strict"),
    "templates": ("templates", "templates prod --check"),
    "review": (
        "review prod --base origin/main --out report.md --out report.html",
        "review --template theirs.yaml --region us-east-1",
    ),
    "diagram": ("diagram prod --out prod.svg", "diagram prod --base origin/main --out prod.svg"),
    "plan": ("plan prod", "plan prod --base origin/main --out plan.md"),
    "deploy": ("deploy prod", "deploy prod --yes --head cdk.out"),
    "status": ("status prod --strict --format json", "status prod --watch --every 30"),
    "drift": ("drift prod --strict --format json", "drift prod --adopt"),
    "node cordon": ("node cordon prod i-0a1b2c3d4e5f67890", "node cordon prod i-0a1b2c3d4e5f67890 --format json"),
    "node uncordon": (
        "node uncordon prod i-0a1b2c3d4e5f67890",
        "node uncordon prod hyperpod-i-0a1b2c3d4e5f67890 --format json",
    ),
    "teams cost": ("teams cost prod", "teams cost prod --usage usage-summary.csv --format json"),
    "fleet validate": ("fleet validate", "fleet validate staging prod --format json"),
    "fleet preflight": ("fleet preflight --offline", "fleet preflight staging prod --strict"),
    "fleet review": (
        "fleet review --base origin/main --out fleet.md",
        "fleet review staging prod --deployed --heads assemblies",
    ),
    "fleet status": ("fleet status", "fleet status staging prod --strict --format json"),
    "fleet drift": ("fleet drift", "fleet drift staging prod --strict --format json"),
    "fleet hold": ("fleet hold staging --heads assemblies", "fleet hold --heads assemblies --format json"),
    "fleet pipelines": ("fleet pipelines", "fleet pipelines --check"),
    "fleet sums": ("fleet sums", "fleet sums staging prod --no-cost"),
    "observe": ("observe prod --out bundle.json", "observe prod --strict --format json"),
    "node list": ("node list prod", "node list prod --group h100 --failing"),
    "node describe": (
        "node describe prod i-0a1b2c3d4e5f67890",
        "node describe prod hyperpod-i-0a1b2c3d4e5f67890 --format json",
    ),
    "node logs": (
        "node logs prod i-0a1b2c3d4e5f67890",
        "node logs prod i-0a1b2c3d4e5f67890 --of health --lines 20",
    ),
    "node replace": (
        "node replace prod i-0a1b2c3d4e5f67890",
        "node replace prod i-0a1b2c3d4e5f67890 --confirm i-0a1b2c3d4e5f67890",
    ),
    "node reboot": (
        "node reboot prod i-0a1b2c3d4e5f67890",
        "node reboot prod i-0a1b2c3d4e5f67890 --confirm i-0a1b2c3d4e5f67890",
    ),
    "node check": (
        "node check prod i-0a1b2c3d4e5f67890",
        "node check prod --group h100 --only instance_stress --confirm h100",
    ),
    "upgrade": ("upgrade prod", "upgrade prod --kubernetes 1.35 --addons"),
    "recover": ("recover prod --plan", "recover prod"),
    "destroy": ("destroy prod --plan", "destroy prod"),
    "cdk": (
        "cdk synth 'prod/*' --quiet -c env=prod",
        "cdk diff 'prod/*' -c env=prod",
    ),
    "image render": ("image render prod --group h100 --out image", "image render --accelerator nvidia --out image"),
    "job render": (
        "job render prod --group h100 --kind nccl --out nccl.yaml",
        "job render prod --job llama.yaml",
    ),
    "job admit": ("job admit prod llama.yaml other.yaml", "job admit prod llama.yaml --format json"),
    "job report": ("job report nccl.log", "job report nccl.log --out report.json"),
    "prices show": ("prices show", "prices show --format json"),
    "prices refresh": ("prices refresh", "prices refresh --format json"),
    "schema": ("schema --out schemas/environment.schema.json", "schema --of review"),
}
"""Examples for each command's help, which work in a project."""

_WORDS: Final[Mapping[str, str]] = {
    "project": "DIR",
    "only": "CHECK",
    "skip": "CHECK",
    "account_file": "FILE",
    "training_plan_arn": "ARN",
    "admin_role": "ARN",
    "zone": "AZ_ID",
    "subnet": "SUBNET=AZ_ID",
    "vpc_id": "ID",
    "eks_security_group": "ID",
    "kubernetes_version": "VERSION",
    "out": "FILE",
}
"""The placeholder for a value, if it is not the name of its option."""


ANSWERS: Final[Mapping[str, str]] = {
    "new": "new",
    "init": "init",
    "import": "import",
    "validate": "validate",
    "rehearse": "rehearsal",
    "quotas show": "quotas",
    "quotas request": "quota-requests",
    "plans search": "plan-offerings",
    "plans record": "plan-record",
    "plans extend": "extensions",
    "plans attach": "attachment",
    "charts images": "chart-images",
    "charts pull": "chart",
    "bootstrap-policy": "bootstrap-policy",
    "preflight": "preflight",
    "review": "review-report",
    "plan": "plan",
    "status": "status",
    "drift": "drift",
    "observe": "observation",
    "node list": "nodes",
    "node describe": "node-details",
    "node logs": "node-logs",
    "node replace": "node-work",
    "node reboot": "node-work",
    "node check": "node-work",
    "node cordon": "node-work",
    "node uncordon": "node-work",
    "fleet validate": "fleet-report",
    "fleet preflight": "fleet-report",
    "fleet review": "fleet-report",
    "fleet status": "fleet-report",
    "fleet drift": "fleet-report",
    "fleet hold": "fleet-report",
    "fleet sums": "fleet-sums",
    "teams cost": "teams-cost",
    "upgrade": "upgrade",
    "recover": "recovery",
    "destroy": "plan",
    "image render": "image",
    "job render": "job-manifests",
    "job admit": "admission",
    "job report": "job-report",
    "prices refresh": "price-changes",
    "prices show": "prices",
}
"""The page of 'schema --of' for the JSON output of each command; --iam-policy writes 'iam-policy'."""

_OTHERWISE = frozenset(
    {
        # read no environment file, or have that output themselves
        *("new", "init", "charts pull", "job report", "prices show", "prices refresh", "validate"),
        # their app reads the file, and they write nothing to standard output if it fails
        *("review", "plan", "destroy", "drift", "observe", "recover"),
    }
)
REFUSED_AS_FILES: Final[frozenset[str]] = frozenset(
    verb for verb in ANSWERS if verb not in _OTHERWISE and not verb.startswith("fleet ")
)
"""Commands whose JSON is the output of ``validate`` if a file or an argument is refused."""


_LONGEST_SENTENCE: Final = 1_000

_CHECKS: Final = ("only", "skip")
"""Options whose value is an area or a check."""

_CHECK_NAMES: Final = re.compile(
    r'^@check\((?:\s*area="([^"]+)")?.*?^def (\w+)|^AREA = "([^"]+)"', re.DOTALL | re.MULTILINE
)
"""Matches a check, or the area of a module's checks."""


_OF_CDK: Final = frozenset({"synth", "synthesize", "diff", "bootstrap", "ls", "list", "watch", "notices", "doctor"})
"""Commands of the CDK CLI that hyperpod-cdk does not have."""

_USAGE_ERROR: Final[Any] = typer.BadParameter.__base__
"""The base class of all usage errors; typer exports only this subclass."""


@contextmanager
def _explained(ctx: Any, args: Sequence[str]) -> Iterator[None]:
    """Add the accepted values to a usage error, which is then shown in two lines."""
    try:
        yield
    except _USAGE_ERROR as error:
        error.ctx = error.ctx or ctx
        # an option without its value ends the parsing before any argument is assigned
        ctx.args = ctx.args or list(args)
        asked = getattr(error, "param", None) or next(
            (each for each in ctx.command.params if getattr(error, "option_name", None) in each.opts), None
        )
        if asked is not None:
            _explain(error, asked, ctx)
        error.show = functools.partial(_show, error)
        raise


def _explain(error: Any, asked: Any, ctx: Any) -> None:
    known = [each.value for each in asked.shell_complete(ctx, "") if each.type == "plain"]
    if asked.name in _CHECKS:
        # a hundred names of checks are too many to read
        known = areas()
    cause = error.__cause__
    if cause is not None:
        error.message = _refused(cause.errors()[0], known)
        return
    there_are = f"there {plural(len(known), 'is', 'are')} {', '.join(known)}" if known else ""
    if not known and asked.name == "environment":
        there_are = "environments/ holds no environment yet; create one with 'hyperpod-cdk init NAME'"
    # the help of a missing argument or option describes it
    said = error.message or asked.help
    error.message = f"{said.rstrip('.')}{'; ' if there_are else '.'}{there_are}"


def _refused(row: Mapping[str, Any], known: Sequence[str]) -> str:
    """Return the message for a value that typer's pydantic refused."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    from hyperpod_cdk.catalog.rules import listing  # noqa: PLC0415 - as above

    bounds = row.get("ctx", {})
    wanted = {
        "int_parsing": "must be a whole number",
        "float_parsing": "must be a number",
        "greater_than_equal": f"must be at least {bounds.get('ge')}",
        "less_than_equal": f"must be at most {bounds.get('le')}",
    }.get(row["type"])
    if wanted is None and known:
        wanted = f"must be {listing(known)}"
    near = get_close_matches(str(row["input"]), known, n=1)
    return f"{wanted or row['msg']}, got '{row['input']}'{f'; did you mean {near[0]}?' if near else ''}"


def _show(error: Any, file: Any = None) -> None:
    print(error.format_message(), file=file or sys.stderr)
    how = f"'{error.ctx.command_path} {error.ctx.help_option_names[0]}' explains it"
    print(f"{error.ctx.get_usage().partition(': ')[2]}; {how}", file=file or sys.stderr)


class _Quick:
    """Parses arguments for a completion without converting them, for which typer would import pydantic slowly."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the remaining arguments, as click does."""
        command: Any = self
        if not ctx.resilient_parsing:
            # without arguments, a group shows its help
            with _explained(ctx, tuple(args)) if args or not hasattr(command, "commands") else nullcontext():
                rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]  # the other base class has it
            return rest
        parser = command.make_parser(ctx)
        ctx.params, words, _ = parser.parse_args(args=list(args))
        for each in command.params:
            if each.param_type_name == "argument" and ctx.params.get(each.name):
                # otherwise the first argument would always be completed
                _, source = each.consume_value(ctx, ctx.params)
                ctx.set_parameter_source(each.name, source)
        ctx.args = words
        ctx._opt_prefixes.update(parser._opt_prefixes)  # noqa: SLF001 - as click does
        if hasattr(command, "commands") and words:
            ctx._protected_args, ctx.args = words[:1], words[1:]  # noqa: SLF001 - as click's group does
        return list(ctx.args)

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002 - click's argument
        """Return the complete first sentence; click would cut it after 45 characters."""
        said: str = super().get_short_help_str(limit=_LONGEST_SENTENCE)  # type: ignore[misc]  # as above
        return said


class Verb(_Quick, TyperCommand):
    """A command whose help shows examples, and placeholders in place of Python's types."""

    def __init__(self, name: str | None, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self._help_of_format = ""
        for each in self.params:
            parameter: Any = each
            if "--format" in parameter.opts:
                self._help_of_format = parameter.help
            if parameter.param_type_name == "option" and parameter.metavar is None and not parameter.is_flag:
                choices = parameter.type_descriptor.choices
                word = _WORDS.get(parameter.name, parameter.opts[0].strip("-").replace("-", "_").upper())
                parameter.metavar = (
                    "|".join(str(getattr(choice, "value", choice)) for choice in choices) if choices else word
                )

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments and options; the help of ``--format`` refers to the schema of the command's JSON."""
        found: list[Any] = super().get_params(ctx)
        verb = ctx.command_path.partition(" ")[2]
        page = ANSWERS.get(verb)
        for each in found if page else ():
            if "--format" in each.opts:
                refused = " If a file is refused, it is that of 'validate'." if verb in REFUSED_AS_FILES else ""
                each.help = f"{self._help_of_format} 'schema --of {page}' writes the schema of the JSON.{refused}"
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line after the name, as in manual pages."""
        pieces = [self.options_metavar] if self.options_metavar else []
        for each in self.get_params(ctx):
            parameter: Any = each
            if parameter.param_type_name == "argument":
                word = parameter.display_name_raw + ("..." if parameter.nargs != 1 else "")
                pieces.append(word if parameter.required else f"[{word}]")
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each with its placeholder."""
        arguments, options = [], []
        for each in self.get_params(ctx):
            parameter: Any = each
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                arguments.append((parameter.display_name_raw, record[1].replace("[required]", "").strip()))
            elif record is not None:
                options.append(record)
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples without line breaks, so that they can be copied."""
        words = ctx.command_path.split(maxsplit=1)
        examples = EXAMPLES.get(words[-1], ())
        if examples:
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{words[0]} {example}\n")


class Verbs(_Quick, TyperGroup):
    """A group that lists its commands in the order of their use."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an exception of a project's extension ends it like a usage error."""
        try:
            return super().invoke(ctx)
        except RuntimeError as error:
            # imported by the code that raised it
            extensions = sys.modules.get("hyperpod_cdk.config.extensions")
            if extensions is None or not isinstance(error, extensions.ExtensionError):
                raise
            print(error, file=sys.stderr)
            raise typer.Exit(2) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; an unknown command or argument is a usage error."""
        if args and args[0] in _OF_CDK and ctx.parent is None and not ctx.resilient_parsing:
            print(f"{args[0]} is a command of the CDK CLI; run 'hyperpod-cdk cdk {args[0]} ...'", file=sys.stderr)
            raise typer.Exit(2)
        problem = None if ctx.resilient_parsing or args[:1] == ["cdk"] else next(_problems_of_words(args), None)
        if problem is not None:
            print(problem, file=sys.stderr)
            raise typer.Exit(2)
        with _explained(ctx, tuple(args)):
            return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in order."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def _problems_of_words(words: Sequence[str]) -> Iterator[str]:
    """Yield the problems of arguments that no command accepts.

    An empty argument is usually a shell variable that is not set: ``deploy --head ''`` would otherwise deploy
    something else. A line break would split a message. Bytes that are not UTF-8 appear as surrogates.
    """
    for before, word in pairwise(("", *words)):
        option, mark, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if not value and (mark or not word):
            of = option or (before if before.startswith("-") and before != "--" else "")
            yield f"{of}: is empty; specify a value or omit it" if of else "an argument is empty; omit it"
        if any(unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} for each in word):
            yield f"{word!a}: must not contain a line break or another control character; omit it"


def dress(app: typer.Typer) -> None:
    """Make every command of ``app`` and of its groups a ``Verb``."""
    for info in app.registered_commands:
        info.cls = Verb
    for group in app.registered_groups:
        group.cls = Verbs
        if group.typer_instance is not None:
            dress(group.typer_instance)


def alone(app: typer.Typer, asked: Sequence[str]) -> typer.Typer:
    """Return ``app`` with only the command in ``asked``, or complete; creating each command takes milliseconds."""
    commands = [each for each in app.registered_commands if _name(each) in asked]
    groups = [each for each in app.registered_groups if each.name in asked]
    if not commands and not groups:
        return app
    found = copy.copy(app)
    found.registered_commands, found.registered_groups = commands, groups
    return found


def _name(command: CommandInfo) -> str | None:
    return command.name or (command.callback and get_command_name(command.callback.__name__))


def environments(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of an environment; only the folder is read, because completion must be fast."""
    return [path.stem for path in _files(ctx) if path.stem.startswith(incomplete)]


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of an instance group of the preceding environment, or of all environments."""
    return sorted({name for row in _rows(ctx) if (name := str(row.get("name", ""))).startswith(incomplete)})


def training_plans(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a training plan in the environment, or in its record."""
    found = {str(row.get("training_plan_arn") or "").rpartition("/")[2] for row in _rows(ctx)}
    for path in _named(ctx):
        with suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads(read_text(path.with_suffix(".plans.json"), most=_LONGEST_FILE))
            found |= {str(plan["name"]) for plan in record["plans"]}
    return sorted(name for name in found if name and name.startswith(incomplete))


def _rows(ctx: typer.Context) -> Iterator[Mapping[str, Any]]:
    """Yield the instance groups of an environment; errors in a file are ignored, because validate reports them."""
    import yaml  # noqa: PLC0415 - only where a group is completed

    from hyperpod_cdk.yaml_reading import ShallowLoader  # noqa: PLC0415 - as above

    for path in _named(ctx):
        try:
            page = yaml.load(read_text(path, most=_LONGEST_FILE), Loader=ShallowLoader)  # noqa: S506 - a SafeLoader
            rows = page["hyperpod"]["instance_groups"]
            yield from (row for row in rows if isinstance(row, dict))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, yaml.YAMLError):
            continue


def _named(ctx: typer.Context) -> list[Path]:
    # arguments after an option without a value are not parsed, so the environment is still among them
    named = ctx.params.get("environment") or next((word for word in ctx.args if not word.startswith("-")), None)
    return [path for path in _files(ctx) if named in (None, path.stem, str(path))]


def kubernetes_versions(incomplete: str) -> list[str]:
    """Complete a version of Kubernetes that HyperPod accepts."""
    from hyperpod_cdk.catalog import kubernetes  # noqa: PLC0415 - only where a version is completed

    return [version for version in kubernetes.hyperpod_versions() if version.startswith(incomplete)]


def checks(incomplete: str) -> list[str]:
    """Complete an area or a check of preflight, read from the modules' text because importing them takes a second."""
    return sorted({name for each in _checks() for name in each if name and name.startswith(incomplete)})


def areas() -> list[str]:
    """Return the areas of preflight."""
    return sorted({area for of_check, _, of_module in _checks() if (area := of_check or of_module)})


def _checks() -> list[tuple[str, str, str]]:
    files = sorted((Path(__file__).parents[1] / "checks").glob("*.py"))
    texts = (path.read_text(encoding="utf-8") for path in files)
    return [(each[1] or "", each[2] or "", each[3] or "") for text in texts for each in _CHECK_NAMES.finditer(text)]


def _files(ctx: typer.Context) -> list[Path]:
    here, project = Path.cwd(), ctx.params.get("project")
    folders = [each / "environments" for each in ([Path(str(project))] if project else [here, *here.parents])]
    folder = next((each for each in folders if each.is_dir()), None)
    return sorted(path for path in folder.glob("*.yaml") if path.is_file()) if folder else []
