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

    ``key`` is our short name, unique among an environment's requirements. ``service``, ``name`` and ``code`` are those
    of Service Quotas; the name decides, the code is a hint and may be empty. ``default`` is the value AWS documents.

    ``needed`` is what a deployment takes, ``spare`` what it may come to take on top, ``spare_for`` why. ``usage`` is
    the kind of thing (see ``reading.used``) of which others in the account use up the same quota; empty where they
    cannot. ``unit`` is the noun behind the needed number, ``path`` the place in the environment file, ``lever`` what
    to lower there, in words, to a multiple of ``step``; empty where no number of the file would help.

    ``unsure_default`` says why AWS's own default is not to be trusted: an account without a value of its own is then
    warned, not refused. ``advisory`` makes the worst verdict a warning.
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
class Reading:
    """What AWS says of one quota.

    ``value`` is the applied value, or AWS's default where the account has none (``is_default``); None where it could
    not be read. ``used`` is what others take; None where that could not be read. ``problem`` says why something is
    None, ``action`` names the missing IAM action where that is the reason.
    """

    value: float | None
    is_default: bool = False
    used: float | None = 0
    problem: str = ""
    action: str = ""
    is_adjustable: bool = True


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What follows for one requirement. ``message`` says need, quota and fix in one line; ``action`` as in Reading."""

    severity: Severity
    message: str
    path: str = ""
    action: str = ""


def normalized(name: str) -> str:
    """Give ``name`` in the form in which quota names are compared.

    Case, punctuation, the word "of" and a "cluster" before the instance type do not count, since AWS writes "Maximum
    number instances" and ``cluster-ml-r7i-12xlarge`` too. ``catalog.quotas.normalized`` gives the same.
    """
    words = [word for word in re.sub(r"[^a-z0-9]+", " ", name.lower()).split() if word != "of"]
    return " ".join(words[1:] if words[:2] == ["cluster", "ml"] else words)


def judge(requirement: Requirement, reading: Reading, *, region: str, environment_name: str = "") -> Verdict:
    """Compare a requirement with what AWS grants.

    More than the quota leaves beside others' use is an error; enough for the deployment but not for ``spare`` is a
    warning. What could not be read is skipped, unless what was read refuses already. ``environment_name`` is put into
    the command that asks for more; without it the message only says to ask.
    """
    value, used = reading.value, reading.used
    if value is None or (used is None and requirement.needed <= value):
        return _verdict(requirement, "skipped", _unread(requirement, reading, region), action=reading.action)
    left = value - (used or 0)
    said = f"needs {_quantity(requirement)}{_others(used)}, {_quota(requirement, reading)} in {region}"
    if requirement.needed + requirement.spare <= left:
        return _verdict(requirement, "passed", said)
    lacks_spare = requirement.needed <= left
    if lacks_spare:
        more = f"{number(math.floor(left - requirement.needed))} of {number(requirement.spare)} more"
        said += f", which leaves {more}{f' for {requirement.spare_for}' if requirement.spare_for else ''}"
    doubtful = reading.is_default and requirement.unsure_default
    if doubtful:
        said += f" ({requirement.unsure_default})"
    severity: Severity = "warning" if lacks_spare or doubtful or requirement.advisory else "error"
    return _verdict(requirement, severity, f"{said}; {_fix(requirement, reading, left, environment_name)}")


def room(reading: Reading) -> float | None:
    """Give how much of the quota others leave to the environment, at least 0; None where that was not read."""
    if reading.value is None or reading.used is None:
        return None
    return max(0.0, reading.value - reading.used)


def asked_for(requirement: Requirement, reading: Reading) -> float | None:
    """Give the value to request: needed, used by others and spare; None where the quota suffices or was not read."""
    if reading.value is None or reading.used is None:
        return None
    wanted = requirement.needed + reading.used + requirement.spare
    return wanted if wanted > reading.value else None


def to_properties(requirements: Iterable[Requirement]) -> list[dict[str, str]]:
    """Give requirements as CloudFormation properties: CamelCase names, everything as text, defaults left out."""
    return [
        {
            _camel(field.name): _text(getattr(requirement, field.name))
            for field in fields(requirement)
            if field.default is MISSING or getattr(requirement, field.name) != field.default
        }
        for requirement in requirements
    ]


def from_properties(properties: Iterable[Mapping[str, Any]]) -> tuple[Requirement, ...]:
    """Give the requirements that ``to_properties`` wrote; raises ValueError for others."""
    return tuple(_requirement(each) for each in properties)


def number(value: float) -> str:
    """Write a number as people do: 16, not 16.0; never in scientific notation."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _verdict(requirement: Requirement, severity: Severity, message: str, *, action: str = "") -> Verdict:
    return Verdict(severity=severity, message=message, path=requirement.path, action=action)


def _quantity(requirement: Requirement) -> str:
    return f"{number(requirement.needed)} {requirement.unit or requirement.name}"


def _others(used: float | None) -> str:
    if used is None:
        return ""
    return f" while others use {number(used)}" if used else ""


def _quota(requirement: Requirement, reading: Reading) -> str:
    named = "quota" if requirement.unit in {"", requirement.name} else f'quota "{requirement.name}"'
    return f"{named} is {'at its default of ' if reading.is_default else ''}{number(reading.value or 0)}"


def _unread(requirement: Requirement, reading: Reading, region: str) -> str:
    what = "the quota" if reading.value is None else "what others use of the quota"
    return f'{what} "{requirement.name}" could not be read in {region}: {reading.problem or "AWS gave no answer"}'


def _fix(requirement: Requirement, reading: Reading, left: float, environment_name: str) -> str:
    fixes = []
    fits = left - requirement.spare if requirement.needed <= left else left
    fitting = math.floor(fits / requirement.step) * requirement.step
    excess = math.ceil(requirement.needed - left)
    if requirement.lever and fitting >= 1:
        fixes.append(f"lower {requirement.lever} to {number(fitting)}")
    elif reading.used and 0 < excess <= reading.used:
        fixes.append(f"free {number(excess)} of those in use")
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
