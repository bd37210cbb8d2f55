"""Run the command line: `python -m verify_attention`."""

from verify_attention.cli import main

if __name__ == "__main__":
    main()
