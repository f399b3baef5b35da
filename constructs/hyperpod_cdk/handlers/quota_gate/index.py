"""Serve Custom::HyperPodQuotaGate: compare what a deployment needs with the account's quotas, answer in every case.

Only the standard library is imported here: a module that cannot be loaded is one more thing to be answered for.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

# relative, since in Lambda the package above has another name
from ..answering import Answer, Put, Sleep, ToldError, Turn, client, cut, put, room, serve, size, words  # noqa: TID252

if TYPE_CHECKING:
    from .comparison import Reading, Requirement, Verdict
    from .reading import Api, Own

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

ENFORCE, WARN = "enforce", "warn"
NONE = "none"
"""What an attribute says where it has nothing to say: CloudFormation's outputs want some text."""
_GO_ON = "quota_check: warn lets a deployment go on without it"


class GateError(ToldError):
    """The event does not say what is to be compared."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What CloudFormation is told. ``heading`` goes before ``findings``; ``skipped`` is what could not be read."""

    refused: bool = False
    heading: str = ""
    findings: Sequence[str] = ()
    skipped: Sequence[str] = ()
    compared: int = 0


@dataclass(frozen=True, kw_only=True)
class Question:
    """The gate's properties, read. ``Own`` has Stacks, HyperPodCluster and EksCluster, each of which may be left out.

    ``Requirements`` are what ``comparison.to_properties`` writes.
    """

    mode: str
    requirements: Sequence[Requirement]
    own: Own
    environment_name: str = ""

    @staticmethod
    def of(properties: Mapping[str, Any]) -> Question:
        """Read the properties; raises GateError or ValueError where they are not those of a gate."""
        from .comparison import from_properties  # noqa: PLC0415 - see the module's docstring
        from .reading import Own  # noqa: PLC0415 - see the module's docstring

        mode, requirements, own = (properties.get(name) for name in ("Mode", "Requirements", "Own"))
        if mode not in (ENFORCE, WARN):
            raise GateError(f"Mode: must be {ENFORCE} or {WARN}, got {_shown(mode)}")
        if not isinstance(requirements, list) or not all(isinstance(each, dict) for each in requirements):
            raise GateError(f"Requirements: must be a list of requirements, got {_shown(requirements)}")
        if not isinstance(own, dict) or not isinstance(own.get("Stacks", []), list):
            raise GateError(f"Own: must hold the list Stacks, got {_shown(own)}")
        return Question(
            mode=mode,
            requirements=from_properties(requirements),
            own=Own(
                stacks=tuple(map(str, own.get("Stacks", []))),
                hyperpod_cluster=str(own.get("HyperPodCluster", "")),
                eks_cluster=str(own.get("EksCluster", "")),
            ),
            environment_name=str(properties.get("EnvironmentName", "")),
        )


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Handle one CloudFormation event and answer its response URL."""
    handle(event, context, api=_api, put=put)


def handle(
    event: Mapping[str, Any],
    context: Any,
    *,
    api: Callable[[], Api],
    put: Put,
    sleep: Sleep = time.sleep,
    region: str = "",
) -> None:
    """Handle one event with the given way to call AWS, sender and sleep; ``region`` defaults to the Lambda's."""
    forward = threading.Event()
    log = f"{context.log_group_name} {context.log_stream_name}"

    def work(turn: Turn) -> Answer:
        return answer(event, _outcome(turn, api, region or os.environ["AWS_REGION"], forward), log)

    def failed(error: BaseException) -> Answer:
        return answer(event, _crashed(event, error, is_forward=forward.is_set()), log)

    # its own way to call AWS has the patience that it needs, and tells what it could not read
    serve(event, context, work, clients=client, put=put, sleep=sleep, failed=failed)


