"""Where the command starts: ``hyperpod-cdk`` and ``python -m hyperpod_cdk``."""

from __future__ import annotations

import sys

_INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the signal's number, as in shells."""


def main() -> None:
    """Run the command line; Ctrl-C ends it with one word and exit code 130, also before its modules are imported."""
    try:
        from hyperpod_cdk import cli  # noqa: PLC0415 - imports take long enough for a Ctrl-C

        cli.main()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
