"""The peers, by name: where each is installed, how it is opened, and what its figures hold."""

import attrs


@attrs.frozen
class PeerSpec:
    """A peer in one of its variants.

    Attributes:
        module: The driver, in ``benchmarks.peers.drivers``.
        option: What it is opened with.
        environment: Where it is installed: a file of ``benchmarks/peers/pins``; ``None`` for that of memci.
        beside: Which memci keeps its messages as safe.
        note: What it keeps, and what it does not do.
    """

    module: str
    option: str
    environment: str | None
    beside: str
    note: str


FLUSH, FSYNC, MEMORY = "memci, flush", "memci, fsync", "memci, memory"

PEERS = {
    FLUSH: PeerSpec(
        "memci_session",
        "flush",
        None,
        FLUSH,
        "journal, page files and search index in files, given to the system and not synced; counts, folds, summarises",
    ),
    FSYNC: PeerSpec("memci_session", "fsync", None, FSYNC, "the same, synced to the disk before an append returns"),
    MEMORY: PeerSpec("memci_session", "memory", None, MEMORY, "the same in memory: gone with the process"),
    "sqlite3, NORMAL": PeerSpec(
        "sqlite_table",
        "NORMAL",
        None,
        FLUSH,
        "one table with columns for role and content and JSON for other keys, WAL, synced at checkpoints only; tokens known "
        "beforehand; newest messages",
    ),
    "sqlite3, FULL": PeerSpec("sqlite_table", "FULL", None, FSYNC, "the same, each transaction synced"),
    "sqlite3, FTS5": PeerSpec(
        "sqlite_table", "FTS5", None, FLUSH, "as NORMAL, with a full-text index of turns in the same transaction"
    ),
    "list, characters": PeerSpec(
        "plain_list", "characters", None, MEMORY, "a list in memory; newest messages, four characters a token; no search"
    ),
    "list, o200k": PeerSpec("plain_list", "o200k_base", None, MEMORY, "the same, each message counted once with o200k_base"),
    "OpenAI Agents SDK, limit": PeerSpec(
        "agents_session", "limit", "agents", FSYNC, "SQLiteSession in a file, WAL FULL; the newest 74 items; no budget, no search"
    ),
    "OpenAI Agents SDK, all": PeerSpec(
        "agents_session", "all", "agents", FSYNC, "the same as it is by default: the whole history at every call"
    ),
    "Strands, files": PeerSpec(
        "strands_session",
        "",
        "strands",
        FLUSH,
        "a file a message, renamed into place and not synced; a sliding window of 74 messages; no budget, no search",
    ),
    "LangChain, trim": PeerSpec(
        "langchain_messages", "trim", "langchain", MEMORY, "a list in memory; trim_messages by an estimate of tokens; no search"
    ),
    "LangChain, summarise": PeerSpec(
        "langchain_messages",
        "summarise",
        "langchain",
        MEMORY,
        "SummarizationMiddleware, down to 4,000 tokens, with a model that answers at once; what it summarises is gone; no search",
    ),
    "LangGraph, SqliteSaver": PeerSpec(
        "langgraph_saver",
        "",
        "langchain",
        FSYNC,
        "a checkpoint a message, each with the whole history, and trim_messages; SQLite syncs each; no search",
    ),
    "LlamaIndex Memory": PeerSpec(
        "llama_index_memory",
        "",
        "llama_index",
        FSYNC,
        "a row a message in an SQLite file, which syncs each; cl100k_base; no search",
    ),
    "Pydantic AI, slice": PeerSpec(
        "pydantic_ai_slice", "", "pydantic_ai", MEMORY, "a list in memory; the newest 74 messages; no budget, no search"
    ),
    "Semantic Kernel, reducer": PeerSpec(
        "semantic_kernel_history", "", "semantic_kernel", MEMORY, "the newest 74 messages, in memory; no budget, no search"
    ),
    "OpenLCM": PeerSpec(
        "openlcm_engine",
        "",
        "openlcm",
        FLUSH,
        "a row a message in an SQLite file with FTS5, stored when the next window is made; summaries, by a function "
        "that answers at once, above the newest 32",
    ),
}
