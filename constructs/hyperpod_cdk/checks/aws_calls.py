"""Makes calls to AWS over botocore: each once in a run, in parallel, in bounded time; errors become NotAnswered.

``checks.aws`` knows what to ask, and what an answer means.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import botocore.session
from botocore import exceptions as errors
from botocore.config import Config
from botocore.model import ServiceId
from botocore.parsers import ResponseParserError
from botocore.signers import RequestSigner

from hyperpod_cdk.catalog.notifications import CHAT_REGION
from hyperpod_cdk.checks.answers import (
    UNREADABLE,
    AwsAccessError,
    Caller,
    NotAnswered,
    Refused,
    Why,
    what_is_lost,
)
from hyperpod_cdk.checks.side_by_side import deepen_to, depth, in_background, together
from hyperpod_cdk.handlers.quota_gate.reading import (
    Listed,
    quoted,
)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait for AWS.

    AWS's endpoints accept a connection within about 300 ms from anywhere; a slow one is blocked. The slowest
    question, SimulatePrincipalPolicy for a hundred actions, takes several seconds. ``attempts`` includes the first one:
    if every third call is throttled, one of 700 fails six times. ``call_s`` bounds a call with all its attempts,
    pauses and DNS lookups.
    """

    connect_timeout_s: float = 3.0
    read_timeout_s: float = 8.0
    attempts: int = 6
    call_s: float = 20.0


_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 2.0
"""Bounds of the random pause after a throttled call: the first one, which doubles each time, and the longest."""

MOST_CALLS_AT_ONCE = 48
"""Calls in flight, and connections kept for each service: enough for every check, too few to be throttled for."""

MOST_PAGES = 400
"""No account has more pages of anything; a longer answer is broken."""

TOKEN_LIFETIME_S = 60
"""Of the presigned request inside an EKS token, as ``aws eks get-token`` makes it."""

_REGIONS = {"chatbot": CHAT_REGION}
"""Services of the whole account that answer in another region than the cluster's."""

_PREFIXES = {"service-quotas": "servicequotas", "amp": "aps"}
_ACTIONS = {
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListBuckets": "s3:ListAllMyBuckets",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "budgets:DescribeBudget": "budgets:ViewBudget",
    "budgets:DescribeNotificationsForBudget": "budgets:ViewBudget",
    "budgets:DescribeSubscribersForNotification": "budgets:ViewBudget",
}

