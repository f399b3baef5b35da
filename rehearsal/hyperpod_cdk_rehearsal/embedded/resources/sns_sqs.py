"""AWS::SNS and AWS::SQS: topics, subscriptions, queues and their policies."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    as_list,
    call,
    changed,
    document,
    ignoring,
    retag,
    tag_list,
    tag_map,
    take,
)
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

TOPIC_GONE = ("NotFound", "NotFoundException")
QUEUE_GONE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
TOPIC_ATTRIBUTES = (
    "DisplayName",
    "KmsMasterKeyId",
    "SignatureVersion",
    "TracingConfig",
    "FifoTopic",
    "ContentBasedDeduplication",
)
SUBSCRIPTION_ATTRIBUTES = (
    "DeliveryPolicy",
    "FilterPolicy",
    "FilterPolicyScope",
    "RawMessageDelivery",
    "RedrivePolicy",
    "SubscriptionRoleArn",
)
QUEUE_ATTRIBUTES = (
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "SqsManagedSseEnabled",
    "VisibilityTimeout",
)


def _sns(request: ResourceRequest) -> Any:
    return request.context.client("sns")


def _sqs(request: ResourceRequest) -> Any:
    return request.context.client("sqs")


@handles("AWS::SNS::Topic")
class Topic(ResourceHandler):
    """A topic with its inline subscriptions. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        properties = request.properties
        name = properties.get("TopicName") or request.generated_name(max_length=256)
        arn = call(
            _sns(request),
            "create_topic",
            {
                "Name": name,
                "Attributes": take(properties, *TOPIC_ATTRIBUTES),
                "Tags": tag_list(properties.get("Tags")) or None,
            },
        )["TopicArn"]
        for row in as_list(properties.get("Subscription")):
            call(_sns(request), "subscribe", {"TopicArn": arn} | take(row, "Protocol", "Endpoint"))
        return self._result(arn)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, arn = _sns(request), request.existing_id
        for name in TOPIC_ATTRIBUTES:
            if changed(request, name):
                value = request.properties.get(name, "")
                call(
                    client,
                    "set_topic_attributes",
                    {"TopicArn": arn, "AttributeName": name, "AttributeValue": value},
                )
        self._resubscribe(request)
        retag(
            request,
            add=lambda tags: client.tag_resource(ResourceArn=arn, Tags=tag_list(tags)),
            remove=lambda keys: client.untag_resource(ResourceArn=arn, TagKeys=keys),
        )
        return self._result(arn)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(*TOPIC_GONE):
            _sns(request).delete_topic(TopicArn=request.existing_id)

    @staticmethod
    def _resubscribe(request: ResourceRequest) -> None:
        client, arn = _sns(request), request.existing_id
        before = as_list((request.previous or {}).get("Subscription"))
        after = as_list(request.properties.get("Subscription"))
        gone = [(row["Protocol"], row["Endpoint"]) for row in before if row not in after]
        for row in client.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"] if gone else []:
            if (row["Protocol"], row["Endpoint"]) in gone:
                client.unsubscribe(SubscriptionArn=row["SubscriptionArn"])
        for row in [row for row in after if row not in before]:
            call(client, "subscribe", {"TopicArn": arn} | take(row, "Protocol", "Endpoint"))

    @staticmethod
    def _result(arn: str) -> ResourceResult:
        return ResourceResult(arn, {"TopicArn": arn, "TopicName": arn.rpartition(":")[2]})


