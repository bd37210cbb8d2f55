"""Run the command line: `verify-attention`, or `python -m verify_attention`."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit; Ctrl-C ends it cleanly also while it starts."""
    try:
        from verify_attention.cli import main as command  # noqa: PLC0415 - inside, for Ctrl-C

        command()
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