def answer(event: Mapping[str, Any], outcome: Outcome, log: str) -> Answer:
    """Return what CloudFormation is told, as much of it as fits; what is cut is in ``log``."""
    _log(outcome)
    most = room(event)
    if outcome.refused:
        lines = [*([outcome.heading] if outcome.heading else []), *outcome.findings]
        return Answer(reason=_fitted(lines, most, log) or cut(f"see log {log}", most))
    # beside the names of the attributes
    most -= 100
    return Answer(
        data={
            "Findings": _fitted(outcome.findings, most // 2, log) or NONE,
            "Skipped": _fitted(outcome.skipped, most // 2, log) or NONE,
            "Compared": str(outcome.compared),
        }
    )


def _crashed(event: Mapping[str, Any], error: BaseException, *, is_forward: bool) -> Outcome:
    """Say that the gate itself failed: what it is to guard stops, what it is only to warn about goes on.

    So does an update of which it is not known that it goes forward: a rollback that is refused leaves a stuck stack.
    """
    told = str(error) if isinstance(error, ValueError) else words(error)
    line = f"the quota gate itself failed: {told}"
    properties = event.get("ResourceProperties")
    warns = isinstance(properties, dict) and properties.get("Mode") == WARN
    if warns or event.get("RequestType") == "Delete" or (event.get("RequestType") == "Update" and not is_forward):
        return Outcome(skipped=[line])
    return Outcome(refused=True, findings=[f"{line}; deploy again, or {_GO_ON}"])


def _outcome(turn: Turn, api: Callable[[], Api], region: str, forward: threading.Event) -> Outcome:
    """Do what the event asks for; ``forward`` is set once an update is known not to be taken back."""
    event = turn.event
    match turn.kind:
        case "Delete":
            return Outcome()
        case "Create":
            return _compared(_question(event), api(), region, old=())
        case _:
            calls = api()
            problem = _rolling_back(calls, str(event.get("StackId", "")), forward)
            if problem is None:
                return Outcome(skipped=["the stack is rolling back: nothing was compared"])
            outcome = _compared(_question(event), calls, region, old=_accepted(event.get("OldResourceProperties")))
            if forward.is_set():
                return outcome
            return replace(outcome, refused=False, skipped=[problem, *outcome.skipped])


def _compared(question: Question, api: Api, region: str, *, old: Sequence[Requirement]) -> Outcome:
    from .comparison import judge  # noqa: PLC0415 - see the module's docstring
    from .reading import quoted  # noqa: PLC0415 - see the module's docstring

    def judged(requirement: Requirement) -> Verdict:
        reading = _reading(api, requirement, question.own)
        return judge(requirement, reading, region=region, environment_name=question.environment_name)

    verdicts = api.each(judged, question.requirements)
    accepted = {requirement.key: requirement.needed for requirement in old}
    refusing, doubtful, skipped = [], [], []
    for requirement, verdict in zip(question.requirements, verdicts, strict=True):
        line = f"{verdict.path}: {verdict.message}" if verdict.path else verdict.message
        if verdict.unread:
            unread = f"{verdict.path}: {verdict.unread}" if verdict.path else verdict.unread
            skipped.append(f"{unread}{quoted(verdict.said)}")
        if verdict.severity == "passed":
            LOG.info("passed %s", line)
        elif verdict.severity == "skipped":
            continue
        elif verdict.severity == "warning":
            doubtful.append(line)
        elif requirement.needed > accepted.get(requirement.key, 0):
            refusing.append(line)
        else:
            doubtful.append(f"{line} (needs no more than before, which was accepted)")
    number = len(question.requirements)
    verb = "does" if len(refusing) == 1 else "do"
    return Outcome(
        refused=bool(refusing) and question.mode == ENFORCE,
        heading=f"{len(refusing)} of {number} quotas {verb} not suffice in {region}",
        findings=[*refusing, *doubtful],
        skipped=skipped,
        compared=number - len(skipped),
    )


def _reading(api: Api, requirement: Requirement, own: Own) -> Reading:
    """Read a quota and its use by others; what AWS does not tell is a problem of the reading, not of the gate."""
    from .comparison import NOTHING_USED, Reading  # noqa: PLC0415 - see the module's docstring
    from .reading import NoSuchQuota, NotAnswered, NotTold, read_quota, used  # noqa: PLC0415 - see the module's docstring

    try:
        quota = read_quota(api, requirement.service, requirement.name, requirement.code)
    except (NoSuchQuota, NotTold) as error:
        return Reading(value=None, problem=str(error))
    except NotAnswered as error:
        return Reading(value=None, problem=error.reason, action=error.action, said=error.said)
    return Reading(
        value=quota.value,
        is_default=quota.is_default,
        used=used(api, requirement.usage, own) if requirement.usage else NOTHING_USED,
        is_adjustable=quota.is_adjustable,
    )


def _rolling_back(api: Api, stack_id: str, forward: threading.Event) -> str | None:
    """Ask CloudFormation, since the event of an update that is taken back looks like that of any other update.

    Gives None for one that is taken back. Else sets ``forward``, or gives the reason why that is not known.
    """
    from .reading import NotAnswered, quoted  # noqa: PLC0415 - see the module's docstring

    try:
        stacks = api.call("cloudformation", "describe_stacks", StackName=stack_id)["Stacks"]
    except NotAnswered as error:
        return (
            f"whether the stack is rolling back could not be asked, so nothing is refused: {error}{quoted(error.said)}"
        )
    if any("ROLLBACK" in str(stack.get("StackStatus", "")) for stack in stacks):
        return None
    forward.set()
    return ""


def _question(event: Mapping[str, Any]) -> Question:
    """Read the event's properties; the account is that of the stack."""
    question = Question.of(_properties(event))
    account = str(event.get("StackId", "")).split(":")[4:5]
    return replace(question, own=replace(question.own, account="".join(account)))


def _accepted(properties: Any) -> Sequence[Requirement]:
    """Return the requirements that the gate let pass before this update; none where it only warned."""
    try:
        question = Question.of(properties)
    except (AttributeError, GateError, TypeError, ValueError):
        LOG.warning("the properties before the update are not read: %s", _shown(properties))
        return ()
    return question.requirements if question.mode == ENFORCE else ()


def _properties(event: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = event.get("ResourceProperties")
    if not isinstance(properties, dict):
        raise GateError(f"ResourceProperties: must be a mapping, got {_shown(properties)}")
    return properties


def _log(outcome: Outcome) -> None:
    LOG.info("%s %d compared", "FAILED" if outcome.refused else "SUCCESS", outcome.compared)
    for line in outcome.findings:
        LOG.warning("%s", line)
    for line in outcome.skipped:
        LOG.warning("skipped %s", line)


def _fitted(lines: Sequence[str], room: int, log: str) -> str:
    """Join as many whole lines as fit into ``room`` bytes of JSON; the last line says how many are left for the log."""
    for kept in range(len(lines), 0, -1):
        left_out = len(lines) - kept
        text = "\n".join([*lines[:kept], *([f"and {left_out} more, in log {log}"] if left_out else [])])
        if size(text) <= room:
            return text
    start, rest = (lines[0], f"... (whole text in log {log})") if lines else ("", "")
    while start and size(start + rest) > room:
        start = start[: len(start) * 9 // 10]
    return start + rest if start else ""


def _shown(value: object) -> str:
    return repr(value)[:200]


def _api() -> Api:
    from .calling import Boto3Api  # noqa: PLC0415 - see the module's docstring

    return Boto3Api()
