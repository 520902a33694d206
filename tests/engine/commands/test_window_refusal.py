"""A window that cannot fit is refused with its sizes, and does no harm."""

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.errors import BudgetError
from tests.engine.sessions import indexes, open_session, talk
from tests.engine.wire import user


def test_a_hopeless_budget_takes_no_step() -> None:
    """A budget below the system part and the open page is refused at once: nothing is written, folded or evicted."""
    session = open_session()
    session.append({"role": "system", "content": "Be brief."})
    talk(session, 8)
    session.fold([f"usr-{number}" for number in range(1, 5)])
    before, seq, shown = session.window(), session.seq, session.contents
    least = {part: before.breakdown[part] for part in ("tools", "open", "reply")}
    with pytest.raises(BudgetError) as refused:
        session.window(sum(least.values()))
    assert (seq, shown) == (session.seq, session.contents)
    assert before.to_json() == session.window().to_json()
    assert {**refused.value.breakdown, **least} == refused.value.breakdown
    assert refused.value.tokens == sum(refused.value.breakdown.values()) > refused.value.budget
    assert (0, 0, 0) == tuple(refused.value.breakdown[part] for part in ("contents", "recalled", "active"))


def test_the_smallest_budget_is_the_one_that_is_named() -> None:
    """The size that a refusal names is a budget that a window then fits, without the old pages."""
    session = open_session()
    talk(session, 6)
    session.append(user("And now something new, please."))
    with pytest.raises(BudgetError) as refused:
        session.window(10)
    window = session.window(refused.value.tokens)
    assert refused.value.tokens == window.tokens
    assert 0 == window.breakdown["contents"]
    assert [] == indexes(session, PageState.EVICTED)
