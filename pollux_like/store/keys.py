"""Data keys: one per history segment and one per conversation, each wrapped for every conversation that may read it.

A wrapping is the data key, sealed by the store's `ContinuationSealer` for one scope, conversation and segment. Dropping
the wrappings of a conversation erases what nobody else can read; rotating the sealer's keys rewraps, and no turn is
written anew. Without a sealer the boxes are open: text is stored as it is.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pollux_like.errors import ContinuationError, StoreDamagedError, StoreKeyError
from pollux_like.sealing import KEY_BYTES, ContinuationSealer
from pollux_like.store.database import Transaction

OWN = 0
"""Stands for a segment's id where the key is the conversation's own: of its pending input and its effects."""
_NONCE_BYTES = 12
_OF = "(SELECT number FROM pollux_like_conversations WHERE scope = ? AND number = ?)"


class Box(Protocol):
    """What text goes through on its way to a row. `place` names the row and column, within the reach of the key."""

    def seal(self, text: str, place: str) -> bytes:
        """What is stored in place of the text."""
        ...

    def unseal(self, data: object, place: str) -> str:
        """The text again. Raises StoreDamagedError for what `seal` did not give for that place."""
        ...

    def name(self, digest: str) -> str:
        """What is stored in place of a digest, 64 hex digits: of a sealed text nobody can test a guess by it."""
        ...


class Open:
    """UTF-8, and nothing else."""

    def seal(self, text: str, place: str) -> bytes:
        """As bytes."""
        return text.encode("utf-8")

    def unseal(self, data: object, place: str) -> str:
        """As text."""
        try:
            return raw(data).decode("utf-8")
        except UnicodeDecodeError:
            raise damaged() from None

    def name(self, digest: str) -> str:
        """The digest itself."""
        return digest


class Sealed:
    """AES-256-GCM under a data key with a random nonce for each text, of which a segment holds far fewer than 2^32."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(hmac.digest(key, b"pollux_like texts", "sha256"))
        self._names = hmac.digest(key, b"pollux_like names", "sha256")

    def seal(self, text: str, place: str) -> bytes:
        """Nonce, ciphertext, tag: 28 bytes more than the text."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, text.encode("utf-8"), place.encode("utf-8"))

    def unseal(self, data: object, place: str) -> str:
        """Checked and opened."""
        from cryptography.exceptions import InvalidTag

        sealed = raw(data)
        try:
            plain = self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place.encode("utf-8"))
        except (InvalidTag, ValueError):
            raise damaged() from None
        return plain.decode("utf-8")

    def name(self, digest: str) -> str:
        """HMAC-SHA256 of the digest."""
        return hmac.digest(self._names, digest.encode(), "sha256").hex()


OPEN = Open()


@dataclass(frozen=True, slots=True)
class Key:
    """Where a wrapping belongs."""

    scope: str
    conversation: int
    segment: int

    @property
    def context(self) -> dict[str, str]:
        """What the wrapping is bound to."""
        return {
            "kind": "pollux_like store key", "scope": self.scope, "conversation": str(self.conversation),
            "segment": str(self.segment),
        }  # fmt: skip


class Keys:
    """The boxes of one conversation, each opened when it is first needed."""

    def __init__(
        self, sealer: ContinuationSealer | None, scope: str, conversation: int, wrapped: Mapping[int, str]
    ) -> None:
        self._sealer = sealer
        self.scope = scope
        self._conversation = conversation
        self._wrapped = wrapped
        self._boxes: dict[int, Box] = {}

    def box(self, segment: int) -> Box:
        """The box of a history segment, or of the conversation itself. Raises StoreKeyError."""
        if self._sealer is None:
            return OPEN
        box = self._boxes.get(segment)
        if box is None:
            box = self._boxes[segment] = Sealed(self.data(segment))
        return box

    @property
    def own(self) -> Box:
        """The box of the conversation itself."""
        return self.box(OWN)

    def data(self, segment: int) -> bytes:
        """The data key of a segment."""
        if segment not in self._wrapped or self._sealer is None:
            raise refused()
        return unwrapped(self._sealer, Key(self.scope, self._conversation, segment), self._wrapped[segment])


def of(tx: Transaction, sealer: ContinuationSealer | None, scope: str, number: int, *, sealed: bool) -> Keys:
    """The keys of a stored conversation. Raises StoreKeyError where the sealer cannot open its own, where it is sealed
    and the store has no sealer, or not sealed and the store has one.
    """
    if sealed != (sealer is not None):
        raise StoreKeyError(
            "the conversation is sealed, and the store was opened without a sealer"
            if sealed
            else "the conversation is not sealed, and the store was opened with a sealer",
            hint="Open the store as it was opened when the conversation was made",
        )
    rows = (
        tx.all(f"SELECT segment, wrapped FROM pollux_like_keys WHERE conversation = {_OF}", scope, number)
        if sealed
        else ()
    )
    opened = Keys(sealer, scope, number, dict(rows))
    opened.box(OWN)
    return opened


def made(tx: Transaction, sealer: ContinuationSealer | None, scope: str, number: int, segments: Iterable[int]) -> None:
    """New random data keys, wrapped for a conversation."""
    if sealer is not None:
        for segment in segments:
            _insert(tx, sealer, Key(scope, number, segment), secrets.token_bytes(KEY_BYTES))


def shared(tx: Transaction, sealer: ContinuationSealer | None, given: Keys, to: int, segments: Iterable[int]) -> None:
    """Wrap what one conversation can read for another one of its scope."""
    if sealer is not None:
        for segment in segments:
            _insert(tx, sealer, Key(given.scope, to, segment), given.data(segment))


def _insert(tx: Transaction, sealer: ContinuationSealer, key: Key, data: bytes) -> None:
    wrapped = sealer.seal_text(base64.b64encode(data).decode(), context=key.context)
    tx.run(
        "INSERT INTO pollux_like_keys (conversation, segment, wrapped) "
        "SELECT number, CAST(? AS BIGINT), CAST(? AS TEXT) FROM pollux_like_conversations "
        "WHERE scope = ? AND number = ?",
        key.segment, wrapped, key.scope, key.conversation,
    )  # fmt: skip


def unwrapped(sealer: ContinuationSealer, key: Key, wrapped: str) -> bytes:
    """A data key. Raises StoreKeyError."""
    try:
        return base64.b64decode(sealer.unseal_text(wrapped, context=key.context))
    except ContinuationError:
        raise refused() from None


def erased(tx: Transaction, scope: str, number: int) -> tuple[str, ...]:
    """Drop the wrappings of a conversation. Returns the names of the data keys that nobody can open any more."""
    gone = tx.all(f"DELETE FROM pollux_like_keys WHERE conversation = {_OF} RETURNING segment", scope, number)
    names: list[str] = []
    for (segment,) in sorted(gone):
        if segment == OWN:
            names.append(f"conversation {number}")
        elif tx.one(
            "SELECT 1 FROM pollux_like_keys k JOIN pollux_like_conversations c ON c.number = k.conversation "
            "WHERE c.scope = ? AND k.segment = ? LIMIT 1",
            scope, segment,
        ) is None:  # fmt: skip
            names.append(f"segment {segment}")
    return tuple(names)


def wrappings(tx: Transaction, after: tuple[int, int], limit: int) -> list[tuple[Key, str]]:
    """Some wrappings of all scopes, in order, from behind a place."""
    found = tx.all(
        "SELECT c.scope, k.conversation, k.segment, k.wrapped FROM pollux_like_keys k "
        "JOIN pollux_like_conversations c ON c.number = k.conversation "
        "WHERE k.conversation > ? OR (k.conversation = ? AND k.segment > ?) ORDER BY k.conversation, k.segment LIMIT ?",
        after[0], *after, limit,
    )  # fmt: skip
    return [(Key(*row[:3]), row[3]) for row in found]


def rewrap(tx: Transaction, sealer: ContinuationSealer, batch: Iterable[tuple[Key, str]]) -> int:
    """Compare-and-set each wrapping of a batch that is not under the first key. The number of those that were."""
    count = 0
    for key, wrapped in batch:
        if sealer.is_current(wrapped):
            continue
        data = base64.b64encode(unwrapped(sealer, key, wrapped)).decode()
        count += tx.run(
            "UPDATE pollux_like_keys SET wrapped = ? WHERE conversation = ? AND segment = ? AND wrapped = ?",
            sealer.seal_text(data, context=key.context), key.conversation, key.segment, wrapped,
        )  # fmt: skip
    return count


def any_sealed(tx: Transaction, scope: str) -> bool:
    """Whether a conversation of the scope is sealed."""
    row = tx.one(
        "SELECT 1 FROM pollux_like_keys k JOIN pollux_like_conversations c ON c.number = k.conversation "
        "WHERE c.scope = ? LIMIT 1",
        scope,
    )
    return row is not None


def raw(data: Any) -> bytes:
    """Bytes of a row, which nothing but a change behind the store's back makes another type."""
    if not isinstance(data, bytes):
        raise damaged()
    return data


def refused() -> StoreKeyError:
    """One error for every reason."""
    return StoreKeyError(
        "no key of the sealer opens the conversation", hint="Open the store with the keys that it was sealed with"
    )


def damaged() -> StoreDamagedError:
    """A text is not what was written, or stands where it was not."""
    return StoreDamagedError(
        "a stored text was changed or moved", hint="Restore the conversation, or fork it before that turn"
    )
