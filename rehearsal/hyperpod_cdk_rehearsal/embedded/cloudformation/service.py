"""The operations on stacks behind the API: which operation is allowed, and running it in the background."""

from __future__ import annotations

import dataclasses
import logging
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlparse

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.cloudformation import graph
from hyperpod_cdk_rehearsal.embedded.cloudformation.assertions import check_rules
from hyperpod_cdk_rehearsal.embedded.cloudformation.deletion import delete_stack
from hyperpod_cdk_rehearsal.embedded.cloudformation.deployment import Deployment, DeploymentOptions
from hyperpod_cdk_rehearsal.embedded.cloudformation.importing import run_import
from hyperpod_cdk_rehearsal.embedded.cloudformation.parameters import ParameterValue, resolve_parameters
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import Provisioner
from hyperpod_cdk_rehearsal.embedded.cloudformation.references import check_references, references
from hyperpod_cdk_rehearsal.embedded.cloudformation.rollback import empty_stack, restore_stack, settle_failure
from hyperpod_cdk_rehearsal.embedded.cloudformation.scope import (
    imported_names,
    included_resources,
    resolver_of,
    ssm_parameter,
)
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import ChangeSet, Settings, Stack, stacks_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError
from hyperpod_cdk_rehearsal.embedded.cloudformation.workspace import Workspace
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, service_error

UPDATABLE = frozenset(
    {
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
        "CREATE_FAILED",
        "UPDATE_FAILED",
        "IMPORT_COMPLETE",
        "IMPORT_ROLLBACK_COMPLETE",
    }
)
"""Stack statuses that allow an update; after a failed one only without rollback, which the CLI asks for itself."""

_STACK_NAME = "[a-zA-Z][-a-zA-Z0-9]*"
_LONGEST_NAME = 128
_MOST_BODY_BYTES = 51_200
_MOST_STORED_BYTES = 1_000_000
"""The limit of a template in S3 (CloudFormation user guide, "CloudFormation quotas")."""
_PAUSED = frozenset({"CREATE_FAILED", "UPDATE_FAILED"})
_NOT_FINAL = (
    "This stack is currently in a non-terminal [{}] state. To update the stack from this state, please use the "
    "disable-rollback parameter with update-stack API. To rollback to the last known good state, use the "
    "rollback-stack API"
)

_NAMED_IAM = {
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
}
_NESTED_STACK = "AWS::CloudFormation::Stack"

_log = logging.getLogger(__name__)


