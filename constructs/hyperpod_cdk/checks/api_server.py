"""Reads and patches objects of a Kubernetes API server, over HTTPS with a bearer token. Standard library only."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

from hyperpod_cdk.checks.answers import EksClusterAnswer, NotAnswered, Refused

TIMEOUT_S = 5.0
"""An API server that can be reached answers these two reads in well under a second."""

MOST_BYTES = 16 * 1024 * 1024
"""More than the DaemonSets of a namespace ever need; a longer answer is refused."""

API_GROUPS = "/apis"


def daemon_sets_path(namespace: str) -> str:
    """Return the path under which the DaemonSets of a namespace are listed."""
    return f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}/daemonsets"


def read(
    cluster: EksClusterAnswer,
    path: str,
    token: str,
    *,
    timeout_s: float = TIMEOUT_S,
    patch: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """GET a path of the cluster's API server, or PATCH it by a strategic merge, and give the JSON object it answers.

    Trusts only the cluster's own certificate authority and follows no redirect, because both could send the token
    elsewhere. Uses a proxy if ``HTTPS_PROXY`` names one, as kubectl does, and no setting of the operating system.

    Raises NotAnswered if the server is not reachable or answers something else; Refused, whose code is the HTTP
    status, if it does not admit the caller or has nothing at the path.
    """
    where = f"the API server of EKS cluster {cluster.name}"
    if not cluster.endpoint.startswith("https://"):
        raise NotAnswered(f"{where} has no HTTPS endpoint yet; the cluster is {cluster.status}")
    request = urllib.request.Request(  # noqa: S310 - the scheme is https, as held above
        cluster.endpoint.rstrip("/") + path,
        data=None if patch is None else json.dumps(patch).encode(),
        method="GET" if patch is None else "PATCH",
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            **({} if patch is None else {"Content-Type": "application/strategic-merge-patch+json"}),
        },
    )
    try:
        with _opener(cluster).open(request, timeout=timeout_s) as response:
            body = response.read(MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        told = _refusal(error.code, where, path, is_write=patch is not None)
        raise Refused(told, code=str(error.code)) from None
    except (OSError, ValueError, HTTPException) as error:
        raise NotAnswered(f"{where} is not reachable from here: {_cause(error, cluster)}") from None
    return _parsed(body, where)


def group_names(answer: Mapping[str, Any]) -> frozenset[str]:
    """Read an APIGroupList."""
    return frozenset(group["name"] for group in answer["groups"])


def images(answer: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Read a DaemonSetList: the images of the containers of each by its name."""
    return {
        each["metadata"]["name"]: tuple(
            container["image"] for container in each["spec"]["template"]["spec"]["containers"]
        )
        for each in answer["items"]
    }


def _opener(cluster: EksClusterAnswer) -> urllib.request.OpenerDirector:
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(urllib.request.getproxies_environment()),
        urllib.request.HTTPSHandler(context=_context(cluster.certificate_authority)),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _context(certificate_authority: str) -> ssl.SSLContext:
    pem = base64.b64decode(certificate_authority, validate=True).decode("ascii")
    if not pem.strip():
        # an empty one would make Python trust every public authority instead
        raise ValueError("EKS gave no certificate authority")
    context = ssl.create_default_context(cadata=pem)
    # EKS's authorities have no key identifiers, which the strict mode of Python 3.13 requires
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _refusal(status: int, where: str, path: str, *, is_write: bool) -> str:
    if status == 401:
        return f"{where} does not recognize the caller; it needs an access entry"
    if status == 403 and is_write:
        return (
            f"{where} does not allow the caller to change {path}; its access entry needs a policy such as"
            " AmazonEKSClusterAdminPolicy"
        )
    if status == 403:
        return (
            f"{where} does not allow the caller to read {path}; its access entry needs a policy such as"
            " AmazonEKSViewPolicy"
        )
    return f"{where} answered HTTP {status}"


def _cause(error: OSError | ValueError | HTTPException, cluster: EksClusterAnswer) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed: {getattr(reason, 'verify_message', None) or reason.reason}"
    if isinstance(reason, HTTPException):
        return "it closes the connection"
    if isinstance(reason, ValueError):
        return "EKS gave no certificate authority that can be read"
    if not cluster.endpoint_public:
        return "its endpoint is private"
    return "no answer; check that its endpoint allows this address"


def _parsed(body: bytes, where: str) -> Mapping[str, Any]:
    try:
        answer = json.loads(body[:MOST_BYTES])
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or len(body) > MOST_BYTES:
        raise NotAnswered(f"{where} answered something that cannot be read")
    return answer
