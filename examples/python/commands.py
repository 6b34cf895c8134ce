"""Runs commands at a client, each at most once, and keeps each end until the relay has it. PROTOCOL.md, section 5."""
import asyncio
import json
from collections import OrderedDict
from typing import Any, Awaitable, Callable, Dict, Optional

from frames import NOTHING, join
from link import Link

#: How many ids of commands are remembered, so that none runs twice, and how many ends wait for their result_ack.
REMEMBERED, KEPT_ENDS = 1000, 256
#: Ends that are sent again count as unsolicited frames, of which 100 a second are safe.
RESEND_PAUSE_S = 0.01
#: A refusal with one of these codes does not mean that the end is wrong: it is sent again with the next welcome.
SEND_AGAIN = {"store_unavailable", "draining", "rate_limited", "internal"}
#: Members of the params that come from the relay, and never from a caller.
RESERVED = "__cooperative_site_"
ENDS = {"result", "error", "cancelled"}


class ActionError(Exception):
    """Ends a command with this code and message."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


class Action:
    """What the client offers. `check` raises ActionError for params that do not match the schema."""

    def __init__(
        self,
        advertisement: dict,
        check: Callable[[dict], None],
        handler: Callable[[dict, Callable[[Any], Awaitable[Any]]], Awaitable[Any]],
    ):
        self.advertisement, self.check, self.handler = advertisement, check, handler
        self.name = advertisement["name"]


class _Running:
    """A command without an end. It can be stopped until its end is known."""

    def __init__(self) -> None:
        self.task: Optional["asyncio.Task[None]"] = None
        self.stopped_by: Optional[str] = None
        self.over = False

    def stop(self, why: str) -> None:
        if self.task and not self.over and self.stopped_by is None:
            self.stopped_by = why
            self.task.cancel()


class Commands:
    """The commands of one client. `report` is called with what happens, for a log."""

    def __init__(
        self,
        link: Callable[[], Link],
        actions: Dict[str, Action],
        is_here: Callable[[str], bool],
        report: Callable[..., None],
    ):
        self._link, self._actions, self._is_here, self._report = link, actions, is_here, report
        self._running: Dict[str, _Running] = {}
        #: The commands that arrived, and whether the relay has acknowledged the end of each.
        self._seen: "OrderedDict[str, bool]" = OrderedDict()
        self._outbox: "OrderedDict[str, str]" = OrderedDict()
        self._settled = asyncio.Event()
        #: Whether further commands are refused.
        self.refusing = False
        #: The most bytes of a frame, as the last welcome said. A longer end must not be sent: it would be lost.
        self.longest_frame = 1024 * 1024

    async def resend(self) -> None:
        """Sends each kept end again, oldest first. To be called after each welcome."""
        for frame in list(self._outbox.values()):
            await self._link().send_text(frame)
            await asyncio.sleep(RESEND_PAUSE_S)

    def unacknowledged(self) -> list:
        """The commands that arrived and whose ends the relay has not acknowledged, ended or not: for the hello."""
        ended = [command_id for command_id, acknowledged in self._seen.items() if not acknowledged]
        return list(dict.fromkeys([*self._running, *ended]))[:REMEMBERED]

    async def settled(self) -> None:
        """Returns when no command runs and the relay has each end."""
        self._check_settled()
        await self._settled.wait()

    async def received(self, header: dict, payload: Optional[str]) -> None:
        """Takes a frame of the relay. Frames that are not about commands are ignored."""
        kind, command_id = header["type"], header.get("command_id", "")
        if kind == "command":
            await self._command(command_id, header, payload)
        elif kind == "cancel" and command_id in self._running:
            self._running[command_id].stop("cancel")
        elif kind == "result_ack":
            if command_id in self._seen:
                self._seen[command_id] = True
            self._forget(command_id)
        elif kind == "refused" and header.get("frame") in ENDS and header["code"] not in SEND_AGAIN:
            self._forget(command_id)

    async def _command(self, command_id: str, header: dict, payload: Optional[str]) -> None:
        if command_id in self._running:
            await self._link().send({"type": "ack", "command_id": command_id})
        elif command_id in self._outbox:
            await self._link().send_text(self._outbox[command_id])
        elif command_id in self._seen:
            await self._end(command_id, {"type": "error", "code": "result_unavailable"})
        else:
            self._seen[command_id] = False
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            self._running[command_id] = running = _Running()
            running.task = asyncio.create_task(self._run(command_id, header, payload))

    async def _run(self, command_id: str, header: dict, payload: Optional[str]) -> None:
        running, value = self._running[command_id], NOTHING
        loop = asyncio.get_running_loop()
        # A little early, so that the relay has the end before the deadline, at which it records one itself.
        deadline = loop.call_later(header["remaining_ms"] * 0.9 / 1000, running.stop, "deadline")
        try:
            value = await self._handle(command_id, header, payload)
            end = {"type": "result"}
        except asyncio.CancelledError:
            cancelled = running.stopped_by == "cancel"
            end = {"type": "cancelled"} if cancelled else {"type": "error", "code": "client_timeout"}
        except ActionError as error:
            end = {"type": "error", "code": error.code, "message": str(error)}
        except Exception as error:  # A handler may raise anything. The message must not hold a stack trace.
            end = {"type": "error", "code": "handler_failed", "message": str(error)[:256]}
        running.over = True
        deadline.cancel()
        del self._running[command_id]
        await self._end(command_id, end, value)

    async def _handle(self, command_id: str, header: dict, payload: Optional[str]) -> Any:
        if self.refusing:
            raise ActionError("client_denied", "The client is leaving.")
        name, context_id = header["action"], header.get("context_id")
        action = self._actions.get(name)
        if action is None:
            raise ActionError("unknown_action", f"There is no action {name}.")
        given = json.loads(payload) if payload else {}
        params = {name: value for name, value in given.items() if not name.startswith(RESERVED)}
        action.check(params)
        # Right before the handler, because a context may go while a client decides about a command.
        if context_id is not None and not self._is_here(context_id):
            raise ActionError("context_gone", f"There is no context {context_id}.")
        await self._link().send({"type": "ack", "command_id": command_id})
        self._report("running", command_id=command_id)
        return await action.handler(
            params, lambda value: self._link().send({"type": "progress", "command_id": command_id}, value)
        )

    async def _end(self, command_id: str, header: dict, value: Any = NOTHING) -> None:
        """Keeps the one end of a command, and sends it if there is a link."""
        try:
            frame = join({**header, "command_id": command_id}, value)
            kept = len(frame.encode()) <= self.longest_frame
        except (TypeError, ValueError, RecursionError):  # The handler returned what is no JSON.
            kept = False
        if not kept:
            frame = join({"type": "error", "code": "result_unavailable", "command_id": command_id})
        self._outbox[command_id] = frame
        if len(self._outbox) > KEPT_ENDS:
            self._report("end_dropped", command_id=self._outbox.popitem(last=False)[0])
        self._report("ended", command_id=command_id, type=header["type"])
        await self._link().send_text(frame)

    def _forget(self, command_id: str) -> None:
        self._outbox.pop(command_id, None)
        self._check_settled()

    def _check_settled(self) -> None:
        if self._running or self._outbox:
            self._settled.clear()
        else:
            self._settled.set()