class StackService:
    """The stacks of one region and what can be done with them."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.stacks = stacks_of(context)
        self.provisioner = Provisioner(context)

    def workspace(self, stack: Stack) -> Workspace:
        """The stack with everything an operation on it needs."""
        return Workspace(self.context, stack, self.provisioner)

    def settings(self, stack: Stack, request: Mapping[str, Any]) -> Settings:
        """Template, parameters and tags of a request, fully checked; raises ServiceError as AWS words it."""
        deployed = stack.settings
        if request.get("UsePreviousTemplate") and deployed is not None:
            template = deployed.template
        else:
            template = Template.parse(self.template_body(request))
        self.check_template(template)
        previous: Mapping[str, ParameterValue] = deployed.parameters if deployed else {}
        parameters = resolve_parameters(
            template, request.get("Parameters", []), previous, lambda name: ssm_parameter(self.context, name)
        )
        tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]} if "Tags" in request else None
        settings = Settings(
            template=template,
            parameters=parameters,
            tags=tags if tags is not None else dict(deployed.tags) if deployed else {},
            capabilities=list(request.get("Capabilities", [])),
            # as with tags, omitted values are kept (CreateChangeSet, NotificationARNs)
            notification_arns=list(request.get("NotificationARNs", deployed.notification_arns if deployed else [])),
            role_arn=request.get("RoleARN") or (deployed.role_arn if deployed else None),
            rollback_configuration=dict(request.get("RollbackConfiguration", {})),
        )
        check_capabilities(settings)
        self._check_values(stack, settings)
        return settings

    def template_body(self, request: Mapping[str, Any]) -> str:
        """TemplateBody, or the object TemplateURL names in S3 (of this embedded AWS, whatever the URL's form)."""
        if request.get("TemplateBody"):
            if request.get("TemplateURL"):
                # UNSURE: AWS's words; its documentation says that both cannot be used
                raise TemplateError("Only one of TemplateBody or TemplateURL can be specified.")
            body = str(request["TemplateBody"])
            if len(body.encode()) > _MOST_BODY_BYTES:
                raise _out_of_bounds("templateBody", f"{body[:256]}...", _at_most(_MOST_BODY_BYTES))
            return body
        url = request.get("TemplateURL")
        if not url:
            raise TemplateError("Either Template URL or Template Body must be specified.")
        bucket, key = template_location(str(url))
        try:
            found = self.context.client("s3").get_object(Bucket=bucket, Key=key)
        except ClientError as error:
            raise TemplateError(f"S3 error: {service_error(error).message}") from error
        stored: bytes = found["Body"].read()
        if len(stored) > _MOST_STORED_BYTES:
            raise TemplateError(f"Template may not exceed {_MOST_STORED_BYTES} bytes in size.")
        return stored.decode()

    @staticmethod
    def check_new_name(name: str) -> None:
        """Raise TemplateError for a name that no stack can have, as AWS words it."""
        if not re.fullmatch(_STACK_NAME, name):
            wrong = f"Member must satisfy regular expression pattern: {_STACK_NAME}"
        elif len(name) > _LONGEST_NAME:
            wrong = _at_most(_LONGEST_NAME)
        else:
            return
        raise _out_of_bounds("stackName", name, wrong)

    def check_template(self, template: Template) -> None:
        """Raise TemplateError for errors of a template in this Region, regardless of its parameters."""
        unknown = sorted(
            {d.resource_type for d in template.resources.values() if not self.provisioner.is_known(d.resource_type)}
        )
        if unknown:
            raise TemplateError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")
        if any(d.resource_type == _NESTED_STACK for d in template.resources.values()):
            raise TemplateError(f"the rehearsal does not deploy nested stacks ({_NESTED_STACK})")
        check_references(template)
        for value in [*(d.properties for d in template.resources.values()), template.outputs]:
            self._check_attributes(template, value)
        graph.check_acyclic(template)

    def deploy(self, stack: Stack, settings: Settings, *, options: DeploymentOptions, token: str | None) -> None:
        """Create or update the stack in the background."""
        creating = stack.status == "REVIEW_IN_PROGRESS"
        if not creating:
            self.require_updatable(stack)
            if stack.status in _PAUSED and not options.disable_rollback:
                raise TemplateError(_NOT_FINAL.format(stack.status))
        stack.disable_rollback = options.disable_rollback
        if creating:
            stack.begin("CREATE_STACK", "CREATE_IN_PROGRESS", token)
        else:
            stack.begin("UPDATE_STACK", "UPDATE_IN_PROGRESS", token)
        deployment = Deployment(self.workspace(stack), settings, creating=creating, options=options)

        def run() -> None:
            reason = deployment.run()
            if reason is not None:
                settle_failure(deployment, reason)

        self._in_background(stack, run, "CREATE_FAILED" if creating else "UPDATE_FAILED")

    def take_in(self, stack: Stack, change_set: ChangeSet, *, token: str | None) -> None:
        """Import what a change set names, in the background."""
        if stack.status != "REVIEW_IN_PROGRESS":
            self.require_updatable(stack)
        stack.begin("IMPORT", "IMPORT_IN_PROGRESS", token)
        workspace, settings = self.workspace(stack), change_set.settings
        self._in_background(stack, lambda: run_import(workspace, settings, change_set.wanted), "IMPORT_ROLLBACK_FAILED")

    def require_updatable(self, stack: Stack) -> None:
        """Raise TemplateError if the stack's status does not allow an update."""
        if stack.status not in UPDATABLE:
            raise TemplateError(f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated.")

    def delete(self, stack: Stack, retain: Collection[str], token: str | None) -> None:
        """Delete the stack in the background."""
        if stack.status in ("DELETE_COMPLETE", "DELETE_IN_PROGRESS"):
            return
        if stack.termination_protection:
            raise TemplateError(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
        if retain and stack.status != "DELETE_FAILED":
            raise TemplateError(
                f"Invalid operation on stack [{stack.stack_id}]. Specify resources to retain only when the stack is "
                "in the DELETE_FAILED state"
            )
        try:
            self.stacks.check_exports(stack, {})
        except TemplateError as error:
            # the call is accepted, and the stack is unchanged: an event contains the reason (aws-cdk issue 604)
            stack.set_status(stack.status, error.message)
            return
        stack.begin("DELETE_STACK", "DELETE_IN_PROGRESS", token)
        self._in_background(stack, lambda: delete_stack(self.workspace(stack), retain), "DELETE_FAILED")

    def roll_back(self, stack: Stack, token: str | None, *, retain_except_on_create: bool = False) -> None:
        """RollbackStack: roll back a deployment that failed with rollback disabled."""
        deployment: Deployment | None = stack.paused
        if deployment is None or stack.status not in ("CREATE_FAILED", "UPDATE_FAILED"):
            raise TemplateError(f"Stack:{stack.stack_id} is in {stack.status} state and can not be rolled back.")
        # an update of a failed creation has no last known stable state: everything is deleted (API reference)
        creating = stack.status == "CREATE_FAILED" or deployment.journal.settings is None
        deployment.options = dataclasses.replace(deployment.options, retain_except_on_create=retain_except_on_create)
        stack.begin("ROLLBACK", "ROLLBACK_IN_PROGRESS" if creating else "UPDATE_ROLLBACK_IN_PROGRESS", token)
        undo = empty_stack if creating else restore_stack
        failed_status = "ROLLBACK_FAILED" if creating else "UPDATE_ROLLBACK_FAILED"
        self._in_background(stack, lambda: undo(deployment), failed_status)

    def continue_rollback(
        self, stack: Stack, skip: Collection[str], token: str | None, *, is_forced: bool = False
    ) -> None:
        """ContinueUpdateRollback: retry what a rollback could not restore, except `skip` or, if forced, all of it.

        Only what failed because of the rollback can be skipped, and one of both be given (API reference,
        ResourcesToSkip and ForceRollback); the words of these two refusals are not AWS's, which publishes none.
        """
        deployment: Deployment | None = stack.paused
        if deployment is None or stack.status != "UPDATE_ROLLBACK_FAILED":
            raise TemplateError(
                f"Stack:{stack.stack_id} is in {stack.status} state and can not continue update rollback."
            )
        unrestored = deployment.journal.unrestored
        if skip and is_forced:
            raise TemplateError("ForceRollback and ResourcesToSkip are mutually exclusive")
        if others := sorted(set(skip) - set(unrestored)):
            raise TemplateError(
                f"ResourcesToSkip can only have resources that are in UPDATE_FAILED because a rollback failed, got "
                f"[{', '.join(others)}]"
            )
        if is_forced:
            skip = unrestored
        stack.begin("CONTINUE_ROLLBACK", "UPDATE_ROLLBACK_IN_PROGRESS", token)
        self._in_background(stack, lambda: restore_stack(deployment, skip), "UPDATE_ROLLBACK_FAILED")

    def _check_attributes(self, template: Template, value: Any) -> None:
        for found in references(value):
            definition = template.resources.get(found.name) if found.kind == "attribute" and found.attribute else None
            if definition and not self.provisioner.supports_attribute(definition.resource_type, found.attribute):
                raise TemplateError(
                    f"Template error: resource {found.name} does not support attribute type {found.attribute} "
                    "in Fn::GetAtt"
                )

    def _check_values(self, stack: Stack, settings: Settings) -> None:
        """Rules, conditions and imports: what depends on the parameters but on no resource."""
        resolver = resolver_of(self.context, stack, settings)
        check_rules(resolver)
        included = included_resources(settings.template, resolver)
        imported_names(settings.template, resolver, included)
        changed = sorted(
            name
            for name in included
            if name in stack.resources
            and stack.resources[name].exists
            and stack.resources[name].resource_type != settings.template.resources[name].resource_type
        )
        if changed:
            raise TemplateError(
                "Update of resource type is not permitted. The new template modifies resource type of the following "
                f"resources: [{', '.join(changed)}]"
            )

    def _in_background(self, stack: Stack, run: Callable[[], None], failed_status: str) -> None:
        def guarded() -> None:
            try:
                run()
            except Exception as error:  # noqa: BLE001 - a bug fails one stack, not the server
                _log.exception("operation on %s failed", stack.name)
                stack.set_status(failed_status, f"Internal Failure: {type(error).__name__}: {error}")

        threading.Thread(target=guarded, name=f"stack-{stack.name}", daemon=True).start()


class _Services:
    """The StackService of a Region."""

    def __init__(self) -> None:
        self.service: StackService | None = None


def service_of(context: Context) -> StackService:
    """Return the stack service of a context's Region, which is created at the first request."""
    holder = context.state.store(_Services)
    with context.state.lock:
        if holder.service is None:
            holder.service = StackService(context)
        return holder.service


def check_capabilities(settings: Settings) -> None:
    """Raise InsufficientCapabilitiesException if the template creates IAM resources without acknowledgment."""
    needed = required_capabilities(settings.template)
    given = set(settings.capabilities)
    # acknowledging named IAM resources covers unnamed ones
    if needed and "CAPABILITY_NAMED_IAM" not in given and not set(needed) <= given:
        raise ServiceError("InsufficientCapabilitiesException", f"Requires capabilities : [{', '.join(needed)}]")


def required_capabilities(template: Template) -> list[str]:
    """The capability a template needs acknowledged, as a list of none or one."""
    iam = [d for d in template.resources.values() if d.resource_type.startswith("AWS::IAM::")]
    if any(_NAMED_IAM.get(d.resource_type, "") in d.properties for d in iam):
        return ["CAPABILITY_NAMED_IAM"]
    return ["CAPABILITY_IAM"] if iam else []


def _at_most(length: int) -> str:
    return f"Member must have length less than or equal to {length}"


def _out_of_bounds(name: str, shown: str, wrong: str) -> TemplateError:
    """What CloudFormation says of a value of a request that its API does not allow."""
    return TemplateError(
        f"1 validation error detected: Value '{shown}' at '{name}' failed to satisfy constraint: {wrong}"
    )


def template_location(url: str) -> tuple[str, str]:
    """Bucket and key of a TemplateURL: path style (any host), or virtual-hosted at an S3 host name."""
    parsed = urlparse(url)
    host, path = parsed.hostname or "", unquote(parsed.path).lstrip("/")
    bucket, dot, rest = host.partition(".s3")
    if dot and rest[:1] in (".", "-"):
        return bucket, path
    bucket, _, key = path.partition("/")
    if not bucket or not key:
        raise TemplateError("TemplateURL must reference a valid S3 object to which you have access.")
    return bucket, key


def described_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as the API lists them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def described_parameters(parameters: Mapping[str, ParameterValue]) -> list[dict[str, str]]:
    """Parameters as the API lists them."""
    return [parameter.described() for parameter in parameters.values()]


def paged(items: Sequence[Any], token: str | None, size: int) -> tuple[list[Any], str | None]:
    """One page of a list and the next page's token."""
    start = int(token) if token and token.isdigit() else 0
    end = start + size
    return list(items[start:end]), str(end) if end < len(items) else None
