"""Why a provider's cache held less of a prompt than it could: what changed since the call before, or that nothing of ours did."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

import attrs

from memci.engine.core.core import Core
from memci.engine.core.kept_state import SentPrompt
from memci.engine.history.events import from_record

_SLACK_TOKENS = 1_024  # that providers do not cache at least, or round off
_SLACK_SHARE = 0.1  # of what was expected, that is no miss: the shares of a prompt are those of its bytes
_KEPT_S = 240.0  # after which a provider may have let a prompt go: they speak of five minutes
_MARK = b',"cache_control":{"type":"ephemeral"}'  # says where to cache, and is no part of what is compared

_BLOCK = re.compile(rb'"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*+")\}\]')

_CHANGES = {  # by kind of an event: what changes a prompt before its end
    "configured": "other settings",
    "system_set": "another system part",
    "system_hidden": "a page of the system part was hidden",
    "system_shown": "a page of the system part was shown",
    "folded": "a fold",
    "trimmed": "results were trimmed",
    "fold_undone": "a fold was undone",
    "recalled": "a recall of {page}",
    "faded": "recalled pages left",
    "quoted": "passages came or left",
    "kept": "a page was kept, or is no longer",
    "rewound": "the session went back",
    "checkpoint_restored": "a checkpoint was restored",
    "erased": "a page was erased",
    "mounted": "contents of a mounted session",
    "unmounted": "a session was unmounted",
    "slots_set": "slots changed",
    "rule_removed": "a rule was taken out",
}


@attrs.frozen(kw_only=True)
class Change:
    """Something that changed a prompt: the *kind* of an event, or ``tools``, ``budget``, ``end``; what it is; its *seq*, or 0."""

    kind: str
    what: str
    seq: int = 0


@attrs.frozen(kw_only=True)
class CacheReport:
    """How much of a prompt came from the provider's cache, and why not more.

    *expected_tokens* are those of the prompt before, *shared_tokens* how much of it this one begins with, by its share of bytes,
    *cached_tokens* what the provider had. *changes* are what memci did in between, *seconds* how long the call before was ago.
    """

    expected_tokens: int
    shared_tokens: int
    cached_tokens: int
    changes: tuple[Change, ...]
    seconds: float
    reason: str

    @property
    def missed(self) -> bool:
        """Whether the provider had less of the prompt before than it could, beyond what providers round off."""
        return self.cached_tokens < (1 - _SLACK_SHARE) * self.expected_tokens - _SLACK_TOKENS


def report(core: Core, cached_tokens: int, prompt_tokens: int) -> CacheReport | None:
    """Compare the last prompt with the one that was reported before; ``None`` where none was, in this process. O(visible)."""
    sent, before = core.prepared.sent, core.prepared.reported
    if sent is None:
        return None
    core.prepared.reported = sent._replace(tokens=prompt_tokens)
    if before is None or before.seq > sent.seq:
        return None
    raws, former = _plain(sent.raws), _plain(before.raws)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(raws, former, strict=False)))
    begins_alike = before.settled.tools_sha256 == sent.settled.tools_sha256 and before.system == sent.system
    share = sum(map(len, former[:same])) / max(sum(map(len, former)), 1) if begins_alike else 0.0
    shared = int(share * before.tokens)
    changes = tuple(_changes(core, before, sent)) if shared < before.tokens else ()
    seconds = sent.at - before.at
    told = "; ".join(dict.fromkeys(change.what for change in changes))
    if shared < before.tokens and not changes:
        told = "a late result, or a stub"
    if cached_tokens < (1 - _SLACK_SHARE) * shared - _SLACK_TOKENS:
        if seconds > _KEPT_S:
            beside = f"{seconds:.0f} seconds since the call before, and caches last for minutes"
        else:
            beside = "the provider did not keep what is the same, or was not told to"
        told = f"{told}; {beside}" if told else beside
    made = CacheReport(
        expected_tokens=before.tokens,
        shared_tokens=shared,
        cached_tokens=cached_tokens,
        changes=changes,
        seconds=seconds,
        reason=told or "the prompt begins as the one before",
    )
    return made if made.missed else attrs.evolve(made, reason=f"no miss: {made.reason}")


def _plain(raws: Sequence[bytes]) -> list[bytes]:
    """Return messages without what says where to cache: a text that is marked is a block, and else the text itself."""
    return [_BLOCK.sub(rb'"content":\1', raw.replace(_MARK, b"")) for raw in raws]


def _changes(core: Core, before: SentPrompt, sent: SentPrompt) -> Iterator[Change]:
    """Yield what changed between two prompts, in order. O(events between them)."""
    if before.settled.tools_sha256 != sent.settled.tools_sha256:
        yield Change(kind="tools", what="other tools")
    if before.settled.budget != sent.settled.budget or before.settled.contents != sent.settled.contents:
        yield Change(kind="budget", what="another budget, or a step that made the window fit")
    for record in core.store.journal.read(before.seq, sent.seq):
        if record.kind in _CHANGES:
            page = getattr(from_record(record), "page", "")
            yield Change(kind=record.kind, what=_CHANGES[record.kind].format(page=page), seq=record.seq)
    if core.state.slots is not None or before.settled.extra:
        yield Change(kind="end", what="slots and extra texts stand at the end of each prompt")
