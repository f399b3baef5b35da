"""What an environment needs of a quota, what AWS grants, and the verdict; the same code in preflight and in Lambda."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

Severity = Literal["passed", "warning", "error", "skipped"]


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """How much of one quota an environment takes.

    ``key`` (str): our short name, unique among an environment's requirements. Checked by ``QuotaGate``, which raises
    ValueError for two of one key.

    ``service`` (str): code of the service in Service Quotas, such as ``vpc``.

    ``name`` (str): name of the quota in Service Quotas, which decides.

    ``code`` (str): code of the quota in Service Quotas, a hint; it may be empty.

    ``default`` (float, of the quota's unit): the value that AWS documents.

    ``needed`` (float, of the quota's unit): what a deployment takes.

    ``spare`` (float, of the quota's unit): what it may come to take on top. Default: 0.

    ``usage`` (str): kind of thing (see ``reading.used``) of which others in the account use up the same quota. Default:
    empty, and others cannot. Checked by ``QuotaGate``, which raises ValueError for an unknown kind.

    ``unit`` (str): the noun behind the needed number. Default: empty.

    ``path`` (str): place in the environment file. Default: empty.

    ``lever`` (str): what to lower there, in words. Default: empty, where no number of the file would help.

    ``step`` (float, of the quota's unit): the lowered number is a multiple of it. Default: 1.

    ``spare_for`` (str): why ``spare`` may be needed. Default: empty.

    ``unsure_default`` (str): why AWS's own default is not to be trusted: an account without a value of its own is then
    warned, not refused. Default: empty.

    ``advisory`` (bool): whether the worst verdict is a warning. Default: no.
    """

    key: str
    service: str
    name: str
    code: str
    default: float
    needed: float
    spare: float = 0
    usage: str = ""
    unit: str = ""
    path: str = ""
    lever: str = ""
    step: float = 1
    spare_for: str = ""
    unsure_default: str = ""
    advisory: bool = False


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Something that others may use and that was not read, and why.

    ``kind`` is the noun for it (``VPC``), ``name`` its name; without one it is the list of its kind that did not come,
    or not whole. ``reason``, ``action`` and ``said`` are those of ``reading.NotAnswered``.
    """

    kind: str
    reason: str
    name: str = ""
    action: str = ""
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What others in the account use of a quota, as far as AWS let us see.

    ``at_least`` is what was counted, and all there is where ``unread`` is empty. It is no number to compare with: see
    ``most_left`` and ``is_whole``.
    """

    at_least: float = 0
    unread: tuple[Unread, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything was read."""
        return not self.unread

    @property
    def action(self) -> str:
        """The IAM action that was missing, or empty."""
        return next((each.action for each in self.unread if each.action), "")

    @property
    def said(self) -> str:
        """AWS's own sentence about the first of what was not read, or empty."""
        return next((each.said for each in self.unread if each.said), "")

    @property
    def what_is_unread(self) -> str:
        """Say what was not read: ``2 HyperPod clusters could not be read``; empty where everything was."""
        named: dict[str, list[str]] = {}
        for each in self.unread:
            named.setdefault(each.kind, []).append(each.name)
        said = [
            f"the list of {kind}s"
            if "" in names
            else f"{kind} {names[0]}"
            if len(names) == 1
            else f"{len(names)} {kind}s"
            for kind, names in named.items()
        ]
        return f"{' and '.join(said)} could not be read" if said else ""

    @property
    def why_it_is_unread(self) -> str:
        """Return the reasons, each once."""
        return ", ".join(dict.fromkeys(each.reason for each in self.unread))


NOTHING_USED = Usage()
"""The usage of what nobody else can take of."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What AWS says of one quota.

    ``value`` is the applied value, or AWS's default where the account has none (``is_default``); None where it could
    not be read, for which ``problem``, ``action`` and ``said`` are those of ``reading.NotAnswered``. ``used`` is what
    others take.
    """

    value: float | None
    is_default: bool = False
    used: Usage = NOTHING_USED
    problem: str = ""
    action: str = ""
    said: str = ""
    is_adjustable: bool = True


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What follows for one requirement. ``message`` says need, quota and fix in one line.

    ``unread`` says in one line what was not read and could make the verdict worse, or is empty; ``action`` and ``said``
    are those of ``reading.NotAnswered`` for it. ``severity`` is what the readable part proves: an error stays one
    whatever the rest says, "passed" is never said while there is a rest ("skipped" is).
    """

    severity: Severity
    message: str
    path: str = ""
    unread: str = ""
    action: str = ""
    said: str = ""


def normalized(name: str) -> str:
    """Return ``name`` in the form in which quota names are compared.

    Case, punctuation, the word "of" and a "cluster" before the instance type do not count, since AWS writes "Maximum
    number instances" and ``cluster-ml-r7i-12xlarge`` too. ``catalog.quotas.normalized`` gives the same.
    """
    words = [word for word in re.sub(r"[^a-z0-9]+", " ", name.lower()).split() if word != "of"]
    return " ".join(words[1:] if words[:2] == ["cluster", "ml"] else words)


def judge(requirement: Requirement, reading: Reading, *, region: str, environment_name: str = "") -> Verdict:
    """Compare a requirement with what AWS grants.

    More than the quota leaves beside others' use is an error; enough for the deployment but not for ``spare`` is a
    warning. What was read counts: it refuses although something else was not read. Where it does not, what was not
    read makes the verdict "skipped", or stands beside the warning. ``environment_name`` is put into
    the command that asks for more; without it the message only says to ask.
    """
    value, used = reading.value, reading.used
    unread = _unread(requirement, reading, region)
    if value is None:
        return _verdict(requirement, "skipped", unread, reading, unread)
    left = value - used.at_least
    if requirement.needed + requirement.spare <= left:
        if unread:
            return _verdict(requirement, "skipped", unread, reading, unread)
        said = f"needs {_quantity(requirement)}{_others(used)}, {_quota(requirement, reading)} in {region}"
        return _verdict(requirement, "passed", said, reading)
    said = f"needs {_quantity(requirement)}{_others(used)}, {_quota(requirement, reading)} in {region}"
    lacks_spare = requirement.needed <= left
    if lacks_spare:
        more = f"{number(math.floor(left - requirement.needed))} of {number(requirement.spare)} more"
        most = "" if used.is_whole else "at most "
        said += f", which leaves {most}{more}{f' for {requirement.spare_for}' if requirement.spare_for else ''}"
    doubtful = reading.is_default and requirement.unsure_default
    if doubtful:
        said += f" ({requirement.unsure_default})"
    severity: Severity = "warning" if lacks_spare or doubtful or requirement.advisory else "error"
    fix = _fix(requirement, reading, left, environment_name)
    # what is proven to be too little does not get worse
    return _verdict(requirement, severity, f"{said}; {fix}", reading, unread if lacks_spare else "")


def most_left(reading: Reading) -> float | None:
    """Return the most that others can leave of the quota, at least 0; None where the quota was not read.

    It is what they leave where ``reading.used.is_whole``, and could be less elsewhere.
    """
    return None if reading.value is None else max(0.0, reading.value - reading.used.at_least)


def asked_for(requirement: Requirement, reading: Reading) -> float | None:
    """Return the value to request: needed, used by others and spare; None where the quota suffices or was not read.

    None, too, where others may use more than was read: AWS keeps one open request for a quota, and a second one, for
    what turns out to be missing, waits for the first.
    """
    if reading.value is None or not reading.used.is_whole:
        return None
    wanted = requirement.needed + reading.used.at_least + requirement.spare
    return wanted if wanted > reading.value else None


def to_properties(requirements: Iterable[Requirement]) -> list[dict[str, str]]:
    """Return requirements as CloudFormation properties: CamelCase names, everything as text, defaults left out."""
    return [
        {
            _camel(field.name): _text(getattr(requirement, field.name))
            for field in fields(requirement)
            if field.default is MISSING or getattr(requirement, field.name) != field.default
        }
        for requirement in requirements
    ]


def from_properties(properties: Iterable[Mapping[str, Any]]) -> tuple[Requirement, ...]:
    """Return the requirements that ``to_properties`` wrote; raises ValueError for others."""
    return tuple(_requirement(each) for each in properties)


def number(value: float) -> str:
    """Write a number as people do: 16, not 16.0; never in scientific notation."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _verdict(requirement: Requirement, severity: Severity, message: str, reading: Reading, unread: str = "") -> Verdict:
    missing = reading if reading.value is None else reading.used
    return Verdict(
        severity=severity,
        message=message,
        path=requirement.path,
        unread=unread,
        action=missing.action if unread else "",
        said=missing.said if unread else "",
    )


def _quantity(requirement: Requirement) -> str:
    return f"{number(requirement.needed)} {requirement.unit or requirement.name}"


def _others(used: Usage) -> str:
    if used.is_whole:
        return f" while others use {number(used.at_least)}" if used.at_least else ""
    return f" while others use at least {number(used.at_least)} ({used.what_is_unread})" if used.at_least else ""


def _quota(requirement: Requirement, reading: Reading) -> str:
    named = "quota" if requirement.unit in {"", requirement.name} else f'quota "{requirement.name}"'
    return f"{named} is {'at its default of ' if reading.is_default else ''}{number(reading.value or 0)}"


def _unread(requirement: Requirement, reading: Reading, region: str) -> str:
    """Say what was not read of the quota or of its use; empty where everything was."""
    used = reading.used
    if reading.value is None:
        problem = reading.problem or "AWS gave no answer"
        return f'the quota "{requirement.name}" could not be read in {region}: {problem}'
    if used.is_whole:
        return ""
    seen = ""
    if used.at_least or any(each.name for each in used.unread):
        seen = f": at least {number(used.at_least)} of {number(reading.value)} are in use, {used.what_is_unread}"
    whole = " in full" if seen else ""
    return (
        f'what others use of the quota "{requirement.name}" could not be read{whole} in {region}{seen}: '
        f"{used.why_it_is_unread}"
    )


def _fix(requirement: Requirement, reading: Reading, left: float, environment_name: str) -> str:
    fixes = []
    fits = left - requirement.spare if requirement.needed <= left else left
    fitting = math.floor(fits / requirement.step) * requirement.step
    if requirement.lever and fitting >= 1:
        most = "" if reading.used.is_whole else "at most "
        fixes.append(f"lower {requirement.lever} to {most}{number(fitting)}")
    if not reading.is_adjustable:
        fixes.append("use another region or account, AWS does not raise this quota")
    elif environment_name:
        fixes.append(f"run 'hyperpod-cdk quotas request {environment_name}'")
    else:
        fixes.append("ask Service Quotas for more")
    return " or ".join(fixes)


def _requirement(properties: Mapping[str, Any]) -> Requirement:
    known = {_camel(field.name): field for field in fields(Requirement)}
    unknown = sorted(properties.keys() - known.keys())
    missing = sorted(name for name, field in known.items() if field.default is MISSING and name not in properties)
    if unknown or missing:
        wrong = [*(f"{name} is not known" for name in unknown), *(f"{name} is missing" for name in missing)]
        raise ValueError(f"a requirement must have the properties {', '.join(known)}; {', '.join(wrong)}")
    return Requirement(
        **{known[name].name: _parsed(str(known[name].type), name, value) for name, value in properties.items()}
    )


def _parsed(kind: str, name: str, value: Any) -> Any:
    if kind == "bool":
        return str(value) == "true"
    if kind != "float":
        return str(value)
    try:
        parsed = float(value)
    except ValueError:
        parsed = math.nan
    if not math.isfinite(parsed):
        raise ValueError(f'{name}: must be a number, got "{value}"')
    return parsed


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, int | float) else str(value)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
