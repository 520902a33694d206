from memci.otel.telemetry import instrument, uninstrument

__all__ = ["instrument", "uninstrument"]
