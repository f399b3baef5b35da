"""``hyperpod-cdk`` as users run it, with the placeholder of the chart that a rehearsal deploys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import open_aws
from hyperpod_cdk._cli.transitions import Deploying
from hyperpod_cdk.eks.dependencies import PLACEHOLDER_PARAMETER
from hyperpod_cdk.transitions.cdk import OwnCdk


@dataclass(frozen=True)
class WithPlaceholder:
    """The CDK CLI of a project, which only accepts parameters of stacks that it deploys."""

    cdk: OwnCdk

    def run(self, arguments: Sequence[str]) -> None:
        """Run it, with the chart's placeholder where the foundation stack is deployed."""
        selected = [each for each in arguments if each.endswith(("/*", "/foundation"))]
        names = {each.partition("/")[0] for each in selected}
        self.cdk.run(
            [*arguments, *(f"--parameters={name}-foundation:{PLACEHOLDER_PARAMETER}=rehearsal" for name in names)]
        )


def main() -> None:
    """Run the command of the process's arguments."""
    cli.app(
        prog_name="hyperpod-cdk",
        obj=Deploying(open=open_aws, cdk=lambda project: WithPlaceholder(OwnCdk(project=Path(project)))),
    )


if __name__ == "__main__":
    main()
