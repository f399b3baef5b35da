"""The texts of stack events that CloudFormation always writes in the same form."""

from __future__ import annotations

import re
from typing import Final

CANCELLED: Final = re.compile(r"(Resource|Stack) \w+ cancelled\.?", re.IGNORECASE)
"""CloudFormation's text for a resource that it stopped because another one had failed."""

REPLACES: Final = "requires the creation of a new physical resource"
"""CloudFormation's text for an update that replaces a resource."""

HANDLER: Final = re.compile(r'Resource handler returned message: "(.*)" \(RequestToken: [^)]*\)', re.DOTALL)
"""The message of a type's handler."""

HANDLER_CODE: Final = re.compile(r"\(RequestToken: [^)]*?, HandlerErrorCode: (\w+)\)")
"""Its error code (CloudFormation API, HandlerErrorCode)."""

CUSTOM: Final = re.compile(
    r"Received response status \[FAILED\] from custom resource\. Message returned: (.*?)(?: \(RequestId: [^)]*\))?",
    re.DOTALL,
)
"""The message of a custom resource's function."""

SERVICE: Final = re.compile(r"\(Service: [^()]*\)")
"""The message of the service, for a type without a handler in the registry."""
