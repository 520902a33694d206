"""memci decides what a language model sees of a conversation, and keeps the rest.

What it exports is loaded when it is first used, so that importing memci costs a host program next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memci.archive.catalogue.page_facts import Checkpoint, CheckpointKind, PageFacts, PageState
    from memci.archive.contents.contents_page import ContentsPage
    from memci.archive.contents.tree import Permission, Segment
    from memci.archive.rules.listing import Rule
    from memci.archive.stores.contract import Usage
    from memci.chapters.page import Entry, Page
    from memci.engine.aio.engine import AsyncEngine, AsyncSession
    from memci.engine.commands.calibrating import Calibration
    from memci.engine.commands.keeping import Bookmark
    from memci.engine.commands.window import Window
    from memci.engine.core.monitor import (
        Appended,
        CacheMiss,
        Conflict,
        EngineNotice,
        Eviction,
        Fade,
        Fold,
        FoldFailed,
        Notice,
        PageRebuilt,
        Prefetch,
        PrefetchFailed,
        Recall,
        SummaryFailed,
        WindowMade,
        Zone,
        ZoneChange,
    )
    from memci.engine.engine import Engine
    from memci.engine.history.state import Mount
    from memci.engine.hosting.listing import DeletionReceipt, SessionFacts, TenantReceipt
    from memci.engine.hosting.recap import Recap
    from memci.engine.hosting.status import Stats, Status
    from memci.engine.hosting.streaming import Stream
    from memci.engine.hosting.syncing import Synced
    from memci.engine.hosting.transcript import Said, Variant
    from memci.engine.reading.caching import CacheReport
    from memci.engine.reading.explain import Explanation
    from memci.engine.reading.searching import Hit
    from memci.engine.session import Session
    from memci.engine.settings.config import Config
    from memci.engine.upkeep.verify import Report
    from memci.engine.view.rule_facts import RuleFacts, RuleState
    from memci.errors import (
        ArgumentError,
        AttpError,
        AttpSyntaxError,
        BudgetError,
        ConfigError,
        ConflictError,
        CorruptError,
        EncryptionError,
        ErasureError,
        InvalidIdError,
        InvalidMessageError,
        LimitExceededError,
        LockedError,
        MemciError,
        ModelError,
        ModelTimeoutError,
        PageEvictedError,
        PageNotFoundError,
        PermissionDeniedError,
        QuotaError,
        SandboxError,
        SessionClosedError,
        StoreError,
        SummaryError,
        SummaryTimeoutError,
        ToolArgumentError,
        ToolDefinitionError,
        ToolNotFoundError,
        UnavailableError,
    )
    from memci.messages.conversion import Conversion, convert
    from memci.messages.validation import Problem, validate

__all__ = [
    "Appended",
    "ArgumentError",
    "AsyncEngine",
    "AsyncSession",
    "AttpError",
    "AttpSyntaxError",
    "Bookmark",
    "BudgetError",
    "CacheMiss",
    "CacheReport",
    "Calibration",
    "Checkpoint",
    "CheckpointKind",
    "Config",
    "ConfigError",
    "Conflict",
    "ConflictError",
    "ContentsPage",
    "Conversion",
    "CorruptError",
    "DeletionReceipt",
    "EncryptionError",
    "Engine",
    "EngineNotice",
    "Entry",
    "ErasureError",
    "Eviction",
    "Explanation",
    "Fade",
    "Fold",
    "FoldFailed",
    "Hit",
    "InvalidIdError",
    "InvalidMessageError",
    "LimitExceededError",
    "LockedError",
    "MemciError",
    "ModelError",
    "ModelTimeoutError",
    "Mount",
    "Notice",
    "Page",
    "PageEvictedError",
    "PageFacts",
    "PageNotFoundError",
    "PageRebuilt",
    "PageState",
    "Permission",
    "PermissionDeniedError",
    "Prefetch",
    "PrefetchFailed",
    "Problem",
    "QuotaError",
    "Recall",
    "Recap",
    "Report",
    "Rule",
    "RuleFacts",
    "RuleState",
    "Said",
    "SandboxError",
    "Segment",
    "Session",
    "SessionClosedError",
    "SessionFacts",
    "Stats",
    "Status",
    "StoreError",
    "Stream",
    "SummaryError",
    "SummaryFailed",
    "SummaryTimeoutError",
    "Synced",
    "TenantReceipt",
    "ToolArgumentError",
    "ToolDefinitionError",
    "ToolNotFoundError",
    "UnavailableError",
    "Usage",
    "Variant",
    "Window",
    "WindowMade",
    "Zone",
    "ZoneChange",
    "convert",
    "validate",
]

_MODULES = {
    "memci.archive.catalogue.page_facts": ("Checkpoint", "CheckpointKind", "PageFacts", "PageState"),
    "memci.archive.contents.contents_page": ("ContentsPage",),
    "memci.archive.contents.tree": ("Permission", "Segment"),
    "memci.archive.stores.contract": ("Usage",),
    "memci.chapters.page": ("Entry", "Page"),
    "memci.engine.aio.engine": ("AsyncEngine", "AsyncSession"),
    "memci.engine.commands.calibrating": ("Calibration",),
    "memci.engine.reading.caching": ("CacheReport",),
    "memci.engine.reading.explain": ("Explanation",),
    "memci.engine.commands.keeping": ("Bookmark",),
    "memci.engine.commands.window": ("Window",),
    "memci.engine.core.monitor": (
        *("Eviction", "Fold", "FoldFailed", "Notice", "PageRebuilt", "Prefetch", "PrefetchFailed", "Recall"),
        *("SummaryFailed", "Zone", "ZoneChange", "Appended", "Conflict", "EngineNotice", "Fade", "WindowMade", "CacheMiss"),
    ),
    "memci.engine.engine": ("Engine",),
    "memci.engine.history.state": ("Mount",),
    "memci.engine.hosting.listing": ("DeletionReceipt", "SessionFacts", "TenantReceipt"),
    "memci.archive.rules.listing": ("Rule",),
    "memci.engine.view.rule_facts": ("RuleFacts", "RuleState"),
    "memci.engine.hosting.recap": ("Recap",),
    "memci.engine.hosting.status": ("Stats", "Status"),
    "memci.engine.hosting.streaming": ("Stream",),
    "memci.engine.hosting.syncing": ("Synced",),
    "memci.engine.hosting.transcript": ("Said", "Variant"),
    "memci.engine.reading.searching": ("Hit",),
    "memci.engine.session": ("Session",),
    "memci.engine.settings.config": ("Config",),
    "memci.engine.upkeep.verify": ("Report",),
    "memci.messages.conversion": ("Conversion", "convert"),
    "memci.messages.validation": ("Problem", "validate"),
}
"""Where each name is defined; all others are errors."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        message = f"module 'memci' has no attribute {name!r}"
        raise AttributeError(message)
    module = next((module for module, names in _MODULES.items() if name in names), "memci.errors")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
