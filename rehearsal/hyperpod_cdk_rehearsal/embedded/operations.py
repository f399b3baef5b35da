"""The registry of API operations that the embedded AWS, and not moto, implements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from hyperpod_cdk_rehearsal.embedded.context import Context

OperationFunction = Callable[["Context", dict[str, Any]], "dict[str, Any] | None"]
FunctionType = TypeVar("FunctionType", bound=OperationFunction)

_operations: dict[tuple[str, str], OperationFunction] = {}


class ServiceError(Exception):
    """An error response: AWS's code (an exception shape of the model, or a common error), message and HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


def service_error(error: ClientError) -> ServiceError:
    """A client's error as one of ours, code, message and status kept."""
    # the stubs declare every key as one that may be missing; parsed responses have them all
    response: Any = error.response
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return ServiceError(response["Error"]["Code"], response["Error"].get("Message", str(error)), status)


class PassToMoto(Exception):  # noqa: N818 - a decision, not an error
    """Raised by an operation to pass a request to moto."""


def operation(service: str, name: str) -> Callable[[FunctionType], FunctionType]:
    """Function decorator: `function(context, request)` answers this operation, named as in botocore's model.

    The request is parsed and checked against the model before the call; the returned dict is serialised by it.
    """

    def register(function: FunctionType) -> FunctionType:
        if (service, name) in _operations:
            raise ValueError(f"{service}:{name} has a function already: {_operations[service, name]}")
        _operations[service, name] = function
        return function

    return register


def operation_for(service: str, name: str) -> OperationFunction | None:
    """Return the function for this operation, or None if moto implements it."""
    return _operations.get((service, name))


def services_with_operations() -> frozenset[str]:
    """botocore names of the services that have at least one function here."""
    return frozenset(owner for owner, _ in _operations)
