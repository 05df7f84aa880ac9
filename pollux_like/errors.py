"""The error tree. Every error is two sentences: what is so, and what to do (`hint`).

PolluxLikeError
├── ConfigurationError          bad input, found before any network I/O; names the field or index
│   ├── MissingPackageError     a package of an extra is not installed; carries the extra; a ModuleNotFoundError too
│   ├── SourceError             a file, URI or media type that cannot be used
│   ├── FormatError             a conversation of blocks that a provider's format cannot hold; a ValueError too
│   ├── SchemaError             a schema of typed values that is malformed or cannot be satisfied; carries the path
│   └── ImageInputError         an image, where the engine sees none
├── ContinuationError           saved state that is tampered, foreign, cut, too deep, too large or too new
├── ToolCallParseError          arguments of a tool call that are no JSON object
├── StructuredOutputError       the reply does not fit the requested output; carries the text and the turn
├── StoreError                  a conversation store could not do what was asked
│   ├── ConflictError           another writer was first; carries both revisions
│   ├── UnknownConversationError  there is none of that id in that scope
│   ├── PendingInputError       an input is under way, here or with another worker
│   ├── IdempotencyError        the key was used with another input
│   ├── UnknownEffectError      a tool call was begun, and nobody knows whether it was done
│   ├── StoreDamagedError       what is stored was changed, cut or corrupted
│   ├── StoreKeyError           sealed with a key that was not given, or not sealed where it should be
│   ├── StoreSchemaError        the tables are newer than this library, or older and not to be changed
│   ├── StoreReadOnlyError      the file or server takes no writes
│   ├── StoreFullError          no space is left
│   └── StoreUnavailableError   busy, restarting, unreachable; `maybe_written` says whether it may have been done
├── EnvironmentServerError      an environment server refused, failed or could not be reached; carries the status
│   ├── ToolRefusedError        the tool was not run: unknown, bad input, episode over; carries the reason
│   └── ToolFailedError         the tool was run and failed, or may have been
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


class MissingPackageError(ConfigurationError, ModuleNotFoundError):
    """A package that a feature needs is not installed. `extra` brings it; `name` is the package, as it is imported."""

    def __init__(self, message: str, *, hint: str, extra: str, name: str) -> None:
        super().__init__(message, hint=hint)
        self.extra = extra
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        """`name` is no member of the dict."""
        return _missing_again, (self.message, self.hint, self.extra, self.name)


def _missing_again(message: str, hint: str, extra: str, name: str) -> MissingPackageError:
    return MissingPackageError(message, hint=hint, extra=extra, name=name)


def missing_extra(extra: str, error: ImportError, *, package: str | None = None, then: str = "") -> MissingPackageError:
    """The error for a package that could not be imported; its hint is the command that installs it.

    `package`: what to call it, where the name that is imported is another one. `then`: what to do after that.
    """
    name = (error.name or str(error)).partition(".")[0]
    return MissingPackageError(
        f"the package {package or name} is not installed",
        hint=f'Run: pip install "pollux-like[{extra}]"{then}',
        extra=extra,
        name=name,
    )


class SourceError(ConfigurationError):
    """A source that cannot be read or has a media type nobody accepts."""


class FormatError(ConfigurationError, ValueError):
    """A conversation of blocks that the format cannot hold exactly; names message, block and format."""


class SchemaError(ConfigurationError):
    """A schema of typed values that is malformed or unsatisfiable. `path` is the place: `schema.number.pattern`."""

    def __init__(self, message: str, *, hint: str, path: str) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class ImageInputError(ConfigurationError):
    """An image in a message, or for an engine that sees none."""


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
    """Another writer was first; nothing was written. `expected` is the caller's revision, `actual` the stored one."""

    def __init__(self, message: str, *, hint: str, expected: int | None = None, actual: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.expected = expected
        self.actual = actual


class UnknownConversationError(StoreError):
    """No conversation of that id in that scope; one of another scope looks the same."""


class PendingInputError(StoreError):
    """The conversation has an input under way, of another worker or of one that crashed."""


class IdempotencyError(StoreError):
    """An idempotency key comes with another input than the one it was used with."""


class UnknownEffectError(StoreError):
    """A tool call was claimed and not finished: its side effect may have happened. The application has to decide."""


class StoreDamagedError(StoreError):
    """What is stored was changed, cut or corrupted; nothing of it is returned."""


class StoreKeyError(StoreError):
    """A conversation is sealed and no key that was given opens it, or is not sealed in a store that seals."""


class StoreSchemaError(StoreError):
    """The tables are of a version that this library cannot use."""


class StoreReadOnlyError(StoreError):
    """The file or the server takes no writes; nothing was written."""


class StoreFullError(StoreError):
    """No space is left; nothing was written."""


class StoreUnavailableError(StoreError):
    """The store is busy, restarting or unreachable. `maybe_written`: the loss fell into the commit."""

    def __init__(self, message: str, *, hint: str, maybe_written: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.maybe_written = maybe_written


class EnvironmentServerError(PolluxLikeError):
    """An environment server refused or failed (`status`), or could not be reached (`status` is None)."""

    def __init__(self, message: str, *, hint: str, status: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class ToolRefusedError(EnvironmentServerError):
    """The tool was not run. `reason`: not_found, name_collision, input_validation, episode_finished, or None."""

    def __init__(self, message: str, *, hint: str, reason: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class ToolFailedError(EnvironmentServerError):
    """The tool was run and failed, or its result was lost: it may have had its effect and is not run again."""


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
