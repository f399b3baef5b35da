"""The module for answers of custom resources that CloudFormation adds to inline code with `import cfnresponse`.

Its interface is that of the CloudFormation user guide, "cfn-response module".
"""  # noqa: INP001 - a script's own directory, no package

from __future__ import annotations

import json
import urllib.request
from typing import Any

SUCCESS = "SUCCESS"
FAILED = "FAILED"


def send(  # noqa: PLR0917 - CloudFormation's own parameters
    event: dict[str, Any],
    context: Any,
    responseStatus: str,  # noqa: N803 - as above
    responseData: dict[str, Any] | None,  # noqa: N803 - as above
    physicalResourceId: str | None = None,  # noqa: N803 - as above
    noEcho: bool = False,  # noqa: FBT001, FBT002, N803 - as above
    reason: str | None = None,
) -> None:
    """Send the answer to the event's ResponseURL; a failure is printed, and the resource then waits in vain."""
    answer = {
        "Status": responseStatus,
        "Reason": reason or f"See the details in CloudWatch Log Stream: {context.log_stream_name}",
        "PhysicalResourceId": physicalResourceId or context.log_stream_name,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "NoEcho": noEcho,
        "Data": responseData or {},
    }
    request = urllib.request.Request(event["ResponseURL"], json.dumps(answer).encode(), method="PUT")  # noqa: S310
    try:
        with urllib.request.urlopen(request):  # noqa: S310 - the rehearsal's own address
            pass
    except OSError as error:
        print("send(..) failed executing the request:", error)