_DENIED = re.compile(r"AccessDenied|Unauthorized(Operation|Access)|NotAuthorized|^Forbidden|^403$|AuthorizationError")
_THROTTLED = re.compile(
    r"Thrott|TooManyRequests|RequestLimitExceeded|SlowDown|BandwidthLimitExceeded|^429$|^Limit.*Rate"
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
_NOT_ACCEPTED = frozenset(
    {
        "AuthFailure",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_NAMED_ACTION = re.compile(r"not authorized to perform: ([a-zA-Z0-9-]+:[a-zA-Z0-9*]+)")
_POLICY_TO_BLAME = re.compile(r"(?:explicit deny in an? |because no )((?:[A-Za-z-]+ )*?(?:policy|boundary))\b")
"""IAM's user guide, "Troubleshoot access denied error messages": both forms of the sentence, the kinds of policy."""
_WHO_CHANGES = {
    "service control policy": "only the organization's administrators can change it",
    "resource control policy": "only the organization's administrators can change it",
    "permissions boundary": "another policy for the caller does not help: the boundary must allow it too",
    "session policy": "it came with the session: assume the role without it, or with one that allows it",
    "VPC endpoint policy": "it belongs to the VPC endpoint that the call goes through",
    "resource-based policy": "it belongs to the queried resource, whose owner can change it",
}
"""The owner of a policy, if another permission of the caller does not help."""
_CLOCK = re.compile(r"Signature (?:expired|not yet current)|RequestTimeTooSkewed|difference between the request time")
"""Messages about a signature with a wrong time (aws-cli issue 6676, aws-sdk-js issue 2565; S3's error responses)."""
_CLOCK_REASON = "the clock of this machine is wrong, so AWS does not accept its signatures; set it with NTP"
_NOT_ENABLED = frozenset({"OptInRequired"})
_NO_CREDENTIALS = (
    errors.NoCredentialsError,
    errors.PartialCredentialsError,
    errors.CredentialRetrievalError,
    errors.SSOError,
    errors.TokenRetrievalError,
)
_NOT_REACHED = (
    errors.EndpointConnectionError,
    errors.ConnectTimeoutError,
    errors.ProxyConnectionError,
    errors.SSLError,
)


def configured_region() -> str | None:
    """Return the region of the AWS configuration, as the AWS CLI finds it; None if there is none, or no profile."""
    try:
        # botocore does not look at the variable that the AWS CLI looks at first
        found = os.environ.get("AWS_REGION") or botocore.session.Session().get_config_variable("region")
    except errors.BotoCoreError:
        return None
    return str(found) if found else None


class TooLongError(Exception):
    """A call took longer than ``Patience.call_s``."""


@dataclass
class _Attempts:
    """The state of a call: requests sent, and the code of AWS's last error."""

    made: int = 0
    code: str = ""

    @property
    def is_throttled(self) -> bool:
        """Whether the last answer was a throttling error."""
        return _THROTTLED.search(self.code) is not None


_SENTENCES: tuple[tuple[Any, str], ...] = (
    ((errors.ReadTimeoutError, TooLongError), "{name} gave no answer within {seconds:g} s{times}"),
    (errors.HTTPClientError, "the connection was lost during {name}{times}"),
    (_NO_CREDENTIALS, "the credentials for {name} are no longer available: {error}"),
    (errors.ParamValidationError, "{name} cannot be called: {error}"),
    (ResponseParserError, "the answer to {name} is not whole, or does not come from AWS"),
    (Exception, "the answer to {name} cannot be read: {error}"),
)
"""What to say about an error that is not AWS's own; the first matching kind counts."""

_ACCESS_SENTENCES: tuple[tuple[Any, str], ...] = (
    (
        (errors.UnauthorizedSSOTokenError, errors.SSOTokenLoadError, errors.TokenRetrievalError),
        "the AWS session of IAM Identity Center has ended; run 'aws sso login'",
    ),
    (errors.NoCredentialsError, "no AWS credentials; set AWS_PROFILE or run 'aws sso login'"),
    (_NO_CREDENTIALS, "no AWS credentials: {error}; correct the profile"),
    (_NOT_REACHED, "AWS cannot be reached: {error}; check the network, its proxy and AWS_ENDPOINT_URL"),
)
_LARGEST_PAGE = 1000
_LONGEST_REASON = 300

AnswerT = TypeVar("AnswerT")
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One API call that was made: ``depth`` counts the calls that had to end before it, and itself."""

    service: str
    operation: str
    seconds: float
    depth: int
    retries: int

    @property
    def name(self) -> str:
        """Return the call with the name of its IAM action: ``ec2:DescribeVpcs``."""
        return f"{self.service}:{self.operation}"


class _OtherAccount(NotAnswered):
    """The credentials are those of another account than the environment's."""


class _NoClient(NotAnswered):
    """botocore cannot be configured: a profile that does not exist, a setting that it cannot read."""


@dataclass(frozen=True)
class _Kept:
    """An answer, or why there is none, with the depth at which it came."""

    answer: Any
    missing: NotAnswered | None
    depth: int


class AwsCalls:
    """Makes the calls of one run to one account in one region, each once, for every caller and thread.

    A call raises only NotAnswered; ``require_credentials`` and ``require_account`` raise only AwsAccessError.
    """

    def __init__(self, *, region: str, account: str, session: botocore.session.Session, patience: Patience) -> None:
        """Make no call yet. ``account`` is the expected account, empty for that of the credentials."""
        self._region = region
        self._account = account
        self._session = session
        self._patience = patience
        self._config = Config(
            region_name=region,
            connect_timeout=patience.connect_timeout_s,
            read_timeout=patience.read_timeout_s,
            # not adaptive: that slows down every call of a service after one was throttled (26 s in place of 3)
            retries={"mode": "standard", "total_max_attempts": patience.attempts},
            max_pool_connections=MOST_CALLS_AT_ONCE,
        )
        self._calls: list[Call] = []
        self._clients: dict[str, Any] = {}
        # loading service models uses the processor: in parallel it only takes longer
        self._making_client = threading.Lock()
        self._slots = threading.BoundedSemaphore(MOST_CALLS_AT_ONCE)
        self._answers: dict[object, Future[_Kept]] = {}
        self._answering = threading.Lock()
        self._out_of_reach: dict[str, NotAnswered] = {}
        self._current = threading.local()

    def require_credentials(self) -> None:
        """Raise AwsAccessError, one sentence with the fix, if AWS accepts no credentials or does not answer.

        If STS refuses for another reason, each question says so.
        """
        try:
            self.caller()
        except _NoClient as missing:
            raise AwsAccessError(missing.reason) from None
        except NotAnswered as missing:
            sentence = _no_access(missing, self._region)
            if sentence:
                raise AwsAccessError(sentence) from None

    def require_account(self) -> None:
        """Raise AwsAccessError if no question can have an answer: the credentials are not the environment's."""
        try:
            self._hold_account()
        except _OtherAccount as missing:
            raise AwsAccessError(f"{missing.reason}; set AWS_PROFILE to a profile of {self._account}") from None
        except NotAnswered as missing:
            raise AwsAccessError(missing.sentence) from None

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call that was made, in the order in which they ended."""
        return tuple(self._calls)

    @property
    def depth(self) -> int:
        """The longest chain of calls in which each had to wait for the previous one."""
        return max((call.depth for call in self._calls), default=0)

    def send(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call, each time it is requested: for values that change. Raises NotAnswered."""
        return cast("Mapping[str, Any]", self._send(service, operation, params))

    def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
        """Make a call as often as there are pages, once in a run; give the items of ``key`` of those that came."""

        def ask() -> Listed:
            items: list[Any] = []
            try:
                items.extend(self._pages(service, operation, key, params))
            except NotAnswered as missing:
                return Listed(items=items, missing=missing)
            return Listed(items=items)

        return self._once(("listed", service, operation, _frozen(params)), ask)

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        """Return the items of ``key`` of all pages; raises NotAnswered if one is missing."""
        return self.listed(service, operation, key, **params).whole()

    def each(self, function: Callable[[ItemT], AnswerT], items: Iterable[ItemT]) -> list[AnswerT]:
        """Call ``function`` with each item in parallel; results in order, the first error raised."""
        results = together(function, items)
        for result in results:
            if isinstance(result, NotAnswered):
                raise result
        return cast("list[AnswerT]", results)

    def caller(self) -> Caller:
        answer = self._asked("sts", "get_caller_identity", {})
        with reading("sts:GetCallerIdentity"):
            return Caller(account=answer["Account"], arn=answer["Arn"])

    def _found(
        self, service: str, operation: str, params: Mapping[str, Any], is_missing: Callable[[Refused], bool]
    ) -> Any:
        try:
            return self._asked(service, operation, params)
        except Refused as refused:
            if is_missing(refused):
                return None
            raise

    def _asked(self, service: str, operation: str, params: Mapping[str, Any]) -> Any:
        return self._once((service, operation, _frozen(params)), lambda: self._send(service, operation, params))

    def _once(self, key: object, ask: Callable[[], AnswerT]) -> AnswerT:
        """Return the answer to ``ask``, which runs once for a key; other callers wait for its result."""
        with self._answering:
            future = self._answers.get(key)
            is_first = future is None
            if future is None:
                future = self._answers[key] = Future()
        if is_first:
            try:
                future.set_result(_Kept(ask(), None, depth()))
            except NotAnswered as missing:
                future.set_result(_Kept(None, missing, depth()))
            except BaseException as error:
                future.set_exception(error)
                raise
        kept = future.result()
        deepen_to(kept.depth)
        if kept.missing is not None:
            # a copy, because an exception keeps the place where it was raised, and several threads raise this one
            raise copy.copy(kept.missing) from kept.missing.__cause__
        return cast("AnswerT", kept.answer)

    def _pages(self, service: str, operation: str, key: str, params: Mapping[str, Any]) -> Iterator[Any]:
        name = self._name(service, operation)
        shape = self._pagination(service, name.partition(":")[2])
        asked: dict[str, Any] = {**params, **shape.page_size}
        seen = set()
        for _ in range(MOST_PAGES):
            answer = self._send(service, operation, asked)
            with reading(name):
                yield from answer[key]
            token = answer.get(shape.output_token)
            if shape.more_results and answer.get(shape.more_results) and not token:
                raise NotAnswered(f"the answer to {name} is incomplete: AWS says that there is more, but not where")
            if not token or (shape.more_results and not answer.get(shape.more_results)):
                return
            if not isinstance(token, str):
                raise NotAnswered(f"the answer to {name} cannot be read: its token for the next page is not text")
            if token in seen:
                raise NotAnswered(f"the answer to {name} repeats: AWS gave the same page again")
            seen.add(token)
            asked[shape.input_token] = token
        raise NotAnswered(f"the answer to {name} does not end after {MOST_PAGES} pages")

    def _pagination(self, service: str, operation: str) -> _Pagination:
        with self._making_client:
            try:
                model = self._session.get_paginator_model(service).get_paginator(operation)
            except (ValueError, errors.DataNotFoundError):
                return _Pagination()
        limit = model.get("limit_key", "")
        members = self._client(service).meta.service_model.operation_model(operation).input_shape.members
        most = members[limit].metadata.get("max", 0) if limit in members else 0
        return _Pagination(
            input_token=model["input_token"],
            output_token=model["output_token"],
            more_results=model.get("more_results", ""),
            # one large page rather than several one after another
            page_size={limit: most} if 0 < most <= _LARGEST_PAGE else {},
        )

    def _send(self, service: str, operation: str, params: Mapping[str, Any]) -> Any:
        """Make one call, with botocore's retries; raises NotAnswered, with AWS's code if it gave one."""
        if service != "sts":
            self._hold_account()
        name = self._name(service, operation)
        if service in self._out_of_reach:
            raise copy.copy(self._out_of_reach[service])
        client = self._client(service)
        with self._recorded(name) as attempts:
            try:
                return self._in_time(lambda: getattr(client, operation)(**params), attempts)
            except Exception as error:
                # not only botocore's own: its parsers raise anything when fed with garbage
                missing = self._not_answered(error, name, attempts)
                if isinstance(error, _NOT_REACHED) or (isinstance(error, TooLongError) and attempts.is_throttled):
                    self._out_of_reach[service] = missing
                raise missing from error

    def _hold_account(self) -> None:
        try:
            caller = self.caller()
        except NotAnswered as missing:
            raise NotAnswered(
                Why.about("the account of the credentials is unknown", missing.reason),
                action=missing.action,
                said=missing.said,
            ) from None
        if self._account and caller.account != self._account:
            raise _OtherAccount(
                f"the credentials belong to account {caller.account}, the environment to {self._account}"
            )

    def _client(self, service: str) -> Any:
        with self._making_client:
            if service not in self._clients:
                try:
                    here = Config(region_name=_REGIONS.get(service, self._region))
                    client = self._session.create_client(service, config=self._config.merge(here))
                except (errors.BotoCoreError, ValueError) as error:
                    raise _NoClient(_no_client(error)) from None
                client.meta.events.register("before-send", self._count_attempt)
                # as specific as botocore's own handler, which then runs after it
                event = f"needs-retry.{client.meta.service_model.service_id.hyphenize()}"
                client.meta.events.register_first(event, self._see_response)  # type: ignore[arg-type]  # gives a pause
                self._clients[service] = client
            return self._clients[service]

    def _name(self, service: str, operation: str) -> str:
        methods = self._client(service).meta.method_to_api_mapping
        return f"{_PREFIXES.get(service, service)}:{methods[operation]}"

    def _count_attempt(self, **_: object) -> None:
        self._current.attempts.made += 1

    def _see_response(self, response: Any = None, attempts: int = 1, **_: object) -> float | None:
        """Store the code of an answer, and give the pause in seconds before a throttled call is repeated.

        botocore uses the first answer of its retry handlers. Its own pauses after throttling, up to
        1, 2, 4 s in standard mode, cost a run of three calls in a row three times as much (measured).
        """
        if response is None:
            return None
        self._current.attempts.code = str(response[1].get("Error", {}).get("Code", ""))
        if not self._current.attempts.is_throttled or attempts >= self._patience.attempts:
            return None
        return random.uniform(0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (attempts - 1)))  # noqa: S311 - no secret

    @contextmanager
    def _recorded(self, name: str) -> Iterator[_Attempts]:
        """Record a call: it starts when there is a slot, and the next call of this thread is one deeper."""
        with self._slots:
            attempts = _Attempts()
            started = time.monotonic()
            try:
                yield attempts
            finally:
                service, _, operation = name.partition(":")
                deepen_to(depth() + 1)
                self._calls.append(
                    Call(
                        service=service,
                        operation=operation,
                        seconds=time.monotonic() - started,
                        depth=depth(),
                        retries=max(0, attempts.made - 1),
                    )
                )

    def _in_time(self, ask: Callable[[], AnswerT], attempts: _Attempts) -> AnswerT:
        """Run a call in another thread, which is abandoned when its time is over."""
        future: Future[AnswerT] = Future()

        def run() -> None:
            self._current.attempts = attempts
            try:
                future.set_result(ask())
            except BaseException as error:  # noqa: BLE001 - it is raised where the call was made
                future.set_exception(error)

        in_background(run)
        try:
            return future.result(timeout=self._patience.call_s)
        except TimeoutError:
            if future.done():
                raise
            raise TooLongError from None

    def _not_answered(self, error: Exception, name: str, attempts: _Attempts) -> NotAnswered:
        times = f", {attempts.made} times" if attempts.made > 1 else ""
        if isinstance(error, errors.ClientError):
            return self._refused(error, name, times)
        if isinstance(error, _NOT_REACHED):
            return NotAnswered(self._unreachable(error, name))
        if isinstance(error, TooLongError) and attempts.is_throttled:
            return NotAnswered(_tried(times, lambda each: f"AWS throttled {name}{each}; run it again later"))
        if isinstance(error, TooLongError) and not attempts.made:
            waited = f"{self._patience.call_s:g} s"
            return NotAnswered(
                f"{name} was not started within {waited}: AWS throttles, or getting the credentials takes too long"
            )
        seconds = self._patience.call_s if isinstance(error, TooLongError) else self._patience.read_timeout_s
        sentence = next(sentence for kinds, sentence in _SENTENCES if isinstance(error, kinds))
        said = _line(error)
        return NotAnswered(
            _tried(times, lambda each: sentence.format(name=name, times=each, seconds=seconds, error=said))
        )

    def _refused(self, error: errors.ClientError, name: str, times: str) -> NotAnswered:
        said = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code, message = _line(said.get("Code", "")) or str(status), _line(said.get("Message") or "")
        # an error of a gateway or a proxy, not of a service, has the status as its code
        shown = f"HTTP {code}" if code.isdigit() else code
        if error.operation_name != name.partition(":")[2]:
            return NotAnswered(
                f"the credentials for {name} are no longer available: {error.operation_name} gave {code}"
            )
        if _DENIED.search(code):
            return _denied(name, code, message)
        reason: str
        if _CLOCK.search(f"{code} {message}"):
            # checked before the reported error: expired credentials, or a wrong signature
            reason = _CLOCK_REASON
        elif code in _EXPIRED:
            # the same for every call: one thing is wrong
            reason = "the credentials expired during the run; renew them and run it again"
        elif code in _NOT_ENABLED:
            reason = f"{name} is not enabled in the account ({code}); enable the region or the service"
        elif code in _NOT_ACCEPTED:
            reason = f"AWS does not accept the credentials for {name} ({code}); is the region enabled in the account?"
        elif _THROTTLED.search(code):
            reason = _tried(times, lambda each: f"AWS throttled {name}{each}; run it again later")
        elif status >= 500:
            reason = _tried(times, lambda each: f"{name} failed inside AWS with {shown}{each}; run it again later")
        else:
            reason = f"{name} was refused with {shown}"
            # a page of HTML comes from a proxy, or from a server that is not AWS
            reason = Why.about(reason, message) if message and message[0] != "<" else reason
        # AWS's own sentence is kept, but not a page of HTML
        sentence = "" if message in reason or message.startswith("<") else message
        return Refused(reason, said=sentence, code=code, message=message)

    def _unreachable(self, error: Exception, name: str) -> str:
        service = name.partition(":")[0]
        client_name = next((ours for ours, prefix in _PREFIXES.items() if prefix == service), service)
        url = self._client(client_name).meta.endpoint_url
        if isinstance(error, errors.EndpointConnectionError) and self._is_missing_in_region(client_name):
            return f"{service} does not exist in {self._region}: nothing answers at {url}"
        return f"{service} cannot be reached: nothing answers at {url}; check network and proxy"

    def _is_missing_in_region(self, service: str) -> bool:
        try:
            with self._making_client:
                partition = self._session.get_partition_for_region(self._region)
                regions = self._session.get_available_regions(service, partition)
        except errors.BotoCoreError:
            return False
        # iam and others have one endpoint for all regions, and an empty list
        return bool(regions) and self._region not in regions

    def _token(self, cluster: str) -> str:
        """Create the bearer token that EKS accepts: a presigned GetCallerIdentity, tied to the cluster's name."""
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise errors.NoCredentialsError
            emitter = self._session.get_component("event_emitter")
            signer = RequestSigner(ServiceId("STS"), self._region, "sts", "v4", credentials, emitter)
            url = signer.generate_presigned_url(
                {
                    "method": "GET",
                    "url": f"{self._client('sts').meta.endpoint_url}/?Action=GetCallerIdentity&Version=2011-06-15",
                    "body": {},
                    "headers": {"x-k8s-aws-id": cluster},
                    "context": {},
                },
                operation_name="",
                region_name=self._region,
                expires_in=TOKEN_LIFETIME_S,
            )
        except (errors.BotoCoreError, errors.ClientError) as error:
            raise NotAnswered(f"no token can be made for EKS cluster {cluster}: {_line(error)}") from None
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


@dataclass(frozen=True, kw_only=True)
class _Pagination:
    """How an operation shows that there are more pages; the defaults are for one without a paginator in botocore."""

    input_token: str = "NextToken"  # noqa: S105 - the name of a parameter
    output_token: str = "NextToken"  # noqa: S105 - the name of a parameter
    more_results: str = ""
    page_size: Mapping[str, int] = field(default_factory=dict)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn a missing member, or one of another type, into NotAnswered: such an answer is incomplete."""
    try:
        yield
    except UNREADABLE as error:
        raise NotAnswered(f"the answer to {name} cannot be read: {_line(what_is_lost(error))}") from None


def _tried(times: str, said: Callable[[str], str]) -> Why:
    """Say how often a call was tried, which differs from call to call and is no part of the cause."""
    return Why(said(times), causes=(said(""),))


def _no_access(missing: NotAnswered, region: str) -> str:
    """Say why AWS cannot be called, with the fix; empty if the credentials are not the reason."""
    error = missing.__cause__
    for kinds, sentence in _ACCESS_SENTENCES:
        if isinstance(error, kinds):
            return sentence.format(error=_line(error))
    if not isinstance(error, errors.ClientError):
        return f"AWS cannot be reached: {missing.reason}; check the network, its proxy and AWS_ENDPOINT_URL"
    return _no_credentials(error, region)


def _no_credentials(error: errors.ClientError, region: str) -> str:
    """Say why AWS does not accept the credentials, in AWS's words; empty if they are not the reason."""
    answer = error.response.get("Error", {})
    code, message = str(answer.get("Code", "")), _line(answer.get("Message") or "")
    if error.operation_name != "GetCallerIdentity":
        return f"no AWS credentials: {error.operation_name} gave {code}; correct the profile{quoted(message)}"
    if _CLOCK.search(f"{code} {message}"):
        return f"{_CLOCK_REASON}{quoted(message)}"
    if code in _EXPIRED:
        return "the AWS credentials have expired; renew them, in a profile of IAM Identity Center with 'aws sso login'"
    if code in _NOT_ACCEPTED:
        return (
            f"AWS does not accept the credentials ({code}): they are wrong or deactivated, or {region} is not enabled"
            f" in their account; renew them, or enable the region{quoted(message)}"
        )
    return ""


def _no_client(error: Exception) -> str:
    if isinstance(error, errors.ProfileNotFound):
        name = error.kwargs["profile"]
        return f"there is no AWS profile {name}; set AWS_PROFILE to one that 'aws configure list-profiles' shows"
    return f"the AWS settings cannot be used: {_line(error)}; correct ~/.aws/config or the AWS_ variables"


def _denied(name: str, code: str, message: str) -> NotAnswered:
    named = _NAMED_ACTION.search(message)
    action = named[1] if named else _ACTIONS.get(name, name)
    blamed = _POLICY_TO_BLAME.search(message)
    because = ""
    if blamed:
        whose = _WHO_CHANGES.get(blamed[1], "")
        how = "explicit deny in" if "explicit deny" in message else "no"
        because = f" ({how} {blamed[1]}{f'; {whose}' if whose else ''})"
    alternative = ", or the bucket has another owner" if name == "s3:HeadBucket" else ""
    return Refused(
        f"no permission for {action}{because}{alternative}", action=action, code=code, message=message, said=message
    )


def _frozen(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=str)


def _line(said: object) -> str:
    """Return what a library or AWS says as one line of bounded length."""
    line = " ".join("".join(each if each.isprintable() else " " for each in str(said)).split()).rstrip(".: ")
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON].rstrip()} ..."
