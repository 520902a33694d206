"""memci decides what a language model sees of a conversation, and keeps the rest.

What it exports is loaded when it is first used, so that importing memci costs a host program next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memci.archive.catalogue.checkpoint import Checkpoint, CheckpointKind
    from memci.archive.catalogue.page_facts import PageFacts, PageState
    from memci.archive.contents.contents_page import ContentsPage
    from memci.chapters.page import Entry, Page
    from memci.engine.aio.engine import AsyncEngine
    from memci.engine.aio.session import AsyncSession
    from memci.engine.commands.calibrating import Calibration
    from memci.engine.commands.explain import Explanation
    from memci.engine.commands.window import Window
    from memci.engine.core.monitor import (
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
    from memci.engine.engine import Engine
    from memci.engine.reading.searching import Hit
    from memci.engine.session import Session
    from memci.engine.settings.config import Config
    from memci.engine.upkeep.verify import Report
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
    from memci.messages.validation import Problem, validate

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
    "AsyncEngine": "memci.engine.aio.engine",
    "AsyncSession": "memci.engine.aio.session",
    "Calibration": "memci.engine.commands.calibrating",
    "Checkpoint": "memci.archive.catalogue.checkpoint",
    "CheckpointKind": "memci.archive.catalogue.checkpoint",
    "Config": "memci.engine.settings.config",
    "ContentsPage": "memci.archive.contents.contents_page",
    "Conversion": "memci.messages.conversion.convert",
    "Engine": "memci.engine.engine",
    "Entry": "memci.chapters.page",
    "Eviction": "memci.engine.core.monitor",
    "Explanation": "memci.engine.commands.explain",
    "Fold": "memci.engine.core.monitor",
    "FoldFailed": "memci.engine.core.monitor",
    "Hit": "memci.engine.reading.searching",
    "Notice": "memci.engine.core.monitor",
    "Page": "memci.chapters.page",
    "PageFacts": "memci.archive.catalogue.page_facts",
    "PageRebuilt": "memci.engine.core.monitor",
    "PageState": "memci.archive.catalogue.page_facts",
    "Problem": "memci.messages.validation",
    "Prefetch": "memci.engine.core.monitor",
    "PrefetchFailed": "memci.engine.core.monitor",
    "Recall": "memci.engine.core.monitor",
    "Report": "memci.engine.upkeep.verify",
    "Session": "memci.engine.session",
    "SummaryFailed": "memci.engine.core.monitor",
    "Window": "memci.engine.commands.window",
    "Zone": "memci.engine.core.monitor",
    "ZoneChange": "memci.engine.core.monitor",
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
