"""`datapipe demo`: the main job on real input, from raw files to "what was in step 12?"."""

from datapipe.cli.demo.command import register

__all__ = ["register"]
