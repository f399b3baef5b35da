"""AWS::Budgets::Budget."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import as_list, call, ignoring
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

GONE = "NotFoundException"


@handles("AWS::Budgets::Budget")
class BudgetHandler(ResourceHandler):
    """A budget with its subscribers. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Create the budget and its notifications."""
        name = request.properties["Budget"].get("BudgetName") or request.generated_name(max_length=100)
        return self._made(request, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Replace the values of the budget under its name; moto has no UpdateBudget."""
        self.delete(request)
        return self._made(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the budget with its notifications."""
        with ignoring(GONE):
            _budgets(request).delete_budget(AccountId=request.context.account, BudgetName=request.existing_id)

    @staticmethod
    def _made(request: ResourceRequest, name: str) -> ResourceResult:
        arguments = {
            "AccountId": request.context.account,
            "Budget": {**request.properties["Budget"], "BudgetName": name},
            "NotificationsWithSubscribers": as_list(request.properties.get("NotificationsWithSubscribers")),
        }
        call(_budgets(request), "create_budget", arguments)
        return ResourceResult(name)


def _budgets(request: ResourceRequest) -> Any:
    return request.context.client("budgets")
