"""Serve Custom::HyperPodQuotaGate: compare what a deployment needs with the account's quotas, answer in every case.

Only the standard library is imported here: a module that cannot be loaded is one more thing to be answered for.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from .comparison import Reading, Requirement, Verdict
    from .reading import Api, Own

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

ANSWER_SECONDS = 25.0
"""How long before Lambda's timeout the work is given up; sending the answer, with its retries, takes no longer."""
PUT_TIMEOUT_SECONDS = 3.0
"""How long connecting may take, and waiting for the answer's receipt."""
PUT_PAUSES = (1.0, 2.0)
"""Seconds between attempts to send the answer; one more attempt follows the last."""
ANSWER_BYTES = 4000
"""CloudFormation takes answers of up to 4096 bytes."""

ENFORCE, WARN = "enforce", "warn"
NONE = "none"
"""What an attribute says where it has nothing to say: CloudFormation's outputs want some text."""
_GO_ON = "quota_check: warn lets a deployment go on without it"


class GateError(Exception):
    """The event does not say what is to be compared."""


class AnswerNotSentError(Exception):
    """CloudFormation's response URL could not be reached."""


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
    put: Callable[[str, bytes], None],
    sleep: Callable[[float], None] = time.sleep,
    region: str = "",
) -> None:
    """Handle one event with the given way to call AWS, sender and sleep; ``region`` defaults to the Lambda's.

    The work goes on in a thread of its own, which ends badly, or not in time, without taking the answer with it.
    Raises AnswerNotSentError if the answer itself cannot be sent, so that Lambda invokes the handler again.
    """
    LOG.info("%s %s", event.get("RequestType"), event.get("LogicalResourceId"))
    url = str(event["ResponseURL"])
    seconds = float(context.get_remaining_time_in_millis()) / 1000 - ANSWER_SECONDS
    forward = threading.Event()
    outcome = _in_time(lambda: _outcome(event, api, region or os.environ["AWS_REGION"], forward), seconds)
    if isinstance(outcome, BaseException):
        outcome = _crashed(event, outcome, is_forward=forward.is_set())
    _log(outcome)
    body = answer(event, outcome, log=f"{context.log_group_name} {context.log_stream_name}")
    _put_patiently(url, body, put, sleep)


