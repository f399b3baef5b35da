"""`python -m hyperpod_cdk_rehearsal serve --account ... --region ...`: the embedded AWS, for any templates."""

from __future__ import annotations

import sys

from hyperpod_cdk_rehearsal.embedded.serve import main as serve


def main(arguments: list[str]) -> None:
    """Run the command in ``arguments``; the only one is ``serve``, and any other exits with code 2."""
    if arguments[:1] != ["serve"]:
        print("usage: python -m hyperpod_cdk_rehearsal serve --account ID --region REGION [--help]", file=sys.stderr)
        sys.exit(2)
    serve(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
