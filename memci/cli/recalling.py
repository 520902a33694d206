"""The command that brings a page back."""

import attrs

from memci.cli import output
from memci.cli.opening import STORE, TENANT, JsonOption, Place, SessionOption, StoreOption, TenantOption, opened
from memci.cli.reading import IndexArgument, page_argument


def recall(
    index: IndexArgument,
    *,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Bring a page back into the window (writes).

    The page stays for some turns, as `recall.turns` says, and its recall count goes up. Of a range such as usr-12..40 it is
    the list of its pages. A process that has the session open learns of it by refresh(), and until then gets a ConflictError
    when it writes.
    """
    with opened(Place(store, tenant, session), write=True) as found:
        page = found.recall(page_argument(index))
        answer = found.explain(page.index)
        seq, session_id = found.seq, found.id
    if json:
        output.document({"seq": seq, "tokens": page.tokens, **attrs.asdict(answer)})
    else:
        output.text(str(answer))
        output.note(f"written to session {session_id!r}, now at event {seq}")
