"""Ledger: what this simulator issued — ids, sealed blobs, stored responses — and how it knows its own again.

A sealed blob carries its claims (hashes of what it is bound to) under a key of this simulator, so it needs no memory to
be verified and cannot be forged, edited or cut. Blobs from elsewhere, such as recordings, are told to `adopt`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import random
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from pollux_like.canonical import canonical

_ALPHABET = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DATE = re.compile(r"-(20\d{6}|20\d\d-\d\d-\d\d)$")


def digest(value: Any) -> str:
    """Short identity of a JSON value, key order apart."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def family(model: str) -> str:
    """The model's name without its date."""
    return _DATE.sub("", model)


@dataclass(slots=True)
class Stored:
    """A response the server keeps: the whole context up to it, its output, and the body that was sent."""

    context: list[dict[str, Any]]
    body: dict[str, Any]
    model: str


@dataclass(slots=True)
class IssuedItem:
    """An OpenAI output item. `follower` is the next item of its response, `reasoning` the id of the one before it."""

    item: dict[str, Any]
    stored: bool
    follower: dict[str, Any] | None
    reasoning: str | None


@dataclass(slots=True)
class Ledger:
    """Everything one simulator remembers. Used from the server's thread only."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    seed: int | None = None
    responses: dict[str, Stored] = field(default_factory=dict[str, Stored])
    items: dict[str, IssuedItem] = field(default_factory=dict[str, IssuedItem])
    bare_calls: set[str] = field(default_factory=set[str])
    reasoned: set[str] = field(default_factory=set[str])
    adopted: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    prompts: list[str] = field(default_factory=list[str])
    answers: int = field(default=0, init=False)
    _source: random.Random | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.begin()
        self.answers = 0

    def forget(self) -> None:
        """Everything issued so far becomes unknown, and a seed starts again."""
        for memory in (self.responses, self.items, self.bare_calls, self.reasoned, self.adopted, self.prompts):
            memory.clear()
        self.answers = 0

    def begin(self) -> None:
        """Start an answer. With a seed the ids of the n-th answer are always the same, streamed or not."""
        self.answers += 1
        self._source = None if self.seed is None else random.Random(f"{self.seed}:{self.answers}")  # noqa: S311

    def _bytes(self, length: int) -> bytes:
        return secrets.token_bytes(length) if self._source is None else self._source.randbytes(length)

    def hex(self, length: int) -> str:
        """Fresh lower-case hexadecimal digits."""
        return self._bytes((length + 1) // 2).hex()[:length]

    def letters(self, length: int) -> str:
        """Fresh letters and digits, as in base 58."""
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in self._bytes(length))

    def seal(self, claims: dict[str, Any], *, pad: int = 0) -> bytes:
        """An opaque blob of the claims, different each time unless seeded; `pad` more bytes make it realistic."""
        text = json.dumps(claims, separators=(",", ":")).encode() + b" " * pad
        nonce = secrets.token_bytes(12) if self.seed is None else hmac.digest(self.key, text, "sha256")[:12]
        body = bytes(a ^ b for a, b in zip(text, hashlib.shake_256(self.key + nonce).digest(len(text)), strict=True))
        tag = hmac.digest(self.key, nonce + body, "sha256")[:16]
        return nonce + body + tag

    def open(self, blob: bytes) -> dict[str, Any] | None:
        """The claims of a blob sealed here, or None."""
        nonce, body, tag = blob[:12], blob[12:-16], blob[-16:]
        if not body or not hmac.compare_digest(tag, hmac.digest(self.key, nonce + body, "sha256")[:16]):
            return None
        text = bytes(a ^ b for a, b in zip(body, hashlib.shake_256(self.key + nonce).digest(len(body)), strict=True))
        claims: dict[str, Any] = json.loads(text)
        return claims

    def seal_text(self, claims: dict[str, Any], *, prefix: bytes, urlsafe: bool = False, pad: int = 0) -> str:
        """The blob as base64, after a few constant bytes that vendors' blobs begin with."""
        encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
        return encode(prefix + self.seal(claims, pad=pad)).decode()

    def open_text(self, text: object, *, prefix: bytes, urlsafe: bool = False) -> dict[str, Any] | None:
        """The claims of a base64 blob, of an adopted one too, or None where it is not, or no longer, ours."""
        if not isinstance(text, str):
            return None
        if text in self.adopted:
            return self.adopted[text]
        try:
            blob = base64.b64decode(text, altchars=b"-_" if urlsafe else None, validate=True)
        except (binascii.Error, ValueError):
            return None
        return self.open(blob.removeprefix(prefix)) if blob.startswith(prefix) else None

    def padding(self, text: str, claims: dict[str, Any], *, prefix: bytes) -> int:
        """The `pad` with which a blob of these claims has the length of this one."""
        size = len(base64.urlsafe_b64decode(text)) - len(prefix) - 28
        return max(0, size - len(json.dumps(claims, separators=(",", ":")).encode()))

    def adopt(self, text: str, claims: dict[str, Any]) -> None:
        """Take a blob that another server issued as one of ours, with the given claims."""
        self.adopted[text] = claims
