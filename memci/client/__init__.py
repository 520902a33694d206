from memci.client.answer import (
    Auto,
    Chosen,
    Compacted,
    HandedOver,
    Overview,
    PageList,
    PageRead,
    SessionList,
    Stored,
    SyncedRead,
    WindowRead,
    Written,
)
from memci.client.client import AsyncClient, AsyncRemoteSession, Client, RemoteSession

__all__ = [
    "AsyncClient",
    "AsyncRemoteSession",
    "Auto",
    "Chosen",
    "Client",
    "Compacted",
    "HandedOver",
    "Overview",
    "PageList",
    "PageRead",
    "RemoteSession",
    "SessionList",
    "Stored",
    "SyncedRead",
    "WindowRead",
    "Written",
]
