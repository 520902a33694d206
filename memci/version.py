"""The version of the library; the journal of each session names it."""

VERSION = "0.1.0"
