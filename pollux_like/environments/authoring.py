"""Authoring: an environment is a class with a prompt, tasks and tools. It knows nothing of HTTP."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, cast, overload

from pydantic import BaseModel, ConfigDict, field_validator

from pollux_like import canonical, checks
from pollux_like.conversation import Content, ImageBlock, JSONObject, Message, TextBlock, ToolSpec, flatten
from pollux_like.errors import ConfigurationError

F = TypeVar("F", bound=Callable[..., Any])

MARK: Final = "_pollux_like_tool"
"""The attribute by which a method is a tool."""


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @field_validator("metadata", check_fields=False)
    @classmethod
    def _json(cls, value: Any) -> Any:
        canonical.check_value(value, path="metadata")
        return value

    @field_validator("reward", check_fields=False)
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("the reward is not a finite number")
        return value


class ToolOutput(_Value):
    """What a tool answers: `blocks` for the model, `metadata` (JSON) and `reward` for the trainer.

    `finished=True` ends the episode. Raises pydantic.ValidationError, a NaN or infinite reward included.
    """

    blocks: list[Content]
    metadata: dict[str, Any] | None = None
    reward: float | None = None
    finished: bool = False


class GroupCandidate(_Value):
    """One of several answers to the same task; `metadata` is the trainer's own."""

    messages: list[Message]
    metadata: dict[str, Any] | None = None


class GroupScore(_Value):
    """The score of the candidate at the same place."""

    reward: float
    metadata: dict[str, Any] | None = None


class Split(_Value):
    """A named part of the tasks."""

    name: str
    type: Literal["train", "validation", "test"]

    @classmethod
    def of(cls, value: Split | str) -> Split:
        """A plain name is its own type where it can be, else validation."""
        if isinstance(value, Split):
            return value
        known: dict[str, Literal["train", "validation", "test"]] = {"train": "train", "test": "test"}
        return cls(name=value, type=known.get(value, "validation"))


class Traits(_Value):
    """How a tool is run."""

    shared: bool = True
    concurrent: bool = False
    exclusive: bool = False
    terminal: bool = False


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, shared: bool = True, concurrent: bool = False, exclusive: bool = False) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, shared: bool = True, concurrent: bool = False, exclusive: bool = False) -> Any:
    """Make a method a tool. It takes nothing or one pydantic model, and returns a ToolOutput.

    Calls of one tool run one after the other within a session, different tools overlap. `concurrent`: calls of this
    one overlap too. `exclusive`: it waits for all that runs, and holds what comes. `shared=False`: only for the tasks
    whose `list_task_tools` names it. The docstring is the description that the model reads.
    """
    if concurrent and exclusive:
        raise ConfigurationError("a tool is both concurrent and exclusive", hint="Choose one of the two")

    def marked(method: F) -> F:
        return _mark(method, shared=shared, concurrent=concurrent, exclusive=exclusive)

    return marked if function is None else marked(function)


def terminal(function: F) -> F:
    """Make the `@tool` below the one that takes the final answer; the model does not see it.

    The harness gives it the first assistant message without tool calls, as its only field. It is exclusive.
    """
    return _mark(function, terminal=True)


def _mark(function: F, **traits: bool) -> F:
    setattr(function, MARK, {**getattr(function, MARK, {}), **traits})
    return function


class Environment:
    """A task environment: subclass it, and serve it with `Server`.

    Not `pollux_like.Environment`, which is what a model works with in a turn. Override `get_messages` (a
    conversation) or `get_prompt` (blocks); each defaults to the other. Every method may be sync, which runs in a
    thread, or async. One instance serves one session with one task.
    """

    def __init__(self, task_spec: JSONObject | None = None, secrets: Mapping[str, str] | None = None) -> None:
        self.task_spec: JSONObject = {} if task_spec is None else task_spec
        self.secrets: Mapping[str, str] = {} if secrets is None else secrets

    def setup(self) -> Awaitable[None] | None:
        """Runs once, after construction and before everything else; requests wait for it."""

    def teardown(self) -> Awaitable[None] | None:
        """Runs once, after the last tool has ended."""

    def get_messages(self) -> Sequence[Message] | Awaitable[Sequence[Message]]:
        """The task as a conversation. By default one user message with the blocks of `get_prompt`."""
        return self._wrapped()

    def get_prompt(self) -> Sequence[TextBlock | ImageBlock] | Awaitable[Sequence[TextBlock | ImageBlock]]:
        """The task as blocks. By default the conversation of `get_messages`, flattened."""
        return self._flattened()

    async def _wrapped(self) -> Sequence[Message]:
        _check_surface(type(self))
        return [Message(role="user", blocks=list(await _value(self.get_prompt())))]

    async def _flattened(self) -> Sequence[TextBlock | ImageBlock]:
        _check_surface(type(self))
        return flatten(list(await _value(self.get_messages())))

    @classmethod
    def list_splits(cls) -> Sequence[Split | str]:
        """The parts of the tasks, by name."""
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> Sequence[JSONObject] | Awaitable[Sequence[JSONObject]]:
        """The tasks of a split. Read once per server. Leave it out where `num_tasks` and `get_task` are overridden."""
        raise NotImplementedError

    @classmethod
    def num_tasks(cls, split: str) -> int | Awaitable[int]:
        """How many tasks a split has; for splits too large to list."""
        raise NotImplementedError

    @classmethod
    def get_task(cls, split: str, index: int) -> JSONObject | Awaitable[JSONObject]:
        """Task number `index` from 0; for splits too large to list."""
        raise NotImplementedError

    def list_task_tools(self) -> Sequence[str | ToolSpec] | Awaitable[Sequence[str | ToolSpec]]:
        """The tools of this task alone: names of `@tool(shared=False)` methods, or a ToolSpec with another schema."""
        return []

    def score_group(
        self, candidates: Sequence[GroupCandidate]
    ) -> Sequence[GroupScore | float] | Awaitable[Sequence[GroupScore | float]]:
        """Score several answers against each other, one score each in the same order. Optional."""
        raise NotImplementedError


async def _value(given: Any) -> Any:
    return await given if inspect.isawaitable(given) else given


def overrides(cls: type[Environment], name: str) -> bool:
    """Whether a subclass defines the method itself."""
    own, base = getattr(cls, name), getattr(Environment, name)
    return getattr(own, "__func__", own) is not getattr(base, "__func__", base)


def _check_surface(cls: type[Environment]) -> None:
    if not overrides(cls, "get_prompt") and not overrides(cls, "get_messages"):
        raise ConfigurationError(
            f"{cls.__name__} has neither get_messages nor get_prompt", hint="Override one of the two"
        )


def check_class(value: object) -> type[Environment]:
    """Refuse what cannot be served."""
    if not isinstance(value, type) or not issubclass(value, Environment):
        raise ConfigurationError(
            f"the server was given {checks.kind(cast('object', value))}, which is no environment class",
            hint="Give subclasses of pollux_like.environments.Environment, not instances",
        )
    _check_surface(value)
    return value


def marks(function: object) -> Traits | None:
    """How a method is run as a tool; None where it is none."""
    found = cast("dict[str, bool] | None", getattr(function, MARK, None))
    return None if found is None else Traits(**found)
