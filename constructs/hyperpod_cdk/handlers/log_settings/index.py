"""Serve Custom::HyperPodLogSettings: retention, key and tags of a log group whose name a service fixes.

The service may have made the group, or an environment of the same name may have left it: it is taken as it is, with
what it holds, and made only where there is none. Deleting the resource leaves it: what is in it is data. Standard
library and boto3 only, both of which Lambda's Python runtimes carry.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

# relative, since in Lambda the package above has another name
from ..answering import Answer, Clients, Put, Sleep, Turn, client, error_code, put, serve  # noqa: TID252

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

PASSING = frozenset({"OperationAbortedException"})
"""CloudWatch Logs refuses a call while another one, such as the service's own, changes the same group."""

Properties = Mapping[str, Any]


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Handle one CloudFormation event and answer its response URL."""
    handle(event, context, clients=client, put=put)


def handle(event: Mapping[str, Any], context: Any, *, clients: Clients, put: Put, sleep: Sleep = time.sleep) -> None:
    """Handle one event with the given AWS clients, sender and sleep."""

    def work(turn: Turn) -> Answer:
        if turn.kind != "Delete":
            before = event.get("OldResourceProperties") or {}
            configure(event["ResourceProperties"], before, turn.client("logs"), stack_id=str(event["StackId"]))
        return Answer()

    serve(event, context, work, clients=clients, put=put, sleep=sleep, passing=PASSING)


def configure(properties: Properties, before: Properties, logs: Any, *, stack_id: str) -> None:
    """Make the group where it is missing, then set retention, key and tags.

    A key or a tag is taken away only where an earlier deployment gave it: a group that was there before may have its
    own. ``stack_id`` says partition, region and account of the group.
    """
    name, key = str(properties["LogGroupName"]), properties.get("KmsKeyArn")
    try:
        logs.create_log_group(logGroupName=name)
    except Exception as error:
        if error_code(error) != "ResourceAlreadyExistsException":
            raise
        LOG.info("%s is there already", name)
    logs.put_retention_policy(logGroupName=name, retentionInDays=int(properties["RetentionInDays"]))
    if key:
        logs.associate_kms_key(logGroupName=name, kmsKeyId=str(key))
    elif before.get("KmsKeyArn") and before.get("LogGroupName") == name:
        logs.disassociate_kms_key(logGroupName=name)
    _tag(properties, before if before.get("LogGroupName") == name else {}, logs, _arn(stack_id, name))


def _tag(properties: Properties, before: Properties, logs: Any, arn: str) -> None:
    tags = {str(key): str(value) for key, value in (properties.get("Tags") or {}).items()}
    gone = sorted((before.get("Tags") or {}).keys() - tags.keys())
    if gone:
        logs.untag_resource(resourceArn=arn, tagKeys=gone)
    if tags:
        logs.tag_resource(resourceArn=arn, tags=tags)


def _arn(stack_id: str, name: str) -> str:
    _, partition, _, region, account, _ = stack_id.split(":", 5)
    return f"arn:{partition}:logs:{region}:{account}:log-group:{name}"
