"""memci decides what a language model sees of a conversation, and keeps the rest.

What it exports is loaded when it is first used, so that importing memci costs a host program next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memci.engine.config import Config
    from memci.engine.engine import Engine
    from memci.engine.monitor import Fold
    from memci.engine.session import Session
    from memci.engine.window import Window
    from memci.errors import (
        BudgetError,
        ConfigError,
        ConflictError,
        CorruptError,
        InvalidIdError,
        InvalidMessageError,
        MemciError,
        PageEvictedError,
        PageNotFoundError,
        PermissionDeniedError,
        SessionClosedError,
        StoreError,
        SummaryError,
        UnavailableError,
    )

__all__ = [
    "BudgetError",
    "Config",
    "ConfigError",
    "ConflictError",
    "CorruptError",
    "Engine",
    "Fold",
    "InvalidIdError",
    "InvalidMessageError",
    "MemciError",
    "PageEvictedError",
    "PageNotFoundError",
    "PermissionDeniedError",
    "Session",
    "SessionClosedError",
    "StoreError",
    "SummaryError",
    "UnavailableError",
    "Window",
]

_MODULES = {
    "Config": "memci.engine.config",
    "Engine": "memci.engine.engine",
    "Fold": "memci.engine.monitor",
    "Session": "memci.engine.session",
    "Window": "memci.engine.window",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        message = f"module 'memci' has no attribute {name!r}"
        raise AttributeError(message)
    value: object = getattr(import_module(_MODULES.get(name, "memci.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
