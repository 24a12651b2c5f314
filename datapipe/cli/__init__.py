"""The `datapipe` command: thin functions over library calls.

Owns arguments, terminals and exit codes; everything else is a call into the packages below. The
only place that prints.
"""

from datapipe.cli.main import main

__all__ = ["main"]
