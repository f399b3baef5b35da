"""How the handlers of asynchronous resources wait: describe, look at the state, sleep, again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.resources._calls import error_code
from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError

PAUSE_SECONDS = 0.1
PATIENCE_SECONDS = 60.0
"""Far beyond what any transition of the embedded AWS takes, so that a mistake in one cannot hang a deployment."""

Answer = dict[str, Any]


def wait_while(
    context: Context, describe: Callable[[], Answer], state: Callable[[Answer], str], *passing: str
) -> Answer:
    """Describe until the state is none of the passing ones, and give the last answer."""
    for _ in beats(context):
        answer = describe()
        if state(answer) not in passing:
            return answer
    raise HandlerError("NotStabilized", f"Exceeded attempts to wait while the resource is {', '.join(passing)}")


def wait_until_gone(context: Context, describe: Callable[[], Any], *codes: str) -> None:
    """Describe until the service answers one of these error codes."""
    for _ in beats(context):
        try:
            if not describe():
                return
        except ClientError as error:
            if error_code(error) in codes:
                return
            raise
    raise HandlerError("NotStabilized", "Exceeded attempts to wait for the resource to be deleted")


def beats(context: Context) -> Iterator[float]:
    """Yield the seconds waited so far, again and again with a pause between, until patience ends."""
    waited = 0.0
    while waited <= PATIENCE_SECONDS:
        yield waited
        context.clock.sleep(PAUSE_SECONDS)
        waited += PAUSE_SECONDS
