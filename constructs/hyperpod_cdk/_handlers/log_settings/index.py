"""Serve Custom::HyperPodLogSettings: retention and key of a log group whose name a service fixes.

The service may have made the group, or an environment of the same name may have left it: it is taken as it is, with
what it holds, and made only where there is none. Deleting the resource leaves it: what is in it is data. Standard
library and boto3 only, both of which Lambda's Python runtimes carry.
"""

from __future__ import annotations

import http.client
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

REASON_LIMIT = 1500
"""CloudFormation takes answers of up to 4096 bytes; characters of the reason that are kept."""
PUT_PAUSES = (1.0, 2.0, 4.0)
PAUSES = (1.0, 2.0, 4.0, 8.0, 10.0)
PASSING = frozenset({"AccessDeniedException", "OperationAbortedException"})
"""CloudWatch Logs refuses a call while another one, such as the service's own, changes the same group; and IAM takes a
while to know the role that the same deployment made (aws-cdk issue 37675)."""

Properties = Mapping[str, Any]


def handler(event: Mapping[str, Any], _context: Any) -> None:
    """Handle one CloudFormation event and answer its response URL."""
    handle(event, client=_logs, put=put)


def handle(
    event: Mapping[str, Any],
    *,
    client: Callable[[], Any],
    put: Callable[[str, bytes], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Handle one event with the given CloudWatch Logs client, sender and sleep.

    Raises only if the answer cannot be sent, so that Lambda invokes the handler again.
    """
    properties = event["ResourceProperties"]
    answer: dict[str, Any] = {
        "Status": "SUCCESS",
        "RequestId": event["RequestId"],
        "StackId": event["StackId"],
        "LogicalResourceId": event["LogicalResourceId"],
        # another name is another group; CloudFormation then deletes the one before, which stays
        "PhysicalResourceId": event.get("PhysicalResourceId") or properties["LogGroupName"],
    }
    try:
        if event["RequestType"] != "Delete":
            answer["PhysicalResourceId"] = properties["LogGroupName"]
            configure(properties, event.get("OldResourceProperties") or {}, client(), sleep)
    except Exception as error:
        LOG.exception("%s of %s failed", event["RequestType"], event["LogicalResourceId"])
        answer |= {"Status": "FAILED", "Reason": (str(error) or type(error).__name__)[:REASON_LIMIT]}
    LOG.info("%s %s", answer["Status"], answer["PhysicalResourceId"])
    _put_patiently(event["ResponseURL"], json.dumps(answer).encode(), put, sleep)


def configure(properties: Properties, before: Properties, logs: Any, sleep: Callable[[float], None]) -> None:
    """Make the group where it is missing, then set retention and key.

    A key is taken away only where an earlier deployment gave it: a group that was there before may have one of its own.
    """
    name, key = str(properties["LogGroupName"]), properties.get("KmsKeyArn")

    def calmly(call: Callable[..., Any], **arguments: Any) -> None:
        for pause in (*PAUSES, None):
            try:
                call(logGroupName=name, **arguments)
            except ClientError as error:
                if _code(error) not in PASSING or pause is None:
                    raise
                sleep(pause)
            else:
                return

    try:
        calmly(logs.create_log_group)
    except ClientError as error:
        if _code(error) != "ResourceAlreadyExistsException":
            raise
        LOG.info("%s is there already", name)
    calmly(logs.put_retention_policy, retentionInDays=int(properties["RetentionInDays"]))
    if key:
        calmly(logs.associate_kms_key, kmsKeyId=str(key))
    elif before.get("KmsKeyArn") and before.get("LogGroupName") == name:
        calmly(logs.disassociate_kms_key)


def put(url: str, body: bytes) -> None:
    """Send the answer to CloudFormation's response URL (https; a local stand-in may use http)."""
    parts = urlsplit(url)
    connection_type = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connection_type(parts.netloc, timeout=5)
    try:
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        # the URL is signed for an empty content type
        connection.request("PUT", target, body=body, headers={"Content-Type": ""})
        response = connection.getresponse()
        response.read()
    finally:
        connection.close()
    if response.status >= 400:
        raise OSError(f"HTTP {response.status} {response.reason}")


def _put_patiently(url: str, body: bytes, send: Callable[[str, bytes], None], sleep: Callable[[float], None]) -> None:
    for pause in (*PUT_PAUSES, None):
        try:
            send(url, body)
        except (OSError, http.client.HTTPException) as error:
            LOG.warning("CloudFormation does not take the answer: %s", error)
            if pause is None:
                raise
            sleep(pause)
        else:
            return


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _logs() -> Any:
    return boto3.client(
        "logs", config=Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "max_attempts": 5})
    )
