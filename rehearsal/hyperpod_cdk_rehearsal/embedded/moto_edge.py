"""Corrections of moto before it serves: differences from AWS that would stop the CDK CLI, and slow code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_lock, moto_state
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published.policies import evaluate, listed


def patch_moto() -> None:
    """Apply every correction; once per process, after MOTO_ACCOUNT_ID is set."""
    _read_models_once()
    _evaluate_bucket_policies_without_conditions()
    _let_logging_precede_its_policy()
    _list_services_once()
    _list_methods_once()
    _make_no_rsa_keys_in_vain()
    _look_tags_up()
    _forget_what_is_deleted()
    _read_code_once()
    _notify_topics_of_alarms()
    _update_metric_filters()
    _keep_how_functions_log()
    _tag_alarms_and_dashboards()


def empty_moto() -> None:
    """Delete all of moto's state."""
    from moto.moto_api._internal.models import moto_api_backend  # noqa: PLC0415 - moto loads after the account is set

    with moto_lock:
        moto_api_backend.reset()


def _let_logging_precede_its_policy() -> None:
    """moto wants the target's bucket policy when access logging is switched on; S3 looks only when it delivers.

    CDK writes a policy that names the logging bucket, so it can never come first.
    """
    from moto.s3.models import FakeBucket  # noqa: PLC0415 - moto loads after the account is set

    setattr(FakeBucket, "_log_permissions_enabled_policy", staticmethod(lambda **_: True))  # noqa: B010 - a patch


def _list_services_once() -> None:
    """moto looks through the directories of its package at every request, to see which service is meant."""
    from moto import backends  # noqa: PLC0415 - moto loads after the account is set

    services = frozenset(backends.list_of_moto_modules())
    setattr(backends, "list_of_moto_modules", lambda: services)  # noqa: B010 - a patch


def _list_methods_once() -> None:
    """moto looks through all members of a service's class at every request, to see which method is meant."""
    from moto.core import responses, utils  # noqa: PLC0415 - moto loads after the account is set

    setattr(responses, "method_names_from_class", cache(utils.method_names_from_class))  # noqa: B010 - a patch


def _read_models_once() -> None:
    """moto makes a loader for each model, and each session one of its own: every one lists all services anew."""
    from botocore import session  # noqa: PLC0415 - as below
    from moto.core import utils  # noqa: PLC0415 - moto loads after the account is set

    # two, since moto's mends the models that it loads
    for module in (session, utils):
        setattr(module, "create_loader", cache(vars(module)["create_loader"]))  # noqa: B010 - a patch


def _look_tags_up() -> None:
    """moto reads the tags of every EC2 resource that there ever was for those of one, several times a request."""
    from moto.ec2.models.core import TaggedEC2Resource  # noqa: PLC0415 - moto loads after the account is set
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix  # noqa: PLC0415

    def get_tags(resource: Any) -> list[dict[str, str]]:
        told = {"resource_id": resource.id, "resource_type": EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "")}
        tags = resource.ec2_backend.tags.get(resource.id, {}) if resource.id else {}
        return [{**told, "key": key, "value": value} for key, value in tags.items()]

    setattr(TaggedEC2Resource, "get_tags", get_tags)  # noqa: B010 - a patch


def _forget_what_is_deleted() -> None:
    """moto keeps every object of every model for its own dashboard: deleted functions with all their code."""
    from moto.core.common_models import BaseModel  # noqa: PLC0415 - moto loads after the account is set

    def new(cls: Any, *_: Any, **__: Any) -> Any:
        return super(BaseModel, cls).__new__(cls)

    setattr(BaseModel, "__new__", staticmethod(new))  # noqa: B010 - a patch


def _read_code_once() -> None:
    """moto copies an archive out of S3, and takes its digest, for each function and layer; kubectl's has 70 MB."""
    from moto.awslambda import models  # noqa: PLC0415 - moto loads after the account is set

    read = models._s3_content  # noqa: SLF001 - no public one

    def content(key: Any) -> Any:
        if "code" not in vars(key):
            key.code = read(key)
        return key.code

    setattr(models, "_s3_content", content)  # noqa: B010 - a patch


