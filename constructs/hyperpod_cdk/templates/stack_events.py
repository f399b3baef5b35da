"""The words of stack events that CloudFormation always writes the same."""

from __future__ import annotations

import re
from typing import Final

CANCELLED: Final = re.compile(r"(Resource|Stack) \w+ cancelled\.?", re.IGNORECASE)
"""What CloudFormation writes of a resource that it stopped because another one had failed."""

REPLACES: Final = "requires the creation of a new physical resource"
"""How CloudFormation says that an update makes another one in a resource's place."""

HANDLER: Final = re.compile(r'Resource handler returned message: "(.*)" \(RequestToken: [^)]*\)', re.DOTALL)
"""What the handler of a type says."""

HANDLER_CODE: Final = re.compile(r"\(RequestToken: [^)]*?, HandlerErrorCode: (\w+)\)")
"""With which code (CloudFormation API, HandlerErrorCode)."""

CUSTOM: Final = re.compile(
    r"Received response status \[FAILED\] from custom resource\. Message returned: (.*?)(?: \(RequestId: [^)]*\))?",
    re.DOTALL,
)
"""What the function behind a custom resource says."""

SERVICE: Final = re.compile(r"\(Service: [^()]*\)")
"""What a type without a handler in the registry repeats of its service."""