def answer(event: Mapping[str, Any], outcome: Outcome, *, log: str) -> bytes:
    """Give CloudFormation's answer as bytes, at most ``ANSWER_BYTES`` of them; what is cut is in ``log``.

    The physical id is that of the event, or made of stack and logical id: it never changes, nothing is replaced.
    """
    stack, logical_id = str(event.get("StackId", "")), str(event.get("LogicalResourceId", ""))
    data = {"Findings": NONE, "Skipped": NONE, "Compared": str(outcome.compared)}
    body: dict[str, Any] = {
        "Status": "FAILED" if outcome.refused else "SUCCESS",
        "Reason": "",
        "PhysicalResourceId": str(event.get("PhysicalResourceId") or f"{logical_id}-{stack.rpartition('/')[2]}"),
        "StackId": stack,
        "RequestId": str(event.get("RequestId", "")),
        "LogicalResourceId": logical_id,
        "Data": {} if outcome.refused else data,
    }
    room = ANSWER_BYTES - len(json.dumps(body))
    if outcome.refused:
        body["Reason"] = _fitted([*([outcome.heading] if outcome.heading else []), *outcome.findings], room, log)
    else:
        data["Findings"] = _fitted(outcome.findings, room // 2, log) or NONE
        data["Skipped"] = _fitted(outcome.skipped, room // 2, log) or NONE
    return json.dumps(body).encode()


def put(url: str, body: bytes) -> None:
    """Send the answer to CloudFormation's response URL (https; a local stand-in may use http)."""
    parts = urlsplit(url)
    connection_type = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connection_type(parts.netloc, timeout=PUT_TIMEOUT_SECONDS)
    try:
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        # the URL is signed for an empty content type
        connection.request("PUT", target, body=body, headers={"Content-Type": ""})
        response = connection.getresponse()
        response.read()
    finally:
        connection.close()
    if response.status >= 300:
        raise OSError(f"HTTP {response.status} {response.reason}")


@dataclass
class _Work:
    """What a thread made of its work: an outcome or an error, None while it goes on."""

    result: Outcome | BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def _in_time(function: Callable[[], Outcome], seconds: float) -> Outcome | BaseException:
    work = _Work()

    def run() -> None:
        try:
            work.result = function()
        except BaseException as error:  # noqa: BLE001 - even an exit is answered for
            work.result = error
        work.ended.set()

    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError as error:
        return error
    work.ended.wait(max(seconds, 0.0))
    return work.result or TimeoutError("it was still asking AWS when its time ran out")


def _crashed(event: Mapping[str, Any], error: BaseException, *, is_forward: bool) -> Outcome:
    """Say that the gate itself failed: what it is to guard stops, what it is only to warn about goes on.

    So does an update of which it is not known that it goes forward: a rollback that is refused leaves a stuck stack.
    """
    LOG.error("the quota gate failed", exc_info=error)
    told = (
        str(error) if isinstance(error, GateError | ValueError | TimeoutError) else f"{type(error).__name__}: {error}"
    )
    line = f"the quota gate itself failed: {told}"
    properties = event.get("ResourceProperties")
    warns = isinstance(properties, dict) and properties.get("Mode") == WARN
    if warns or event.get("RequestType") == "Delete" or (event.get("RequestType") == "Update" and not is_forward):
        return Outcome(skipped=[line])
    return Outcome(refused=True, findings=[f"{line}; deploy again, or {_GO_ON}"])


def _outcome(event: Mapping[str, Any], api: Callable[[], Api], region: str, forward: threading.Event) -> Outcome:
    """Do what the event asks for; ``forward`` is set once an update is known not to be taken back."""
    match event.get("RequestType"):
        case "Delete":
            return Outcome()
        case "Create":
            return _compared(_question(event), api(), region, old=())
        case "Update":
            calls = api()
            problem = _rolling_back(calls, str(event.get("StackId", "")), forward)
            if problem is None:
                return Outcome(skipped=["the stack is rolling back: nothing was compared"])
            outcome = _compared(_question(event), calls, region, old=_accepted(event.get("OldResourceProperties")))
            if forward.is_set():
                return outcome
            return replace(outcome, refused=False, skipped=[problem, *outcome.skipped])
        case other:
            raise GateError(f"RequestType: must be Create, Update or Delete, got {_shown(other)}")


def _compared(question: Question, api: Api, region: str, *, old: Sequence[Requirement]) -> Outcome:
    from .comparison import judge  # noqa: PLC0415 - see the module's docstring

    def judged(requirement: Requirement) -> Verdict:
        reading = _reading(api, requirement, question.own)
        return judge(requirement, reading, region=region, environment_name=question.environment_name)

    verdicts = api.each(judged, question.requirements)
    accepted = {requirement.key: requirement.needed for requirement in old}
    refusing, doubtful, skipped = [], [], []
    for requirement, verdict in zip(question.requirements, verdicts, strict=True):
        line = f"{verdict.path}: {verdict.message}" if verdict.path else verdict.message
        if verdict.severity == "passed":
            LOG.info("passed %s", line)
        elif verdict.severity == "skipped":
            skipped.append(line)
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
    from .calling import Refused  # noqa: PLC0415 - see the module's docstring
    from .comparison import Reading  # noqa: PLC0415 - see the module's docstring
    from .reading import NoSuchQuota, NotTold, read_quota, used  # noqa: PLC0415 - see the module's docstring

    try:
        quota = read_quota(api, requirement.service, requirement.name, requirement.code)
    except (NoSuchQuota, NotTold) as error:
        return Reading(value=None, problem=str(error))
    except Refused as error:
        return Reading(value=None, problem=error.reason, action=error.action)
    by_others: float | None = 0
    problem, action = "", ""
    try:
        by_others = used(api, requirement.usage, own) if requirement.usage else 0
    except Refused as error:
        by_others, problem, action = None, error.reason, error.action
    return Reading(
        value=quota.value,
        is_default=quota.is_default,
        used=by_others,
        problem=problem,
        action=action,
        is_adjustable=quota.is_adjustable,
    )


def _rolling_back(api: Api, stack_id: str, forward: threading.Event) -> str | None:
    """Ask CloudFormation, since the event of an update that is taken back looks like that of any other update.

    Gives None for one that is taken back. Else sets ``forward``, or gives the reason why that is not known.
    """
    from .calling import Refused  # noqa: PLC0415 - see the module's docstring

    try:
        stacks = api.call("cloudformation", "describe_stacks", StackName=stack_id)["Stacks"]
    except Refused as error:
        return f"whether the stack is rolling back could not be asked, so nothing is refused: {error}"
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
    """Give the requirements that the gate let pass before this update; none where it only warned."""
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
        if _size(text) <= room:
            return text
    start, rest = (lines[0], f"... (whole text in log {log})") if lines else ("", "")
    while start and _size(start + rest) > room:
        start = start[: len(start) * 9 // 10]
    return start + rest if start else ""


def _size(text: str) -> int:
    return len(json.dumps(text)) - len('""')


def _shown(value: object) -> str:
    return repr(value)[:200]


def _put_patiently(url: str, body: bytes, put: Callable[[str, bytes], None], sleep: Callable[[float], None]) -> None:
    for pause in (*PUT_PAUSES, None):
        try:
            put(url, body)
        except (OSError, http.client.HTTPException) as error:
            LOG.warning("CloudFormation does not take the answer: %s", error)
            if pause is None:
                raise AnswerNotSentError(f"CloudFormation does not take the answer: {error}") from error
            sleep(pause)
        else:
            return


def _api() -> Api:
    from .calling import Boto3Api  # noqa: PLC0415 - see the module's docstring

    return Boto3Api()
