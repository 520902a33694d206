"""memci decides what a language model sees of a conversation, and keeps the rest."""

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
