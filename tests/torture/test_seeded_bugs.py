"""The bench notices stores that are wrong in one way."""

import pytest

from tests.torture.bug_table import noticed_by, noticed_in_states
from tests.torture.seeded_bugs import BUGS

pytestmark = pytest.mark.slow

IN_STATES = [name for name, bug in BUGS.items() if bug.part == "crash_states"]
IN_PROCESSES = [name for name, bug in BUGS.items() if bug.part in ("damage", "kills", "writers")]


@pytest.mark.parametrize("name", IN_STATES)
def test_a_seeded_bug_shows_in_some_state(name: str) -> None:
    """A store that is wrong in how it makes things safe loses something in one of the states after a loss of power."""
    assert noticed_in_states(BUGS[name])


@pytest.mark.parametrize("name", IN_PROCESSES)
def test_a_seeded_bug_shows_in_its_part(name: str) -> None:
    """A store that does not check, lock or write in time is noticed by the part that is about that."""
    assert noticed_by(BUGS[name].part, name)


def test_enough_bugs_are_seeded() -> None:
    """There are more than ten, and each has a part of the bench that is to notice it."""
    assert len(BUGS) > 10
    assert {"crash_states", "damage", "kills", "writers", "soak"} == {bug.part for bug in BUGS.values()}
