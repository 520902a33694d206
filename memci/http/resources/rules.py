"""The rules of a session: a list of them, and adding and removing one."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Body, Query

from memci.archive.rules.listing import Rule
from memci.client.answer import RuleList
from memci.errors import ArgumentError
from memci.http.asked import Key, ReadSession, WrittenSession
from memci.http.problem import RefusedError
from memci.http.resources.sessions import Limit
from memci.http.shape import Router

router = Router(prefix="/sessions/{session_id}", tags=["rules"])


@router.get("/rules")
async def list_rules(session: ReadSession, start: Annotated[int, Query(ge=0)] = 0, limit: Limit = 100) -> RuleList:
    """List rules, oldest first, those that were replaced or taken back included."""
    rules = await session.rules()
    return RuleList(rules=tuple(rules[start : start + limit]), total=len(rules))


@router.post("/rules", status_code=201)
async def add_rule(
    session: WrittenSession, text: Annotated[str, Body(embed=True, description="One sentence or a few.")], key: Key = None
) -> Rule:
    """Add a rule of the application's, which the next window shows."""
    return await session.add_rule(text, key=key)


@router.delete("/rules")
async def remove_rule(
    session: WrittenSession,
    address: Annotated[str, Query(description="Of a rule, such as usr-3/1, usr-3/1#2 or rule-1.")],
) -> None:
    """Take a rule out; it is not found again."""
    try:
        await session.remove_rule(address)
    except ArgumentError as error:
        raise RefusedError(HTTPStatus.NOT_FOUND, error) from error
