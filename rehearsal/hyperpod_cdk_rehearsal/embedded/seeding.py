"""Functions that create the existing resources of the account from the account file, before the first request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hyperpod_cdk_rehearsal.embedded.context import Context

SeedFunction = Callable[["Context"], None]
FunctionType = TypeVar("FunctionType", bound=SeedFunction)

_seeds: list[SeedFunction] = []


def seed(function: FunctionType) -> FunctionType:
    """Function decorator: ``function(context)`` fills the rehearsed region's account; it may use ``context.client``.

    Requests from outside wait until every seed has ended. A seed that has nothing to do must return at once: what it
    asks of moto makes every start slower.
    """
    _seeds.append(function)
    return function


def run_seeds(context: Context) -> None:
    """Run all seeds."""
    for function in _seeds:
        function(context)
