"""Words by which an answer refuses or waits, and a result says that its call failed."""

import pytest

from memci.archive.summarizers.outcome import failure, outcome


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("I\u2019m unable to remove a passenger.", "unable"),
        ("Unfortunately, I cannot remove one.", "Unfortunately"),
        ("We cannot refund it.", "cannot"),
        ("I'm sorry, but that fare has no refund.", "sorry"),
        ("Your ticket is not eligible for a refund.", "not eligible"),
        ("抱歉，没有符合您要求的餐馆。", "抱歉"),
        ("我无法取消这个订单。", "我无法"),
        ("Leider ist der Zug ausgebucht.", "Leider"),
        ("Malheureusement, le vol est complet.", "Malheureusement"),
        ("Lo siento, no es posible.", "Lo siento"),
        ("Infelizmente o voo está cheio.", "Infelizmente"),
        ("Purtroppo non si può.", "Purtroppo"),
        ("Niestety nie.", "Niestety"),
        ("К сожалению, мест нет.", "К сожалению"),
        ("للأسف لا توجد مقاعد", "للأسف"),
        ("申し訳ございませんが、満室です。", "申し訳"),
        ("죄송하지만 불가능합니다.", "죄송"),
        ("Here are the details. Please confirm, and I will book it.", "Please confirm"),
        ("I'm sorry to hear that you are ill.", None),
        ("I can't wait to see it!", None),
        ("The refund was declined by the bank.", "declined"),
        ("Le virement à Luc Petit a échoué.", "a échoué"),
        ("Перевод отклонён банком.", "отклонён"),
        ("The plan: delete it. Do you agree?", "Do you agree"),
        ("Your booking is confirmed.", None),
        ("It cannot rain here.", None),
        ("Done. " * 80 + "Unfortunately, it rained.", None),
    ],
)
def test_an_answer_that_refuses_or_waits_says_so(answer: str, words: str | None) -> None:
    """Words of refusal, and of regret with a denial after them, near the beginning; a request to confirm anywhere."""
    place = outcome(answer)
    assert words == (None if place is None else answer[slice(*place)])


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("Error: flight HAT030 not available", "Error"),
        ('{"error": "no seats"}', "error"),
        ("Exit code 2\nmake: *** [test]", "Exit code 2"),
        ("The tool use was rejected by the user.", "was rejected"),
        ("cat: a.txt: No such file or directory", "No such file"),
        ("ok   cli/a\nFAIL\nexit status 1", "FAIL"),
        ("String to replace not found in file.", "not found"),
        ('{"success": false, "id": 7}', "success: false"),
        ('{"isError": true, "content": []}', "isError: true"),
        ("Plan: 1 to add.\nApply cancelled.", "Apply cancelled"),
        ("Payment declined by issuer", "declined"),
        ("30 passed, 0 failed", ""),
        ("cancelled", ""),
        ("ok   cli/a\nPASS", ""),
        ("def failed(): ...", ""),
        ('{"status": "no error"}', ""),
    ],
)
def test_a_result_says_that_its_call_failed(result: str, words: str) -> None:
    """It begins with a word for it, its first line has one of a system, or a line is nothing but it."""
    assert words == failure(result)


@pytest.mark.parametrize("piece", ["x", "I ", "sorry ", "error ", "FAIL\n", "抱歉", "please "])
def test_no_text_takes_long(piece: str) -> None:
    """Text that repeats one piece is looked at once."""
    text = piece * (120_000 // len(piece))
    place = outcome(text)
    assert place is None or place[0] < place[1]
    assert len(failure(text)) < len(text)
