"""Who may call the embedded AWS: keys that are made anew for every run, and Signature Version 4 checked with them.

Everything that runs on the machine reaches a port on loopback, a web page in a browser included, and the embedded AWS
runs the code of Lambda functions as the user who started it. So it answers only to a signature by a key that it handed
out, under the address that it serves.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from urllib.parse import parse_qsl, quote

from botocore.utils import normalize_url_path

from hyperpod_cdk_rehearsal.embedded.access_keys import CALLER, FUNCTION, INTERNAL, AccessKey
from hyperpod_cdk_rehearsal.embedded.moto_state import every_moto_state, moto_lock
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError

ALGORITHM = "AWS4-HMAC-SHA256"

CONTROL_TOKEN = secrets.token_urlsafe(30)
"""Opens what is no AWS API: the state and the account of this process."""

_OF_THE_RUN = {key.key_id: key for key in (CALLER, INTERNAL, FUNCTION)}

_CODES = {
    # in AWS's order: not signed, key unknown, signature wrong
    "ec2": ("AuthFailure", "AuthFailure", "AuthFailure"),
    "query": ("MissingAuthenticationToken", "InvalidClientTokenId", "SignatureDoesNotMatch"),
    "rest-xml": ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    "json": ("MissingAuthenticationTokenException", "UnrecognizedClientException", "InvalidSignatureException"),
}
_MESSAGES = (
    "Request is missing Authentication Token",
    "The security token included in the request is invalid.",
    "The request signature we calculated does not match the signature you provided.",
)


@dataclass(frozen=True)
class SignedRequest:
    """What of a request its signature covers; ``target`` is path and query as sent, header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class _Signature:
    key_id: str
    day: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    value: str
    timestamp: str
    token: str
    is_in_query: bool


class RefusedSignatureError(Exception):
    """A request that is not answered; ``why`` is 0 where it is not signed, 1 for the key, 2 for the signature."""

    def __init__(self, why: int) -> None:
        super().__init__(_MESSAGES[why])
        self.why = why

    def as_service_error(self, protocol: str) -> ServiceError:
        """Return the refusal as a service of that protocol words it."""
        codes = _CODES.get(protocol, _CODES["json"])
        return ServiceError(codes[self.why], _MESSAGES[self.why], 401 if protocol == "ec2" else 403)


def signer_of(request: SignedRequest) -> AccessKey:
    """Return the key that signed a request, by header or in the query. Raises RefusedSignatureError."""
    signature = _signature_of(request)
    if signature is None:
        raise RefusedSignatureError(0)
    key = _key(signature.key_id)
    if key is None or not _equal(signature.token, key.session_token or ""):
        raise RefusedSignatureError(1)
    if not _equal(_expected(request, signature, key), signature.value):
        raise RefusedSignatureError(2)
    return key


def is_control_token(given: str) -> bool:
    """Whether this opens the control endpoints."""
    return _equal(given, CONTROL_TOKEN)


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _signature_of(request: SignedRequest) -> _Signature | None:
    authorization = request.headers.get("authorization", "")
    if authorization:
        algorithm, _, rest = authorization.partition(" ")
        parts = [part.strip().partition("=") for part in rest.split(",")]
        given = {name: value for name, _, value in parts}
        fields = (given.get("Credential"), given.get("SignedHeaders"), given.get("Signature"))
        timestamp, token = request.headers.get("x-amz-date"), request.headers.get("x-amz-security-token", "")
    else:
        given = dict(parse_qsl(request.target.partition("?")[2], keep_blank_values=True))
        algorithm = given.get("X-Amz-Algorithm", "")
        fields = (given.get("X-Amz-Credential"), given.get("X-Amz-SignedHeaders"), given.get("X-Amz-Signature"))
        timestamp, token = given.get("X-Amz-Date"), given.get("X-Amz-Security-Token", "")
    credential, signed_headers, value = fields
    scope = (credential or "").split("/")
    if algorithm != ALGORITHM or len(scope) != 5 or not (signed_headers and value and timestamp):
        return None
    if "host" not in signed_headers.split(";"):
        return None
    key_id, day, region, service, _ = scope
    return _Signature(
        key_id=key_id,
        day=day,
        region=region,
        service=service,
        signed_headers=tuple(signed_headers.split(";")),
        value=value,
        timestamp=timestamp,
        token=token,
        is_in_query=not authorization,
    )


def _expected(request: SignedRequest, signature: _Signature, key: AccessKey) -> str:
    """Return the signature that the request must carry (IAM user guide, "Create a signed AWS API request")."""
    path, _, query = request.target.partition("?")
    # S3 signs the path as it is sent, every other service encodes it once more
    path = path if signature.service == "s3" else quote(normalize_url_path(path), safe="/~")
    # in a canonical query a plus is a plus
    pairs = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)
    encoded = sorted((_encoded(name), _encoded(value)) for name, value in pairs if name != "X-Amz-Signature")
    headers = [f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signature.signed_headers]
    canonical = "\n".join(
        (
            request.method,
            path,
            "&".join(f"{name}={value}" for name, value in encoded),
            "".join(headers),
            ";".join(signature.signed_headers),
            _payload_hash(request, signature),
        )
    )
    scope = (signature.day, signature.region, signature.service, "aws4_request")
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signing_key = reduce(_hmac, scope, f"AWS4{key.secret}".encode())
    return _hmac(signing_key, f"{ALGORITHM}\n{signature.timestamp}\n{'/'.join(scope)}\n{digest}").hex()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def _payload_hash(request: SignedRequest, signature: _Signature) -> str:
    stated = request.headers.get("x-amz-content-sha256")
    if stated:
        return stated
    if signature.service == "s3" and signature.is_in_query:
        return "UNSIGNED-PAYLOAD"
    return hashlib.sha256(request.body).hexdigest()


def _key(key_id: str) -> AccessKey | None:
    """Return the key of that id: one of this run, or one that STS or IAM handed out in it."""
    if key_id in _OF_THE_RUN:
        return _OF_THE_RUN[key_id]
    with moto_lock:
        return next((key for key in _handed_out() if key.key_id == key_id), None)


def _handed_out() -> Iterator[AccessKey]:
    for sts in every_moto_state("sts"):
        for role in sts.assumed_roles:
            yield AccessKey(role.access_key_id, role.secret_access_key, role.session_token)
    for iam in every_moto_state("iam"):
        for key in [key for user in iam.users.values() for key in user.access_keys]:
            yield AccessKey(key.access_key_id, key.secret_access_key)
