"""Facts in the results of tools."""

import pytest

from memci.archive.facts.results import values_in_result


def test_an_object_owns_its_scalars() -> None:
    """The first field is its id; an inner object without an id adds its scalars to the outer one."""
    text = '{"reservation_id": "4XGCCM", "cabin": "economy", "bags": 2, "paid": true, "seat": {"row": 12}, "note": null}'
    expected = [("cabin", "economy"), ("bags", "2"), ("paid", "true"), ("seat.row", "12")]
    assert [("4XGCCM", *each) for each in expected] == list(values_in_result(text))


def test_numbers_are_as_they_are_written() -> None:
    """No digit is lost or rounded."""
    text = '{"id": "a1", "price": 1.10, "count": 12345678901234567890, "rate": 1e3}'
    assert ["1.10", "12345678901234567890", "1e3"] == [value for *_, value in values_in_result(text)]


@pytest.mark.parametrize("key", ["user_id", "customerId", "first_name", "session_id", "error_code", "phone_number"])
def test_a_field_that_names_something_else_owns_nothing(key: str) -> None:
    """A total does not belong to the customer, and a first name is not a name of the object."""
    assert [] == list(values_in_result(f'{{"{key}": "x1", "total": 30}}'))


def test_objects_in_a_list_need_an_id() -> None:
    """A flight's free seats are those of one day, which the result does not name."""
    assert [] == list(values_in_result('[{"flight_number": "HAT069", "seats": 7}]'))
    assert [("r7", "seats", "7")] == list(values_in_result('{"found": [{"id": "r7", "seats": 7}]}'))


@pytest.mark.parametrize("key", ["password", "apiKey", "access_token", "client_secret"])
def test_secrets_are_not_read(key: str) -> None:
    """They are neither values nor owners, at any depth."""
    text = f'{{"id": "a1", "{key}": "s3cret", "login": {{"{key}": "s3cret"}}, "{key}s": {{"old": "s3cret"}}, "color": "red"}}'
    assert [("a1", "color", "red")] == list(values_in_result(text))
    assert [] == list(values_in_result(f'{{"{key}": "s3cret", "color": "red"}}'))


@pytest.mark.parametrize("text", ["", "Error: no such id", "{", '["a"]', '{"id": ""}', "[" * 100_000])
def test_other_texts_have_no_facts(text: str) -> None:
    """A result that is not JSON, or names no object, is skipped."""
    assert [] == list(values_in_result(text))


def test_a_value_that_cannot_be_shown_whole_is_skipped() -> None:
    """Long values, and those with line breaks or the separator, cannot be shown as written."""
    text = f'{{"id": "a1", "long": "{"x" * 61}", "lines": "a\\nb", "dots": "a · b", "color": "red"}}'
    assert [("a1", "color", "red")] == list(values_in_result(text))
