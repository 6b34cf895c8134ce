"""Calls an action of a client, and prints the outcome as a line of JSON. PROTOCOL.md, section 7.

    RELAY=ws://127.0.0.1:4400/connect TOKEN=... python3 call.py <client-id> <action> [<params>] [--user <user-id>] [--context-id <id>]

A call whose answer is lost with its link is awaited over the next link, so that it runs once. Exits with 0 if the
command completed.
"""
import argparse
import asyncio
import json
import os
import sys
import uuid
from typing import Any, Optional

from frames import join
from link import Ended, Link


def report(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


class Call:
    """One call, over as many links as it takes."""

    def __init__(self, url: str, token: str, request: argparse.Namespace):
        self._request = request
        self._command_id = request.command_id or str(uuid.uuid4())
        self._admitted = False
        self.answer: "asyncio.Future[dict]" = asyncio.get_running_loop().create_future()
        # A link without client_id belongs to a caller only.
        hello = lambda it, _: join({"type": "hello", "token": it})
        self.link = Link(url, lambda: token, hello, self._opened, self._received, report)

    async def _opened(self, _welcome: dict) -> None:
        given = self._request
        common = {"ref": "1", "user_id": given.user, "client_id": given.client_id, "command_id": self._command_id}
        if self._admitted:
            await self.link.send({"type": "await", **common, "stages": "all", "within_ms": given.respond_within_ms})
        else:
            times = {"connect_within_ms": given.connect_within_ms, "respond_within_ms": given.respond_within_ms}
            place = {"context_id": given.context_id} if given.context_id else {}
            await self.link.send(
                {"type": "invoke", **common, "action": given.action, **place, "stages": "all", **times}, given.params
            )

    async def _received(self, header: dict, payload: Optional[str]) -> None:
        kind = header["type"]
        if kind == "stage":
            # The command is admitted, so it is never invoked again.
            self._admitted = True
            report("stage", stage=header["stage"])
        elif kind == "outcome" and "outcome" in header:
            self._settle({"result": json.loads(payload) if payload else None, **header})
        elif kind == "outcome":
            # The command is live. Its relay shuts down, or the wait was too short.
            await self._opened({})
        elif kind == "refused" and header.get("ref") == "1":
            self._settle(header)

    def _settle(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("client_id")
    parser.add_argument("action")
    parser.add_argument("params", nargs="?", type=json.loads, default={})
    parser.add_argument("--user")
    parser.add_argument("--command-id")
    parser.add_argument("--context-id")
    parser.add_argument("--connect-within-ms", type=int, default=0)
    parser.add_argument("--respond-within-ms", type=int, default=30_000)
    call = Call(os.environ["RELAY"], os.environ["TOKEN"], parser.parse_args())
    links = asyncio.create_task(call.link.run())
    await asyncio.wait([links, call.answer], return_when=asyncio.FIRST_COMPLETED)
    if not call.answer.done():
        try:
            links.result()
        except Ended as ended:
            report("ended_by_relay", code=ended.code, reason=ended.reason)
        return 1
    answer = call.answer.result()
    report(answer["type"], **answer)
    await call.link.close()
    await links
    return 0 if answer.get("outcome") == "completed" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
