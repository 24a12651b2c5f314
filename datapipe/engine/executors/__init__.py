"""Where units run: processes of this machine now, a cluster later. No unit knows which."""

from datapipe.engine.executors.local import LocalExecutor
from datapipe.engine.executors.protocol import Executor

__all__ = ["Executor", "LocalExecutor"]
