"""A chat service: streamed answers, tools, pictures and answers anew, by any number of workers that share a store.

``uvicorn --app-dir examples --workers 2 chat_service:app`` starts it, as README.md says. A client sends a request again, with the
same ``Idempotency-Key``, until it hears ``done``. Who it is, and its ``tenant``, is left to the service that this becomes.
"""

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Annotated, Any

import attrs
import openai
from fastapi import Body, Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse

import memci

MODEL = os.environ.get("MODEL", "gpt-5")
ROUNDS = 8  # times that the model is asked for an answer; all but the last may call tools
client = openai.AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"))


async def model(messages: list[Any], tools: list[Any]) -> AsyncGenerator[Any]:
    """Ask the model, and yield the chunks of its answer; where there is none, tell what one would have read."""
    if "OPENAI_BASE_URL" not in os.environ:
        yield {"choices": [{"delta": {"content": f"I have read {len(messages)} messages."}, "finish_reason": "stop"}]}
        return
    more: dict[str, Any] = {"tools": tools or openai.omit, "stream_options": {"include_usage": True}}
    async with await client.chat.completions.create(model=MODEL, messages=messages, stream=True, **more) as chunks:
        async for chunk in chunks:
            yield chunk


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, memci.AsyncEngine]]:
    """Have one engine a worker."""
    async with memci.AsyncEngine(os.environ.get("MEMCI_STORE", "sqlite:///chats.db"), on_conflict="retry") as engine:
        await engine.warm_up()
        yield {"engine": engine}


async def refuse(_: Request, error: Exception) -> JSONResponse:
    """Say why a request is refused: 409 where another one of its chat is being answered, or had its key."""
    kinds = {409: memci.ConflictError | memci.LockedError, 503: memci.StoreError, 422: memci.MemciError}
    later = {"Retry-After": "1"} if isinstance(error, memci.UnavailableError) else {}  # it passes, as a lease does
    return JSONResponse({"detail": str(error)}, next(status for status, kind in kinds.items() if isinstance(error, kind)), later)


async def opened(chat: str, request: Request) -> AsyncIterator[tuple[memci.AsyncSession, AsyncExitStack]]:
    """Open a chat, and have it alone to write to it; FastAPI closes it after the response, also where the client left."""
    async with AsyncExitStack() as held:
        session = await held.enter_async_context(request.state.engine.session(chat))
        if request.method == "POST":
            await held.enter_async_context(session.lease(ttl_s=60, wait_s=0))  # longer than answers take: see README.md
        yield session, held


app = FastAPI(lifespan=lifespan, exception_handlers={memci.MemciError: refuse})
Chat = Annotated[tuple[memci.AsyncSession, AsyncExitStack], Depends(opened)]
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Picture = Annotated[str | None, Body(pattern="^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$")]


async def newest_turn(session: memci.AsyncSession) -> list[memci.Said]:
    """Return what the user said last, and all that answers it, oldest first."""
    said = await session.transcript(limit=1)
    while said and said[-1].role != "user":
        said += await session.transcript(limit=1, before=said[-1].address)
    return said[::-1]


async def answer(session: memci.AsyncSession, seq: int) -> AsyncGenerator[tuple[str, Any]]:  # noqa: C901 (in its order)
    """Yield the answer to the message of an event, piece by piece: what is there of it, and what is missing."""
    said = await newest_turn(session)
    if said[0].seq == seq and "interrupted" in said[-1].metadata:
        await session.rewind(said[-1].address)  # the client left, or the model failed: ask again
    for number in range(1, ROUNDS + 1):
        async with session.stream(key=f"answer {seq}.{number}") as stream:
            if stream.entries:
                yield "text", stream.text
            elif said[0].seq == seq:
                tools = session.toolbox.openai() if number < ROUNDS else []
                async with aclosing(model((await session.window(tools=tools)).messages, tools)) as chunks:
                    async for chunk in chunks:
                        yield "text", stream.add(chunk)
        if said[0].seq == seq and not stream.complete:
            message = "the model did not end its answer"
            raise memci.ModelError(message)
        if stream.usage:
            await session.report_usage(stream.usage)
        if not stream.entries or not (calls := stream.entries[0].message.get("tool_calls")):
            break
        for call in calls:
            yield "tool", call["function"]
        if (await session.transcript(limit=1))[0].address == stream.entries[0].address:  # they have no results yet
            await session.extend([await session.handle_tool_call(call) for call in calls], key=f"results {seq}.{number}")


async def events(chat: Chat, seq: int) -> AsyncIterator[str]:
    """Yield what a client hears: pieces of text, calls of tools, and how it ended."""
    pieces, end = answer(chat[0], seq), ("done", {"worker": str(os.getpid())})
    chat[1].push_async_callback(pieces.aclose)  # whatever ends the response, what came is stored before the next request
    try:
        async for kind, piece in pieces:
            if piece:
                yield f"event: {kind}\ndata: {json.dumps(piece)}\n\n"
    except (memci.MemciError, openai.OpenAIError) as error:
        end = ("error", {"detail": str(error)})
    await chat[1].aclose()  # whoever hears the end may go on at once
    yield f"event: {end[0]}\ndata: {json.dumps(end[1])}\n\n"


@app.post("/chats/{chat:path}/messages")
async def say(chat: Chat, key: Key, text: Annotated[str, Body(min_length=1)], image: Picture = None) -> StreamingResponse:
    """Say something, once for a key, and hear the answer; a picture is a data URL."""
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": image}}]
    await chat[0].set_system([{"role": "system", "content": "You are a helpful assistant."}])
    said = await chat[0].append({"role": "user", "content": parts if image else text}, key=f"question {key}")
    return StreamingResponse(events(chat, said.node.seq), media_type="text/event-stream")


@app.post("/chats/{chat:path}/regenerate/{seq}")
async def regenerate(chat: Chat, seq: int) -> StreamingResponse:
    """Hear another answer in the place of the newest one, which stays as a variant; a request that is repeated hears it again."""
    said = await newest_turn(chat[0])
    if not said or seq <= said[0].seq or not [each async for each in chat[0].events("appended", seq - 1) if each.seq == seq]:
        raise HTTPException(404, f"{seq} is no answer to what was said last: give the seq of one")
    if seq in [each.seq for each in said[1:]]:
        await chat[0].rewind(said[1].address)
    return StreamingResponse(events(chat, said[0].seq), media_type="text/event-stream")


@app.get("/chats/{chat:path}/messages")
async def messages(chat: Chat, limit: int = 20, before: str | None = None) -> list[dict[str, Any]]:
    """Return what was said, newest first; the next ones come ``before`` the address of the last one."""
    return [attrs.asdict(said) for said in await chat[0].transcript(limit, before)]


@app.get("/chats/{chat:path}/variants")
async def variants(chat: Chat, address: str) -> list[dict[str, Any]]:
    """Return all messages that stood at an address."""
    return [attrs.asdict(variant) for variant in await chat[0].variants(address)]


@app.post("/chats/{chat:path}/variants/{seq}")
async def choose(chat: Chat, seq: int) -> str:
    """Go on with a variant, and return its address."""
    return await chat[0].choose(seq)