@handles("AWS::SNS::Subscription")
class Subscription(ResourceHandler):
    """A subscription. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        arn = call(
            _sns(request),
            "subscribe",
            take(request.properties, "TopicArn", "Protocol", "Endpoint")
            | {"Attributes": take(request.properties, *SUBSCRIPTION_ATTRIBUTES), "ReturnSubscriptionArn": True},
        )["SubscriptionArn"]
        return ResourceResult(arn, {"Arn": arn})

    def update(self, request: ResourceRequest) -> ResourceResult:
        for name in SUBSCRIPTION_ATTRIBUTES:
            if changed(request, name):
                value = request.properties.get(name, {} if name.endswith("Policy") else "")
                call(
                    _sns(request),
                    "set_subscription_attributes",
                    {
                        "SubscriptionArn": request.existing_id,
                        "AttributeName": name,
                        "AttributeValue": value,
                    },
                )
        return ResourceResult(request.existing_id, {"Arn": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(*TOPIC_GONE):
            _sns(request).unsubscribe(SubscriptionArn=request.existing_id)


@handles("AWS::SNS::TopicPolicy")
class TopicPolicy(ResourceHandler):
    """The policy of one or more topics. `Ref` is CloudFormation's own name for it."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._put(request)
        policy_id = request.generated_name()
        return ResourceResult(policy_id, {"Id": policy_id})

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._put(request)
        return ResourceResult(request.existing_id, {"Id": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        for topic in as_list(request.properties["Topics"]):
            with ignoring(*TOPIC_GONE):
                # a topic always has a policy: the owner's default one comes back
                _sns(request).set_topic_attributes(
                    TopicArn=topic, AttributeName="Policy", AttributeValue=document(_default_policy(request, topic))
                )

    @staticmethod
    def _put(request: ResourceRequest) -> None:
        for topic in as_list(request.properties["Topics"]):
            _sns(request).set_topic_attributes(
                TopicArn=topic,
                AttributeName="Policy",
                AttributeValue=document(request.properties["PolicyDocument"]),
            )


def _default_policy(request: ResourceRequest, topic: str) -> dict[str, Any]:
    return {
        "Version": "2008-10-17",
        "Id": "__default_policy_ID",
        "Statement": [
            {
                "Sid": "__default_statement_ID",
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": ["SNS:Publish", "SNS:Subscribe"],
                "Resource": topic,
                "Condition": {"StringEquals": {"AWS:SourceOwner": request.context.account}},
            }
        ],
    }


@handles("AWS::SQS::Queue")
class Queue(ResourceHandler):
    """A queue. `Ref` is its URL."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        properties = request.properties
        suffix = ".fifo" if properties.get("FifoQueue") else ""
        name = properties.get("QueueName") or request.generated_name(max_length=75) + suffix
        url = call(
            _sqs(request),
            "create_queue",
            {
                "QueueName": name,
                "Attributes": take(properties, *QUEUE_ATTRIBUTES),
                "tags": tag_map(properties.get("Tags")) or None,
            },
        )["QueueUrl"]
        return self._result(request, url)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, url = _sqs(request), request.existing_id
        attributes = {name: request.properties.get(name, "") for name in QUEUE_ATTRIBUTES if changed(request, name)}
        if attributes:
            call(client, "set_queue_attributes", {"QueueUrl": url, "Attributes": attributes})
        retag(
            request,
            add=lambda tags: client.tag_queue(QueueUrl=url, Tags=tags),
            remove=lambda keys: client.untag_queue(QueueUrl=url, TagKeys=keys),
        )
        return self._result(request, url)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(*QUEUE_GONE):
            _sqs(request).delete_queue(QueueUrl=request.existing_id)

    @staticmethod
    def _result(request: ResourceRequest, url: str) -> ResourceResult:
        answer = _sqs(request).get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = answer["Attributes"]["QueueArn"]
        return ResourceResult(url, {"Arn": arn, "QueueUrl": url, "QueueName": arn.rpartition(":")[2]})


@handles("AWS::SQS::QueuePolicy")
class QueuePolicy(ResourceHandler):
    """The policy of one or more queues. `Ref` is CloudFormation's own name for it."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._put(request, as_list(request.properties["Queues"]), document(request.properties["PolicyDocument"]))
        policy_id = request.generated_name()
        return ResourceResult(policy_id, {"Id": policy_id})

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._put(request, as_list(request.properties["Queues"]), document(request.properties["PolicyDocument"]))
        return ResourceResult(request.existing_id, {"Id": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(*QUEUE_GONE):
            self._put(request, as_list(request.properties["Queues"]), "")

    @staticmethod
    def _put(request: ResourceRequest, queues: list[str], policy: str) -> None:
        for url in queues:
            _sqs(request).set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
