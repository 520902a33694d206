from memci.adapters.pydantic_ai.capability import MemciCapability
from memci.adapters.pydantic_ai.messages import history

__all__ = ["MemciCapability", "history"]
