"""A client of callboard with the action `lamp.set`, and with the one by which `callboard conformance` checks a client.

    RELAY=ws://127.0.0.1:4400/connect TOKEN=... python3 lamp.py [client-id]

Prints a line of JSON for each thing that happens. SIGTERM lets running commands end before it leaves. Needs Python 3.9
and the package `websockets`, version 10 or newer.
"""
import asyncio
import json
import os
import signal
import sys
import uuid
from typing import Any, Awaitable, Callable, Optional

from commands import Action, ActionError, Commands
from frames import join
from link import Ended, Link

LEAVE_WITHIN_S = 10


def report(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


class Lamp:
    """The program behind the action. It fades for `fade_ms`."""

    ADVERTISEMENT = {
        "name": "lamp.set",
        "summary": "Switches the lamp",
        "checks_arguments": True,
        "schema": {
            "type": "object",
            "required": ["on"],
            "properties": {"on": {"type": "boolean"}, "fade_ms": {"type": "integer", "minimum": 0}, "note": {}},
        },
    }

    def __init__(self) -> None:
        self.on = False

    @staticmethod
    def check(params: dict) -> None:
        if not isinstance(params.get("on"), bool):
            raise ActionError("arguments_invalid", "/on must be boolean")
        fade = params.get("fade_ms", 0)
        if not isinstance(fade, int) or fade < 0:
            raise ActionError("arguments_invalid", "/fade_ms must be an integer of at least 0")

    async def set(self, params: dict, progress: Callable[[Any], Awaitable[Any]]) -> Any:
        fade_ms = params.get("fade_ms", 0)
        if fade_ms > 60_000:
            raise RuntimeError("the lamp cannot fade that slowly")
        if fade_ms > 0:
            await progress({"fading_ms": fade_ms})
            await asyncio.sleep(fade_ms / 1000)
        was, self.on = self.on, params["on"]
        return {"was": was, "is": self.on, "note": params.get("note")}


class Echo:
    """The action of `callboard conformance`: it returns its params, after it did what they ask for."""

    ADVERTISEMENT = {
        "name": "conformance.echo",
        "checks_arguments": True,
        "schema": {
            "type": "object",
            "properties": {"progress": {}, "wait_ms": {"type": "integer", "minimum": 0}, "fail": {"type": "string"}},
        },
    }

    @staticmethod
    def check(params: dict) -> None:
        if not isinstance(params.get("wait_ms", 0), int):
            raise ActionError("arguments_invalid", "/wait_ms must be an integer")

    @staticmethod
    async def run(params: dict, progress: Callable[[Any], Awaitable[Any]]) -> Any:
        if "progress" in params:
            await progress(params["progress"])
        await asyncio.sleep(params.get("wait_ms", 0) / 1000)
        if "fail" in params:
            raise RuntimeError(params["fail"])
        return params


class Client:
    """A link, the commands that arrive over it, and an orderly end."""

    def __init__(self, url: str, token: Callable[[], str], client_id: str):
        lamp = Lamp()
        offered = [Action(Lamp.ADVERTISEMENT, lamp.check, lamp.set), Action(Echo.ADVERTISEMENT, Echo.check, Echo.run)]
        self._actions = {action.name: action for action in offered}
        self._client_id = client_id
        # New for each start of the program, and the same whenever this run reconnects.
        self._instance_id = str(uuid.uuid4())
        # The place where the commands of this client run. Its id is never used again.
        self._context_id = f"lamp-{uuid.uuid4()}"
        self._commands = Commands(lambda: self.link, self._actions, self._context_id.__eq__, report)
        self.link = Link(url, token, self._hello, self._opened, self._received, report)
        self._closing = False
        self._closed = asyncio.Event()

    def _hello(self, token: str, attempt: int) -> str:
        own = {"client_id": self._client_id, "instance_id": self._instance_id, "client_type": "console", "places": True}
        actions = [action.advertisement for action in self._actions.values()]
        header = {"type": "hello", "token": token, **own, "link_attempt": attempt}
        received = self._commands.unacknowledged()
        return join(header, {"metadata": {"language": "python"}, "actions": actions, "received": received})

    async def _opened(self, welcome: dict) -> None:
        report("connected", epoch=welcome["epoch"], resumed=welcome.get("resumed", False))
        self._commands.longest_frame = welcome["max_frame_bytes"]
        if self._closing:
            await self.link.send({"type": "closing"})
        else:
            place = {"context_id": self._context_id, "status": "active", "ownership": "worker", "title": "The lamp"}
            await self.link.send({"type": "report"}, {"contexts": {"snapshot": True, "set": [place]}})
        await self._commands.resend()

    async def _received(self, header: dict, payload: Optional[str]) -> None:
        kind = header["type"]
        if kind == "closed":
            # A lost link is not opened again: this would replace an instance that has connected since.
            self.link.stay_away()
            self._closed.set()
        elif kind == "replaced":
            report("replaced", instance_id=header["instance_id"])
        elif kind == "refused":
            report("refused", frame=header.get("frame"), code=header["code"])
            if header.get("frame") == "closing":
                self._commands.refusing = True
                self._closed.set()
        await self._commands.received(header, payload)

    async def leave(self) -> None:
        """Takes no further command, runs those that it has, waits until the relay has each end, and closes."""
        self._closing = True
        try:
            await asyncio.wait_for(self._finish(), LEAVE_WITHIN_S)
        except asyncio.TimeoutError:
            report("left_early")
        await self.link.close()

    async def _finish(self) -> None:
        if await self.link.send({"type": "closing"}):
            await self._closed.wait()
        await self._commands.settled()


async def main() -> int:
    client_id = sys.argv[1] if len(sys.argv) > 1 else "lamp-1"
    client = Client(os.environ["RELAY"], lambda: os.environ["TOKEN"], client_id)
    leaving = []

    def terminate() -> None:
        if not leaving:
            leaving.append(asyncio.create_task(client.leave()))

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    try:
        await client.link.run()
    except Ended as ended:
        report("ended_by_relay", code=ended.code, reason=ended.reason)
        return 1
    report("left")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
