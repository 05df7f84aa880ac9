"""Source: a text, image or PDF that stands before the conversation. Read once, held by value, never in saved state."""

from __future__ import annotations

import binascii
import os
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from pollux_like import canonical, checks
from pollux_like.errors import ConfigurationError, SourceError
from pollux_like.memo import Memo
from pollux_like.shown import Shown

Kind = Literal["text", "image", "pdf"]

MAX_SOURCE_BYTES = 32 * 1024 * 1024
"""Largest source, in bytes: Anthropic's request limit (32 MB) is the smallest of the providers'."""

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TEXTS = ("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml")


@dataclass(frozen=True, slots=True, repr=False)
class Source(Memo, Shown):
    """Made by `from_text`, `from_json`, `from_file`, `from_bytes` or `from_uri`.

    `kind` is text, image or pdf; `mime_type` its media type; `name` a label that the model sees. Exactly one of `text`
    (str), `data` (bytes) and `uri` (http or https, fetched by the provider) holds the content.
    """

    kind: Kind
    mime_type: str
    name: str | None = None
    text: str | None = field(default=None, repr=False)
    data: bytes | None = field(default=None, repr=False)
    uri: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        held = [part for part in (self.text, self.data, self.uri) if part is not None]
        if len(held) != 1:
            raise SourceError("a Source holds one of text, data and uri", hint="Use a Source.from_… constructor")
        if self.name is not None:
            checks.filled(self.name, "Source name")
        size = len(held[0])
        if size > MAX_SOURCE_BYTES:
            raise SourceError(
                f"the source {self.name or self.mime_type} has {size:,} bytes",
                hint=f"Send at most {MAX_SOURCE_BYTES:,} bytes, or a URI that the provider fetches",
            )

    @classmethod
    def from_text(cls, text: str, *, name: str | None = None) -> Source:
        """Plain text. Raises SourceError where it is blank."""
        if not checks.text(text, "Source text").strip():
            raise SourceError("the source text is empty", hint="Leave the source out")
        return cls("text", "text/plain", name, text=text)

    @classmethod
    def from_json(cls, value: Any, *, name: str | None = None) -> Source:
        """A JSON value as compact text. Raises ConfigurationError, naming the path, for what JSON cannot carry."""
        try:
            canonical.check_value(value, path="Source value")
        except canonical.JSONPolicyError as error:
            raise SourceError(str(error), hint="Use only what JSON can carry exactly") from None
        return cls("text", "application/json", name, text=canonical.dumps(value))

    @classmethod
    def from_bytes(cls, data: bytes, *, mime_type: str, name: str | None = None) -> Source:
        """Bytes of a PNG, JPEG, GIF or WebP image, of a PDF, or of UTF-8 text."""
        if not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SourceError(f"the source data is {checks.kind(data)}, not bytes", hint="Pass bytes")
        if not data:
            raise SourceError("the source is empty", hint="Leave the source out")
        kind = _kind(mime_type)
        if kind != "text":
            return cls(kind, mime_type, name, data=data)
        try:
            return cls("text", mime_type, name, text=data.decode("utf-8"))
        except UnicodeDecodeError:
            raise SourceError(f"the {mime_type} source is not UTF-8", hint="Decode it and use from_text") from None

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, mime_type: str | None = None, name: str | None = None
    ) -> Source:
        """Reads the file now. Raises SourceError where it is missing, unreadable or of an unknown type."""
        file = os.fspath(path) if hasattr(path, "__fspath__") else path
        if not isinstance(file, str):
            raise SourceError(f"the path is {checks.kind(path)}", hint="Pass a str or Path")
        said = os.path.basename(os.path.normpath(file))
        try:
            with open(file, "rb") as opened:
                size = os.fstat(opened.fileno()).st_size
                if size > MAX_SOURCE_BYTES:
                    raise SourceError(f"{said} has {size:,} bytes", hint=f"Send at most {MAX_SOURCE_BYTES:,} bytes")
                data = opened.read(MAX_SOURCE_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise SourceError(f"{said} cannot be read: {reason}", hint="Check the path and its rights") from None
        return cls.from_bytes(data, mime_type=mime_type or _guess(said), name=name or said)

    @classmethod
    def from_uri(cls, uri: str, *, mime_type: str | None = None, name: str | None = None) -> Source:
        """An http(s) address of an image or PDF that the provider fetches, or a base64 `data:` URI."""
        checks.filled(uri, "Source uri")
        if uri.startswith("data:"):
            head, _, body = uri[5:].partition(",")
            try:
                coded = head.endswith(";base64")
                data = binascii.a2b_base64(body, strict_mode=True) if coded else unquote(body).encode()
            except ValueError:
                raise SourceError("the data: URI is no valid base64", hint="Use Source.from_bytes") from None
            return cls.from_bytes(data, mime_type=mime_type or head.split(";")[0] or "text/plain", name=name)
        parts = urlsplit(uri)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise SourceError("the source URI is neither http(s) nor data:", hint="Use from_file for local files")
        kind = _kind(mime_type or _guess(parts.path))
        if kind == "text":
            raise SourceError("no provider fetches text from a URI", hint="Fetch it and use Source.from_text")
        return cls(kind, mime_type or _guess(parts.path), name, uri=uri)

    @property
    def base64(self) -> str:
        """The bytes of an image or PDF in standard base64; empty for text and URIs."""
        return self.remember("base64", lambda: binascii.b2a_base64(self.data or b"", newline=False).decode())

    @property
    def digest(self) -> str:
        """SHA-256 over what the model gets to see: type, label and content (or address)."""
        return self.remember("digest", lambda: canonical.sha256(canonical.canonical(self.identity())))

    def identity(self) -> dict[str, Any]:
        """JSON that differs when what the model sees differs."""
        content = self.data if self.data is not None else (self.text or self.uri or "")
        return {"kind": self.kind, "mime_type": self.mime_type, "name": self.name, "uri": self.uri is not None,
                "sha256": canonical.sha256(content)}  # fmt: skip


def _guess(name: str) -> str:
    found = {".md": "text/markdown", ".jsonl": "text/plain", ".webp": "image/webp"}.get(
        os.path.splitext(name)[1].lower()
    )
    if not found:
        import mimetypes  # reads tables of the system

        found = mimetypes.guess_type(name)[0]
    if found is None:
        raise SourceError(f"the media type of {name!r} is unknown", hint="Give mime_type=")
    return found


def _kind(mime_type: str) -> Kind:
    checks.filled(mime_type, "mime_type")
    if mime_type in _IMAGES:
        return "image"
    if mime_type == "application/pdf":
        return "pdf"
    if mime_type.startswith("text/") or mime_type in _TEXTS:
        return "text"
    raise SourceError(
        f"no provider of this library takes {mime_type!r}",
        hint=f"Use text, PDF or an image of: {', '.join(_IMAGES)}",
    )


def labelled(source: Source) -> str:
    """The text of a text source with its label, as every provider sends it."""
    return f"[{source.name}]\n{source.text}" if source.name else source.text or ""


def check_media(sources: tuple[Source, ...], accepted: frozenset[str], provider: str) -> None:
    """Refuse a kind of source that the provider and model do not take."""
    for index, source in enumerate(sources):
        if source.kind not in accepted:
            raise ConfigurationError(
                f"sources[{index}] is of kind {source.kind}, which {provider} does not take with this model",
                hint="Leave it out or choose another model",
            )
