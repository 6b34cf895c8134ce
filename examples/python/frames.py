"""Frames of `callboard.v1`: a JSON header and, after a line feed, an optional JSON payload. PROTOCOL.md, section 2."""
import json
from typing import Any, Optional, Tuple

#: A payload of null, unlike no payload.
NOTHING = object()


def join(header: dict, payload: Any = NOTHING) -> str:
    """The text of a frame. Members of the header that are None are left out."""
    text = _json({name: value for name, value in header.items() if value is not None})
    return text if payload is NOTHING else text + "\n" + _json(payload)


def split(text: str) -> Tuple[dict, Optional[str]]:
    """The header of a frame, and the text of its payload. Only the first line feed separates them."""
    header, separator, payload = text.partition("\n")
    return json.loads(header), payload if separator else None


def _json(value: Any) -> str:
    # json.dumps escapes line feeds in strings, so a header never contains a raw one. NaN is not JSON.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
