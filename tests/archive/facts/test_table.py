"""The table of facts: what holds, what fits, and how it is shown."""

from memci.archive.facts.table import MOST_FACTS, Fact, FactTable, table_from, table_value


def fact(serial: int, value: str, page: int, *, entity: str = "R1", key: str = "status") -> Fact:
    return Fact(serial, entity, key, value, f"usr-{page}", 1)


def table(*facts: Fact) -> FactTable:
    """Return a table that shows all its facts."""
    noted = FactTable().noted(facts, len(facts))
    return noted.showing(noted.current())


def count(text: str) -> int:
    return len(text.split())


def test_an_entity_has_one_line() -> None:
    """Its values follow it, and those of one page share the page's index; entities with newer facts come later."""
    shown = table(fact(0, "open", 1), fact(1, "5", 1, entity="R2"), fact(2, "red", 1, key="color"), fact(3, "4", 2, key="bags"))
    assert [
        "- R2: status 5 (usr-1)",
        "- R1: status open · color red (usr-1) · bags 4 (usr-2)",
        "[end of facts]",
    ] == shown.render().split("\n")[1:]


def test_a_newer_value_replaces_the_older_one() -> None:
    """The older one is shown as the former value, unless both are equal."""
    shown = table(fact(0, "open", 1), fact(1, "red", 1, key="color"), fact(2, "closed", 2), fact(3, "red", 3, key="color"))
    assert "- R1: status closed, was open (usr-2) · color red (usr-3)" in shown.render()


def test_a_page_that_folds_late_replaces_nothing() -> None:
    """Its value is older than the known one."""
    shown = table(fact(0, "closed", 5), fact(1, "red", 5, key="color"), fact(2, "open", 2))
    assert "status closed · color red (usr-5)" in shown.render()


def test_the_older_value_holds_again_without_the_newer() -> None:
    """The block shows no more than before until facts are chosen again."""
    shown = table(fact(0, "open", 1), fact(1, "red", 1, key="color"), fact(2, "closed", 2))
    left = shown.without(lambda page: page == "usr-2")
    assert ["color red"] == [current.text for current in left.shown()]
    assert ["status open", "color red"] == [current.text for current in left.current()]


def test_a_former_value_leaves_with_its_page() -> None:
    """The newer value stays, without the former one."""
    shown = table(fact(0, "open", 1), fact(1, "red", 3, key="color"), fact(2, "closed", 2))
    assert ["color red", "status closed"] == [each.text for each in shown.without(lambda page: page == "usr-1").shown()]


def test_the_newest_facts_have_room_first() -> None:
    """No fact is shown that is older than the first one without room."""
    facts = [fact(number, f"v{number}", number, entity=f"E{number}") for number in range(40)]
    some = table(*facts).fitted(100, count)
    shown = [current.fact.serial for current in some.shown()]
    assert 0 < len(shown) < len(facts)
    assert [*range(40 - len(shown), 40)] == shown


def test_a_single_fact_is_not_shown() -> None:
    """The frame of the block is longer than the fact."""
    assert not table(fact(0, "open", 1)).render()


def test_it_is_bounded() -> None:
    """The oldest facts are dropped first."""
    many = table(*(fact(number, "x", number + 1, entity=f"E{number}") for number in range(MOST_FACTS + 9)))
    assert (MOST_FACTS, 9) == (len(many.facts), many.facts[0].serial)


def test_it_is_stored_whole() -> None:
    """A snapshot has the whole table; one without a table loads as an empty table."""
    some = table(fact(0, "open", 1), fact(1, "closed", 2))
    assert some == table_from(table_value(some))
    assert FactTable() == table_from(None)
