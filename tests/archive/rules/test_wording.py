"""How close the wording of a sentence is to that of a rule."""

from memci.archive.rules.detection import LIKELY, UNLIKELY, rules_in
from memci.archive.rules.wording import features, score


def test_rules_score_above_ordinary_sentences() -> None:
    """A rule is likely, a request for now is not, and small talk is below what cues are looked for in."""
    assert score("Short answers suit me best, please.") > LIKELY
    assert LIKELY > score("Please make it shorter, about half of it.")
    assert UNLIKELY > score("Wow, that sounds like a lot of fun, what did you see there?")


def test_an_unknown_language_is_left_to_the_cues() -> None:
    """Its score is not enough for a rule, and does not forbid one."""
    rule = "Đừng bao giờ xoá tệp nào mà không hỏi tôi trước."
    assert score(rule.lower()) < LIKELY
    assert [rule] == [each.text for each in rules_in(rule)]
    assert UNLIKELY < score("") < LIKELY


def test_case_and_the_full_stop_do_not_matter() -> None:
    """Nor does which number it is, or which comma."""
    assert features("Call me Al.") == features("call me al")
    assert features("预算300，最多。") == features("预算500,最多")