def _make_no_rsa_keys_in_vain() -> None:
    """moto makes an RSA key pair for every symmetric KMS key too, which takes longer than all the rest of the request.

    Nothing signs with it: a key pair on a curve, made in no time, stands there instead.
    """
    from moto.kms import models, utils  # noqa: PLC0415 - moto loads after the account is set

    pairs = frozenset(utils.KeySpec.rsa_key_specs() + utils.KeySpec.ecc_key_specs())

    def generate_private_key(key_spec: str) -> Any:
        return utils.generate_private_key(key_spec if key_spec in pairs else utils.KeySpec.ECC_NIST_P256.value)

    setattr(models, "generate_private_key", generate_private_key)  # noqa: B010 - a patch


def _evaluate_bucket_policies_without_conditions() -> None:
    """moto ignores Condition, so that CDK's deny-unless-TLS statement denies everything.

    A statement with a condition is left out of the evaluation: on loopback none of the usual ones can hold.
    """
    from moto.iam.access_control import IAMPolicy, PermissionResult  # noqa: PLC0415 - moto loads after the account is set
    from moto.s3.models import FakeBucket  # noqa: PLC0415 - as above

    def get_permission(bucket: Any, action: str, resource: str) -> Any:
        if bucket.policy is None:
            return PermissionResult.NEUTRAL
        document = json.loads(bucket.policy)
        statements = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
        unconditional = [statement for statement in statements if not statement.get("Condition")]
        policy = IAMPolicy(json.dumps({**document, "Statement": unconditional}))
        return policy.is_action_permitted(action, resource)

    setattr(FakeBucket, "get_permission", get_permission)  # noqa: B010 - a patch, which mypy refuses as an assignment


@cache
def _update_metric_filters() -> None:
    """moto keeps a filter beside the one of its name, which PutMetricFilter updates (CloudWatch Logs API reference)."""
    from moto.logs.metric_filters import MetricFilters  # noqa: PLC0415 - moto loads after the account is set

    add = MetricFilters.add_filter

    def add_filter(filters: Any, filter_name: str, filter_pattern: str, log_group_name: str, *more: Any) -> None:
        same = (filter_name, log_group_name)
        others = [each for each in filters.metric_filters if (each["filterName"], each["logGroupName"]) != same]
        filters.metric_filters = others
        add(filters, filter_name, filter_pattern, log_group_name, *more)

    setattr(MetricFilters, "add_filter", add_filter)  # noqa: B010 - a patch


