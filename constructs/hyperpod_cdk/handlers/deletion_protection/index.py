"""Serve Custom::HyperPodDeletionProtection: protection that never outlives a failed creation.

A stack gets its termination protection from the CDK CLI before anything in it is made, so a creation that failed would
stay protected, and the CLI could not delete it before it creates it anew. The deletion of this resource, while its own
stack is rolled back, lifts that protection. EKS's own deletion protection is switched here too: as a property of the
cluster it would be on while the stack around it can still fail.

Standard library only at the top: a module that cannot be loaded is one more thing to be answered for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

# relative, since in Lambda the package above has another name
from ..answering import Answer, Clients, Put, Sleep, ToldError, Turn, client, error_code, put, serve  # noqa: TID252

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

POLL_SECONDS = 5.0
_GOING_ON = {"Pending", "InProgress"}
"""What EKS's states of an update are while it goes on; Queued is told of add-ons only."""
_UNBOUND = {"CREATING", "DELETING", "FAILED"}
"""EKS's states of a cluster that its deletion protection does not bind (user guide, deletion protection)."""
_BUSY = {"ResourceInUseException"}
_GONE = {"ResourceNotFoundException"}
_REFUSED = {"InvalidParameterException", "InvalidRequestException"}
_NO_CHANGES = "No changes needed"
"""How EKS begins its refusal of an update to what the cluster has already."""


class ProtectionError(ToldError):
    """Protection that could not be switched."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Handle one CloudFormation event and answer its response URL."""
    handle(event, context, clients=client, put=put)


def handle(event: Mapping[str, Any], context: Any, *, clients: Clients, put: Put, sleep: Sleep = time.sleep) -> None:
    """Handle one event with the given AWS clients, sender and sleep."""

    def work(turn: Turn) -> Answer:
        _Protection(turn).handle()
        return Answer()

    serve(event, context, work, clients=clients, put=put, sleep=sleep)


class _Protection:
    """One event."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._event = turn.event
        properties: Mapping[str, Any] = turn.event["ResourceProperties"]
        self._is_wanted = str(properties.get("Enabled", "true")) == "true"
        self._eks_cluster = str(properties.get("EksClusterName", ""))

    def handle(self) -> None:
        kind = self._turn.kind
        if kind == "Delete":
            self._delete()
        elif self._eks_cluster and kind == "Create":
            self._switch_eks(on=self._is_wanted, unless_rolled_back=True)
        elif self._eks_cluster:
            self._update()

    def _update(self) -> None:
        try:
            self._switch_eks(on=self._is_wanted)
        except Exception as error:
            # a rollback that is refused leaves a stuck stack behind, which is worse than the protection before
            if "ROLLBACK" not in self._stack_status():
                raise
            LOG.warning("the update is being taken back, so this is not told as a failure: %s", error)

    def _delete(self) -> None:
        status = self._stack_status()
        LOG.info("the stack is %s", status)
        if status.startswith("ROLLBACK_"):
            self._lift_stack()
        # UPDATE_...: the resource left the template, and the stack, with its protection, stays
        if self._eks_cluster and status.startswith("DELETE_"):
            self._switch_eks(on=False)
        elif self._eks_cluster and status.startswith("ROLLBACK_"):
            try:
                self._switch_eks(on=False)
            except Exception as error:  # noqa: BLE001 - any: see below
                # it stands in nobody's way: the next creation switches it on again
                LOG.warning("EKS's deletion protection of %s stays: %s", self._eks_cluster, error)

    def _lift_stack(self) -> None:
        stack = str(self._event["StackId"])
        try:
            self._turn.client("cloudformation").update_termination_protection(
                StackName=stack, EnableTerminationProtection=False
            )
        except Exception as error:
            name = stack.rpartition(":stack/")[2].partition("/")[0]
            raise ProtectionError(
                f"termination protection of the stack {name}, whose creation failed, could not be lifted: {error}; run "
                f"'aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name "
                f"{name}', then deploy again"
            ) from error

    def _stack_status(self) -> str:
        # by its id: of a stack that was deleted, and made again under its name, the old one is asked for
        described = self._turn.client("cloudformation").describe_stacks(StackName=self._event["StackId"])
        return str(described["Stacks"][0]["StackStatus"])

    def _switch_eks(self, *, on: bool, unless_rolled_back: bool = False) -> None:
        """Switch EKS's deletion protection and wait for it; a cluster that is gone or going needs none.

        With ``unless_rolled_back`` nothing is switched once the stack is being rolled back: CloudFormation does not
        tell a creation that it was cancelled, and what deletes it may have been here already.
        """
        eks, name = self._turn.client("eks"), self._eks_cluster
        while True:
            cluster = _cluster(eks, name)
            status = str((cluster or {}).get("status", "gone"))
            if not on and (cluster is None or status in _UNBOUND):
                return
            if cluster is None:
                raise ProtectionError(f"the EKS cluster {name} does not exist, so it cannot be protected")
            if status == "ACTIVE" and bool(cluster.get("deletionProtection")) == on:
                return
            if status == "ACTIVE":
                if unless_rolled_back and self._stack_status().startswith("ROLLBACK_"):
                    return
                update = _begun(eks, name, on=on)
                if update:
                    self._wait_for(eks, name, update)
                    return
            self._pause(f"the EKS cluster {name} is {status}")

    def _wait_for(self, eks: Any, name: str, update_id: str) -> None:
        while True:
            update = eks.describe_update(name=name, updateId=update_id)["update"]
            if update["status"] not in _GOING_ON:
                break
            self._pause(f"the update {update_id} of the EKS cluster {name} is {update['status']}")
        if update["status"] != "Successful":
            said = "; ".join(str(each.get("errorMessage", "")) for each in update.get("errors", [])) or "no reason told"
            raise ProtectionError(
                f"the deletion protection of the EKS cluster {name} was not switched: {update['status']}, {said}"
            )

    def _pause(self, what: str) -> None:
        if self._turn.seconds_left() < POLL_SECONDS:
            raise ProtectionError(f"{what}, so its deletion protection could not be switched in time; deploy again")
        self._turn.sleep(POLL_SECONDS)


def _cluster(eks: Any, name: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = eks.describe_cluster(name=name)["cluster"]
    except Exception as error:
        if error_code(error) in _GONE:
            return None
        raise
    return found


def _begun(eks: Any, name: str, *, on: bool) -> str | None:
    """Begin the update and give its id; None while another one goes on, or where another call has just switched it."""
    try:
        return str(eks.update_cluster_config(name=name, deletionProtection=on)["update"]["id"])
    except Exception as error:
        if error_code(error) in _BUSY or (error_code(error) in _REFUSED and _NO_CHANGES in str(error)):
            return None
        raise
