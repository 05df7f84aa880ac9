"""Sealing: a continuation as an encrypted token that its holder can neither read nor change.

AES-256-GCM (NIST SP 800-38D), with a key of its own for every token, derived by HKDF-SHA256 (RFC 5869) from the sealing
key and 24 random bytes: so there is no bound on the number of tokens under one sealing key. Needs the extra `seal`.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pollux_like import canonical, checks
from pollux_like.continuation import Continuation
from pollux_like.errors import ConfigurationError, ContinuationError, missing_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
MAX_TOKEN_CHARS = 96 * 1024 * 1024
"""Longest token that is looked at: base64 of the largest continuation, with room for its escapes."""
_MARK = "plx1"
_SALT_BYTES = 24
_NONCE = bytes(12)  # every key is used once


class ContinuationSealer:
    """Seals with the first key, opens with any of them.

    `keys`: each 32 random bytes, or their base64 text as `ContinuationSealer.new_key()` gives it. To rotate, put the
    new key first and keep the old ones for as long as their tokens live. Immutable, and safe to share between threads.

    Raises ConfigurationError for keys of another length, for the same key twice, and where cryptography is missing.
    """

    __slots__ = ("_keys",)
    _keys: dict[str, bytes]

    def __init__(self, keys: Sequence[bytes | str]) -> None:
        _cipher(bytes(KEY_BYTES))
        if isinstance(keys, (str, bytes)) or not keys:
            raise ConfigurationError("keys is no list of keys", hint="Give a list, the key to seal with first")
        self._keys = {}
        for index, key in enumerate(keys):
            raw = _raw(key, f"keys[{index}]")
            name = canonical.sha256(b"pollux_like key id\0" + raw)[:8]
            if name in self._keys:
                raise ConfigurationError(f"keys[{index}] is there already", hint="Give each key once")
            self._keys[name] = raw

    @staticmethod
    def new_key() -> str:
        """32 random bytes as base64 text, for an environment variable or a secret store."""
        return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()

    def seal(
        self, continuation: Continuation, *, context: Mapping[str, str] | None = None, ttl_s: float | None = None
    ) -> str:
        """A token of URL-safe characters, fit for a cookie (browsers keep about 4,000 characters) or a page.

        `context` is what the token is bound to, such as tenant, user and `environment.fingerprint(...)`: it is not in
        the token, and `unseal` must be given the same. `ttl_s`: seconds until it expires, by the clock of whoever opens
        it. The length of a token tells the length of the conversation; nothing else of it can be read.
        """
        if not isinstance(continuation, Continuation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"continuation is {checks.kind(continuation)}", hint="Pass Output.continuation")
        until = None if ttl_s is None else time.time() + checks.number(ttl_s, "ttl_s", least=0.001, most=1e9)
        text = canonical.dumps({"expires": until, "continuation": continuation.to_jsonable()})
        return self.seal_text(text, context=context)

    def unseal(
        self, token: str, *, context: Mapping[str, str] | None = None, expected_provider: str | None = None
    ) -> Continuation:
        """The continuation of a token.

        Raises ContinuationError, always with the same words, for a token that was changed, cut, has expired, was sealed
        with an unknown key or for another context, or is no token.
        """
        try:
            fields: Any = json.loads(self.unseal_text(token, context=context))
            until = fields["expires"]
            if until is not None and time.time() >= until:
                raise _refused()
            saved = fields["continuation"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _refused() from None
        return Continuation.from_jsonable(saved, expected_provider=expected_provider)

    def seal_text(self, text: str, *, context: Mapping[str, str] | None = None) -> str:
        """Any text, sealed in the same way, without an end. Raises ConfigurationError for what UTF-8 does not have."""
        checks.text(text, "text")
        name, key = next(iter(self._keys.items()))
        salt = os.urandom(_SALT_BYTES)
        sealed = _cipher(_derived(key, salt)).encrypt(_NONCE, text.encode("utf-8"), _bound(name, context))
        return f"{_MARK}.{name}.{_text(salt + sealed)}"

    def unseal_text(self, token: str, *, context: Mapping[str, str] | None = None) -> str:
        """The text of `seal_text`. Raises ContinuationError as `unseal` does."""
        from cryptography.exceptions import InvalidTag

        bound = _bound("", context)  # a context that cannot be used is the caller's mistake, and said before
        try:
            if not isinstance(token, str) or len(token) > MAX_TOKEN_CHARS:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise _refused()
            mark, name, body = token.split(".")
            key = self._keys.get(name)
            if mark != _MARK or key is None:
                raise _refused()
            raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
            if _text(raw) != body:  # the last character has bits that mean nothing: one token, one spelling
                raise _refused()
            salt, sealed = raw[:_SALT_BYTES], raw[_SALT_BYTES:]
            return _cipher(_derived(key, salt)).decrypt(_NONCE, sealed, name.encode() + bound).decode("utf-8")
        except (InvalidTag, ValueError, binascii.Error):
            raise _refused() from None

    def is_current(self, token: str) -> bool:
        """The token was sealed with the first key; one that was not, or is no token, should be sealed again."""
        current = f"{_MARK}.{next(iter(self._keys))}."
        return isinstance(token, str) and token.startswith(current)  # pyright: ignore[reportUnnecessaryIsInstance]

    def __repr__(self) -> str:
        return f"ContinuationSealer(keys={len(self._keys)})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("A ContinuationSealer holds keys and is not pickled. Make it again where it is needed.")


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _raw(key: object, where: str) -> bytes:
    raw = key
    if isinstance(key, str):
        try:
            raw = base64.b64decode(key, altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raw = b""
    if not isinstance(raw, bytes) or len(raw) != KEY_BYTES:
        raise ConfigurationError(
            f"{where} is not {KEY_BYTES} bytes long", hint="Make one with ContinuationSealer.new_key()"
        )
    return raw


def _bound(name: str, context: Mapping[str, str] | None) -> bytes:
    """What is authenticated beside the text: the key's name and the context."""
    fields = checks.maybe_object(context, "context")
    for one, value in fields.items():
        if not isinstance(value, str):
            raise ConfigurationError(f"context[{one!r}] is {checks.kind(value)}", hint="Give texts only")
    return f"{name}{canonical.canonical(fields)}".encode()


def _derived(key: bytes, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=salt, info=b"pollux_like.sealed.1").derive(key)


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError as error:
        raise missing_extra("seal", error) from None
    return AESGCM(key)


def _refused() -> ContinuationError:
    """One error for every reason, so that it helps nobody who tries tokens."""
    return ContinuationError(
        "the sealed continuation cannot be opened", hint="Begin a new conversation; the token may have expired"
    )