@cache
def _keep_how_functions_log() -> None:
    """moto forgets LoggingConfig, which GetFunction tells with what Lambda fills in (Lambda API, LoggingConfig)."""
    from moto.awslambda.models import LambdaFunction  # noqa: PLC0415 - moto loads after the account is set

    begin, update, tell = LambdaFunction.__init__, LambdaFunction.update_configuration, LambdaFunction.get_configuration

    def init(function: Any, account_id: str, spec: dict[str, Any], *more: Any, **named: Any) -> None:
        begin(function, account_id, spec, *more, **named)
        function.logging = spec.get("LoggingConfig") or {}

    def update_configuration(function: Any, config_updates: dict[str, Any]) -> Any:
        function.logging = {**function.logging, **(config_updates.get("LoggingConfig") or {})}
        return update(function, config_updates)

    def get_configuration(function: Any, on_create: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - as moto's
        told = {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{function.function_name}", **function.logging}
        if told["LogFormat"] == "JSON":
            told = {"ApplicationLogLevel": "INFO", "SystemLogLevel": "INFO", **told}
        return {**tell(function, on_create), "LoggingConfig": told}

    patches = {"__init__": init, "update_configuration": update_configuration, "get_configuration": get_configuration}
    for name, patch in patches.items():
        setattr(LambdaFunction, name, patch)


@cache
def _tag_alarms_and_dashboards() -> None:
    """moto has tags of alarms alone, and knows no alarm that never had one.

    CloudWatch has tags of alarms, dashboards and others, and refuses what does not exist (CloudWatch API, TagResource,
    UntagResource and ListTagsForResource).
    """
    from moto.cloudwatch.models import CloudWatchBackend  # noqa: PLC0415 - moto loads after the account is set

    def patched(name: str) -> Any:
        original = getattr(CloudWatchBackend, name)

        def of_what_exists(backend: Any, arn: str, *more: Any) -> Any:
            alarms = (each.alarm_arn for each in backend.alarms.values())
            dashboards = (each.arn for each in backend.dashboards.values())
            if arn in {*alarms, *dashboards}:
                backend.tagger.tag_resource(arn, [])
                if name == "tag_resource":
                    return backend.tagger.tag_resource(arn, backend.tagger.convert_dict_to_tags_input(*more))
            return original(backend, arn, *more)

        return of_what_exists

    for name in ("tag_resource", "untag_resource", "list_tags_for_resource"):
        setattr(CloudWatchBackend, name, patched(name))


@cache
def _notify_topics_of_alarms() -> None:
    """moto keeps the state that an alarm is set to, and tells nobody.

    Where it differs from the one before, the actions of the new one are invoked (CloudWatch API, SetAlarmState). A
    topic gets what its policy lets CloudWatch publish (SNS developer guide, "Allow CloudWatch alarms in account to
    publish to an SNS topic in a different account"); other actions are not played.
    """
    from moto.cloudwatch.models import CloudWatchBackend  # noqa: PLC0415 - moto loads after the account is set

    set_state = CloudWatchBackend.set_alarm_state
    of_state = {"ALARM": "alarm_actions", "OK": "ok_actions", "INSUFFICIENT_DATA": "insufficient_data_actions"}

    def set_alarm_state(backend: Any, name: str, reason: str, reason_data: str, state: str) -> None:
        alarm = backend.alarms.get(name)
        before = alarm.state_value if alarm else state
        set_state(backend, name, reason, reason_data, state)
        if state == before or not alarm.actions_enabled:
            return
        told = {"AlarmName": name, "AlarmDescription": alarm.description, "AlarmArn": alarm.alarm_arn}
        told |= {"AWSAccountId": backend.account_id, "Region": backend.region_name}
        told |= {"OldStateValue": before, "NewStateValue": state, "NewStateReason": reason}
        subject = f'{state}: "{name}" in {backend.region_name}'[:100]
        with moto_state("sns", backend.account_id, backend.region_name) as sns:
            for arn in getattr(alarm, of_state[state]):
                if arn in sns.topics and _lets_alarm_publish(sns.topics[arn], told):
                    sns.publish(json.dumps(told), arn, subject=subject)

    setattr(CloudWatchBackend, "set_alarm_state", set_alarm_state)  # noqa: B010 - a patch


def _lets_alarm_publish(topic: Any, told: Mapping[str, str]) -> bool:
    account = told["AWSAccountId"]
    keys = {"aws:sourcearn": told["AlarmArn"], "aws:sourceaccount": account, "aws:securetransport": "true"}
    # what the policy that SNS makes itself asks for
    keys["aws:sourceowner"] = account
    statements = [each for each in listed(json.loads(topic.policy)["Statement"]) if _names_alarms(each["Principal"])]
    return evaluate(statements, "sns:Publish", topic.arn, keys) == "allowed"


def _names_alarms(principal: Any) -> bool:
    if not isinstance(principal, Mapping):
        return bool(principal == "*")
    return "cloudwatch.amazonaws.com" in listed(principal.get("Service")) or "*" in listed(principal.get("AWS"))


@operation("cloudtrail", "LookupEvents")
def lookup_events(_context: Context, _request: dict[str, Any]) -> NoReturn:
    """Refused: no trail is kept. The CLI asks after a failed deployment and goes on without."""
    raise ServiceError("UnsupportedOperationException", "the embedded AWS keeps no trail of events")
