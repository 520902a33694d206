"""memci decides what a language model sees of a conversation, and keeps the rest.

What it exports is loaded when it is first used, so that importing memci costs a host program next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memci.archive.checkpoint import Checkpoint, CheckpointKind
    from memci.archive.contents import ContentsPage
    from memci.archive.page_facts import PageFacts, PageState
    from memci.chapters.page import Entry, Page
    from memci.engine.async_engine import AsyncEngine
    from memci.engine.async_session import AsyncSession
    from memci.engine.calibrating import Calibration
    from memci.engine.config import Config
    from memci.engine.engine import Engine
    from memci.engine.explain import Explanation
    from memci.engine.monitor import (
        Eviction,
        Fold,
        FoldFailed,
        Notice,
        PageRebuilt,
        Prefetch,
        PrefetchFailed,
        Recall,
        SummaryFailed,
        Zone,
        ZoneChange,
    )
    from memci.engine.searching import Hit
    from memci.engine.session import Session
    from memci.engine.verify import Report
    from memci.engine.window import Window
    from memci.errors import (
        ArgumentError,
        AttpError,
        AttpSyntaxError,
        BudgetError,
        ConfigError,
        ConflictError,
        CorruptError,
        ErasureError,
        InvalidIdError,
        InvalidMessageError,
        LimitExceededError,
        LockedError,
        MemciError,
        ModelError,
        PageEvictedError,
        PageNotFoundError,
        PermissionDeniedError,
        SandboxError,
        SessionClosedError,
        StoreError,
        SummaryError,
        ToolArgumentError,
        ToolDefinitionError,
        ToolNotFoundError,
        UnavailableError,
    )
    from memci.messages.conversion.convert import Conversion, convert
    from memci.messages.rules.problem import Problem
    from memci.messages.validation import validate

__all__ = [
    "ArgumentError",
    "AsyncEngine",
    "AsyncSession",
    "AttpError",
    "AttpSyntaxError",
    "BudgetError",
    "Calibration",
    "Checkpoint",
    "CheckpointKind",
    "Config",
    "ConfigError",
    "ConflictError",
    "ContentsPage",
    "Conversion",
    "CorruptError",
    "Engine",
    "Entry",
    "ErasureError",
    "Eviction",
    "Explanation",
    "Fold",
    "FoldFailed",
    "Hit",
    "InvalidIdError",
    "InvalidMessageError",
    "LimitExceededError",
    "LockedError",
    "MemciError",
    "ModelError",
    "Notice",
    "Page",
    "PageEvictedError",
    "PageFacts",
    "PageNotFoundError",
    "PageRebuilt",
    "PageState",
    "PermissionDeniedError",
    "Prefetch",
    "PrefetchFailed",
    "Problem",
    "Recall",
    "Report",
    "SandboxError",
    "Session",
    "SessionClosedError",
    "StoreError",
    "SummaryError",
    "SummaryFailed",
    "ToolArgumentError",
    "ToolDefinitionError",
    "ToolNotFoundError",
    "UnavailableError",
    "Window",
    "Zone",
    "ZoneChange",
    "convert",
    "validate",
]

_MODULES = {
    "AsyncEngine": "memci.engine.async_engine",
    "AsyncSession": "memci.engine.async_session",
    "Calibration": "memci.engine.calibrating",
    "Checkpoint": "memci.archive.checkpoint",
    "CheckpointKind": "memci.archive.checkpoint",
    "Config": "memci.engine.config",
    "ContentsPage": "memci.archive.contents",
    "Conversion": "memci.messages.conversion.convert",
    "Engine": "memci.engine.engine",
    "Entry": "memci.chapters.page",
    "Eviction": "memci.engine.monitor",
    "Explanation": "memci.engine.explain",
    "Fold": "memci.engine.monitor",
    "FoldFailed": "memci.engine.monitor",
    "Hit": "memci.engine.searching",
    "Notice": "memci.engine.monitor",
    "Page": "memci.chapters.page",
    "PageFacts": "memci.archive.page_facts",
    "PageRebuilt": "memci.engine.monitor",
    "PageState": "memci.archive.page_facts",
    "Problem": "memci.messages.rules.problem",
    "Prefetch": "memci.engine.monitor",
    "PrefetchFailed": "memci.engine.monitor",
    "Recall": "memci.engine.monitor",
    "Report": "memci.engine.verify",
    "Session": "memci.engine.session",
    "SummaryFailed": "memci.engine.monitor",
    "Window": "memci.engine.window",
    "Zone": "memci.engine.monitor",
    "ZoneChange": "memci.engine.monitor",
    "convert": "memci.messages.conversion.convert",
    "validate": "memci.messages.validation",
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
