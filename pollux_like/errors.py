"""The error tree. Every error is two sentences: what is so, and what to do (`hint`).

PolluxLikeError
├── ConfigurationError          bad input, found before any network I/O; names the field or index
│   └── SourceError             a file, URI or media type that cannot be used
├── ContinuationError           saved state that is tampered, foreign, cut, too deep, too large or too new
├── ToolCallParseError          arguments of a tool call that are no JSON object
├── StructuredOutputError       the reply does not fit the requested output; carries the text and the turn
├── StoreError
│   └── ConflictError
└── APIError                    the provider, or the way to it, failed; `retryable` says whether again may help
    ├── AuthenticationError     401, 403
    ├── RateLimitError          429
    ├── ContextOverflowError    the conversation is longer than the model's window
    ├── ProviderTimeoutError    no answer in time
    └── StreamInterruptedError  the reply ended without its terminal event; `partial_text` is for display only
"""

from __future__ import annotations

from typing import Any


class PolluxLikeError(Exception):
    """Base of every error of this library.

    `message` says what is so and `hint` what to do; `str(error)` is both.
    """

    message: str
    hint: str

    def __init__(self, message: str, *, hint: str) -> None:
        self.message = message.rstrip(".")
        self.hint = hint.rstrip(".")
        super().__init__(f"{self.message}. {self.hint}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles keep everything, so that a worker process can hand its error on."""
        return _made, (type(self), self.args, dict(self.__dict__))


def _made(kind: type[PolluxLikeError], args: tuple[Any, ...], state: dict[str, Any]) -> PolluxLikeError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ConfigurationError(PolluxLikeError):
    """Bad input. Raised before any byte leaves the process; nothing was changed."""


class SourceError(ConfigurationError):
    """A source that cannot be read or has a media type nobody accepts."""


class ContinuationError(PolluxLikeError):
    """Saved state that is refused whole: tampered, foreign, cut, over-deep, over-large or of a newer version."""


class ToolCallParseError(PolluxLikeError):
    """The arguments of a tool call are not one JSON object.

    The raw text is in `arguments_text`, and stays out of `str(error)`: it is part of the transcript.
    """

    def __init__(self, message: str, *, hint: str, tool_name: str, tool_call_id: str, arguments_text: str) -> None:
        super().__init__(message, hint=hint)
        self.tool_name = tool_name
        self.tool_call_id = tool_call_id
        self.arguments_text = arguments_text


class StructuredOutputError(PolluxLikeError):
    """The model answered, but not in the requested form.

    `text` is the answer as it came. `output` is the whole turn, `structured` apart, with its continuation: the
    conversation can go on.
    """

    def __init__(self, message: str, *, hint: str, text: str, output: Any) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.output = output


class StoreError(PolluxLikeError):
    """A conversation store could not do what was asked."""


class ConflictError(StoreError):
    """Another writer was first; nothing was written."""


class APIError(PolluxLikeError):
    """The provider refused or failed.

    Attributes: `provider`; `status` (HTTP status, None where no response came); `code` and `type` (the provider's own
    words); `retryable`; `retry_after_s` (seconds the provider asked to wait); `request_id` (the provider's).
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str,
        provider: str | None = None,
        status: int | None = None,
        code: str | None = None,
        type: str | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.status = status
        self.code = code
        self.type = type
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.request_id = request_id


class AuthenticationError(APIError):
    """The key is missing, wrong or not allowed to do this (401, 403)."""


class RateLimitError(APIError):
    """Too many requests, or no quota left (429)."""


class ContextOverflowError(APIError):
    """The conversation does not fit the model's context window."""


class ProviderTimeoutError(APIError):
    """The provider sent nothing for `timeout_s` seconds."""


class StreamInterruptedError(APIError):
    """The reply stopped before the provider said that it was complete.

    `partial_text` is what came, for display only: the turn does not exist, and the continuation that it was made
    from is still good.
    """

    def __init__(self, message: str, *, hint: str, partial_text: str = "", **details: Any) -> None:
        super().__init__(message, hint=hint, **details)
        self.partial_text = partial_text
