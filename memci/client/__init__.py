from memci.client.answer import (
    Auto,
    Compacted,
    HandedOver,
    Overview,
    PageList,
    PageRead,
    SessionList,
    Stored,
    WindowRead,
)
from memci.client.client import AsyncClient, AsyncRemoteSession, Client, RemoteSession

__all__ = [
    "AsyncClient",
    "AsyncRemoteSession",
    "Auto",
    "Client",
    "Compacted",
    "HandedOver",
    "Overview",
    "PageList",
    "PageRead",
    "RemoteSession",
    "SessionList",
    "Stored",
    "WindowRead",
]
