"""Checkpoints: making them, and going back to them. What came after one stays in the journal, and is within reach as well."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from memci.archive.catalogue.page_facts import INDEX_PLACE, Checkpoint, CheckpointKind
from memci.archive.stores.names import check_identifier
from memci.engine.core.core import Core
from memci.engine.core.indexing import checkpoint_of
from memci.engine.history import state_codec
from memci.engine.history.events import CheckpointMade, CheckpointRestored, Event, PageErased, PagesFolded, from_record
from memci.engine.history.state import SLOTS, State
from memci.engine.reading import pages
from memci.engine.settings.config import Config
from memci.engine.settings.setting import MOST
from memci.engine.summaries import summarizing
from memci.errors import ArgumentError, ConfigError, CorruptError, InvalidIdError, InvalidMessageError, shown
from memci.messages import codec

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

_ASKED_FOR = tuple(kind.value for kind in CheckpointKind if kind is not CheckpointKind.AUTO)


MOST_BYTES = 65_536  # of the variables of a checkpoint, as JSON


def make_checkpoint(
    core: Core, label: object, kind: object, ttl_turns: object = None, variables: Mapping[str, Any] | None = None
) -> Checkpoint:
    """Note that the session can come back to where it is."""
    text = check_identifier(label, "label")
    if kind not in _ASKED_FOR:
        message = f"{shown(kind)} is not known: give one of {', '.join(_ASKED_FOR)} (checkpoints.every_turns makes auto ones)"
        raise ConfigError(message, path="kind")
    if ttl_turns is not None and (type(ttl_turns) is not int or not 0 < ttl_turns <= MOST):
        raise ArgumentError(argument="ttl_turns", value=ttl_turns, wanted="a whole number of turns from 1, or None")
    try:
        values: Any = codec.checked_copy({} if variables is None else variables)
    except InvalidMessageError as error:
        raise ArgumentError(argument="variables", value=variables, wanted="JSON values by name") from error
    if not isinstance(values, dict) or len(codec.encode(values)) > MOST_BYTES:
        raise ArgumentError(argument="variables", value=variables, wanted=f"JSON values by name, {MOST_BYTES:,} bytes at most")
    event = attrs.evolve(_made(core.state, text, CheckpointKind(str(kind)), core.now()), ttl_turns=ttl_turns, variables=values)
    core.commit([event])
    return checkpoint_of(event, core.state.seq)


def restore_checkpoint(core: Core, checkpoint_id: object) -> Checkpoint:
    """Go on from a checkpoint, and return one of the kind ``recovery`` that was made just before: restoring it takes this back.

    All is as it was there, but that numbers which were used since are not used again, and that the counter's calibration and
    the settings of this process stay. O(history).
    """
    found = core.ask(lambda index: _find(core, index, checkpoint_id)) if isinstance(checkpoint_id, str) else None
    if found is None or not is_listed(core.state, found):
        message = f"there is no checkpoint {shown(checkpoint_id)}: checkpoints() lists those that there are"
        raise InvalidIdError(message, value=checkpoint_id)
    return go_back(core, found.seq, found.id)


def is_listed(state: State, checkpoint: Checkpoint) -> bool:
    """Return whether the time of a checkpoint, in turns, has not ended."""
    return checkpoint.ttl_turns is None or state.turn - checkpoint.turn <= checkpoint.ttl_turns


def go_back(core: Core, target: int, checkpoint: str) -> Checkpoint:
    """Go on from an event, at which there was a *checkpoint*, empty for none; see ``restore_checkpoint``."""
    before, at = core.state.seq, core.now()
    recovery = _made(core.state, f"before going back to {checkpoint or f'event {target}'}", CheckpointKind.RECOVERY, at)
    state = core.state_at(target)
    summarizing.keep(core, state, target)
    then = state_codec.to_mapping(state)
    core.commit([recovery, CheckpointRestored(checkpoint=checkpoint, target=target, state=then, at=at)])
    made = checkpoint_of(recovery, core.state.seq - 1)
    core.catch_up()
    # It is committed: who writes now comes after it, and nothing of it is done again.
    core.run(lambda core: _put_files_back(core, target, before), "retry")
    core.run(Core.configure, "retry")
    return made


def _find(core: Core, index: "PageIndex", checkpoint_id: str) -> Checkpoint | None:
    """Return a checkpoint as the index has it, once the journal says so too."""
    found = index.find_checkpoint(checkpoint_id)
    if found is None:
        return None
    record = next(core.store.journal.read(found.seq - 1, found.seq), None)
    event = from_record(record) if record is not None and record.kind == CheckpointMade.kind else None
    if not isinstance(event, CheckpointMade) or checkpoint_of(event, found.seq).id != checkpoint_id:
        message = f"{checkpoint_id} is another checkpoint in the journal"
        raise CorruptError(message, session=core.session_id, place=INDEX_PLACE)
    return found


def between_turns(config: Config, turn: int, number: int, at: str) -> list[Event]:
    """Return the checkpoint that the settings ask for where a turn ends because another one begins."""
    every, keep = config.checkpoints.every_turns, config.checkpoints.keep
    if every is None or not turn or turn % every:
        return []
    kind = CheckpointKind.AUTO.value
    return [CheckpointMade(number=number, label=f"after turn {turn}", checkpoint_kind=kind, turn=turn, at=at, keep=keep)]


def _made(state: State, label: str, kind: CheckpointKind, at: str) -> CheckpointMade:
    return CheckpointMade(number=state.next_checkpoint, label=label, checkpoint_kind=kind.value, turn=state.turn, at=at)


def _put_files_back(core: Core, after: int, until: int) -> None:
    """Make the files again that pages had at a checkpoint and that changed since; else reading does. O(events since)."""
    changed = set()
    while after < until:
        first, last, until = after, until, after
        for record in core.store.journal.read(first, last):
            if record.kind not in (PagesFolded.kind, CheckpointRestored.kind, PageErased.kind):
                continue
            event = from_record(record)
            if isinstance(event, PagesFolded):
                changed |= {entry["index"] for entry in event.entries}
            elif isinstance(event, PageErased):
                changed.add(event.page)
            elif isinstance(event, CheckpointRestored):  # it put files back that were changed after its target
                after = min(after, event.target)
    for index in sorted(changed - {SLOTS}):
        pages.mend_file(core, index)
