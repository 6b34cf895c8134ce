"""Keeps a link to a relay open: hello, heartbeat, reconnecting with jitter. PROTOCOL.md, sections 1, 3, 4, 6 and 9.

It does not renew tokens over an open link (`auth`): it reads the token again for each hello.
"""
import asyncio
import random
import time
from typing import Any, Awaitable, Callable, Optional

import websockets

from frames import NOTHING, join, split

SUBPROTOCOL = "callboard.v1"
#: Close codes after which a client must not reconnect, if no bye says otherwise. 4401 allows it with another token.
FINAL = {4403, 4409}
UNAUTHENTICATED = 4401
WELCOME_WITHIN_S = 15
#: Attempts are counted from 0 again once a link was open for so long.
STABLE_S = 10
#: A frame from the relay may be longer than what the relay accepts, by its header.
LONGEST_FRAME = 2 * 1024 * 1024


class Ended(Exception):
    """The link must not be opened again."""

    def __init__(self, code: int, reason: str):
        super().__init__(f"{code} {reason}")
        self.code, self.reason = code, reason


class Link:
    """One link, opened again after each loss.

    `hello` makes the hello frame for a token and the number of the attempt. `opened` is called with each welcome, `received` with each other frame
    of the relay except ping and bye; `report` with what happens, for a log.
    """

    def __init__(
        self,
        url: str,
        token: Callable[[], str],
        hello: Callable[[str, int], str],
        opened: Callable[[dict], Awaitable[None]],
        received: Callable[[dict, Optional[str]], Awaitable[None]],
        report: Callable[..., None],
    ):
        self._url, self._token, self._hello = url, token, hello
        self._opened, self._received, self._report = opened, received, report
        self._socket: Any = None
        #: How many sockets were opened: the number of the present attempt.
        self._sockets = 0
        self._leaving = False

    async def run(self) -> None:
        """Returns after `close`. Raises Ended when the relay forbids to reconnect."""
        attempt, refused_token = 0, None
        while not self._leaving:
            token = self._token()
            if token == refused_token:
                raise Ended(UNAUTHENTICATED, "unauthenticated")
            bye: dict = {}
            try:
                stable = await self._one(token, bye)
            except (OSError, asyncio.TimeoutError, websockets.WebSocketException) as error:
                # Such as an upgrade that was refused, with its HTTP status.
                stable = False
                self._report("not_opened", reason=str(error))
            if self._leaving:
                return
            code = bye.get("code", 0)
            if code == UNAUTHENTICATED:
                refused_token = token
            elif code and not bye.get("reconnect", code not in FINAL):
                raise Ended(code, bye.get("reason", ""))
            attempt = 0 if stable else attempt
            wait = random.uniform(0, min(30, 0.5 * 2 ** min(attempt, 16)))
            attempt += 1
            await asyncio.sleep(wait + bye.get("after_ms", 0) / 1000)

    async def send(self, header: dict, payload: Any = NOTHING) -> bool:
        """Sends a frame. False if there is no open link now."""
        return await self.send_text(join(header, payload))

    async def send_text(self, frame: str) -> bool:
        if self._socket is None:
            return False
        try:
            await self._socket.send(frame)
            return True
        except websockets.ConnectionClosed:
            return False

    def stay_away(self) -> None:
        """From now on, a lost link is not opened again."""
        self._leaving = True

    async def close(self) -> None:
        """Closes for good, with 1000."""
        self.stay_away()
        if self._socket is not None:
            await self._socket.close(1000)

    async def _one(self, token: str, bye: dict) -> bool:
        """One socket, until it is lost. Puts a bye, or the close code, into `bye`. Whether it was stable."""
        # The relay has a heartbeat of its own, so the pings of WebSocket are not needed.
        options = {"subprotocols": [SUBPROTOCOL], "max_size": LONGEST_FRAME, "ping_interval": None, "close_timeout": 2}
        async with websockets.connect(self._url, **options) as socket:
            opened_at: Optional[float] = None
            silence_s: float = WELCOME_WITHIN_S
            try:
                # The socket before this one is closed, and nothing that it still receives is read.
                self._sockets += 1
                await socket.send(self._hello(token, self._sockets))
                while True:
                    header, payload = split(await asyncio.wait_for(socket.recv(), silence_s))
                    kind = header["type"]
                    if kind == "ping":
                        await socket.send(join({"type": "pong"}))
                    elif kind == "bye":
                        bye.update(header)
                    elif kind == "welcome":
                        opened_at, self._socket = time.monotonic(), socket
                        silence_s = header["dead_ms"] / 1000
                        await self._opened(header)
                    else:
                        await self._received(header, payload)
            except asyncio.TimeoutError:
                # Nothing was heard: the socket is half-open.
                socket.transport.abort()
            except websockets.ConnectionClosed as closed:
                bye.setdefault("code", closed.rcvd.code if closed.rcvd else 0)
            finally:
                self._socket = None
            return opened_at is not None and time.monotonic() - opened_at >= STABLE_S
