"""What the three dialects have in common: a recorded request taken apart, an expected output, and the comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pollux_like import Environment, Message, ToolCall


@dataclass(frozen=True)
class Passage:
    """What user and tools said, and the provider's own items that followed (none in the last passage)."""

    said: tuple[Message, ...]
    replied: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Asked:
    """A recorded request in our words. `unsaid` are its items that our portable messages cannot hold."""

    model: str
    environment: Environment
    arguments: dict[str, Any]
    options: dict[str, Any]
    streaming: bool
    passages: tuple[Passage, ...]
    previous: str | None = None
    unsaid: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Expected:
    """What a recorded answer says, read from it without the library. `items` are the provider's own, in order."""

    items: tuple[dict[str, Any], ...]
    text: str
    reasoning: str
    refusal: str | None
    calls: tuple[tuple[str, str, str], ...]
    raw: str
    usage: tuple[int, int, int, int]
    """Input, output, cached and reasoning tokens."""
    id: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class Dialect:
    """How one wire is read; see responses.py, messages.py and chat.py."""

    name: str
    asked: Callable[[Mapping[str, Any]], Asked]
    expected: Callable[[Any, list[dict[str, Any]]], Expected]
    meaning: Callable[[Mapping[str, Any]], dict[str, Any]]
    """A request body with everything that says the same written the same; each step states its reason there."""
    accepted_tools: Callable[[dict[str, Any], Any, list[dict[str, Any]]], dict[str, Any]]
    """The recorded body with its tools as the provider understood them."""
    call: Callable[[dict[str, Any]], ToolCall | None]
    portable: Callable[[tuple[dict[str, Any], ...]], Message | None]
    """The replied items as a portable message; None where they hold more than that."""
    omitted_there: Mapping[str, str]
    """ "kind.member" that we send and the recording's client left out, each with its reason."""
    omitted_here: Mapping[str, str]
    """ "kind.member" that the recording's client sent and we leave out, each with its reason."""
    input_key: str = "messages"


def passages(items: list[tuple[str, Any]]) -> tuple[Passage, ...]:
    """From ("said", Message) and ("replied", item) in order. The last passage is the one that waits for an answer."""
    result: list[Passage] = []
    said: list[Message] = []
    replied: list[dict[str, Any]] = []
    for kind, value in items:
        if kind == "said" and replied:
            result.append(Passage(tuple(said), tuple(replied)))
            said, replied = [], []
        if kind == "said":
            said.append(value)
        else:
            replied.append(value)
    result.append(Passage(tuple(said), tuple(replied)))
    return (*result, Passage(())) if replied else tuple(result)


def text_of(content: Any) -> str | None:
    """The text of a content member; None where it holds anything else. Parts are joined as portable messages do."""
    if content is None or isinstance(content, str):
        return content or ""
    if any(part.get("type") not in ("text", "input_text", "output_text") for part in content):
        return None
    return "\n\n".join(part["text"] for part in content)


def without_nulls(value: Any) -> Any:
    """Null and absent are the same to every one of these APIs."""
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


def kind_of(value: dict[str, Any], outer: str) -> str:
    """What an object is, for the tables of allowed differences: its type, its role, or the place that it stands in."""
    return str(value.get("type") or value.get("role") or outer)


def differences(ours: Any, theirs: Any, dialect: Dialect, used: set[str], path: str = "request") -> Iterator[str]:
    """Where two bodies in their common form differ beyond what the dialect's tables allow. Key order does not count."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        kind = kind_of(theirs, path.rsplit(".", 1)[-1])
        for key in ours.keys() | theirs.keys():
            rule = f"{kind}.{key}"
            if key not in theirs:
                if rule in dialect.omitted_there:
                    used.add(f"{dialect.name}:{rule}")
                else:
                    yield f"{path}.{key} ({rule}): only we send {ours[key]!r:.200}"
            elif key not in ours:
                if rule in dialect.omitted_here:
                    used.add(f"{dialect.name}:{rule}")
                else:
                    yield f"{path}.{key} ({rule}): only the recording sends {theirs[key]!r:.200}"
            else:
                yield from differences(ours[key], theirs[key], dialect, used, f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            kinds = [[kind_of(one, "?") if isinstance(one, dict) else "?" for one in side] for side in (ours, theirs)]
            yield f"{path}: we send {kinds[0]}, the recording {kinds[1]}"
        else:
            for index, (our, their) in enumerate(zip(ours, theirs, strict=True)):
                yield from differences(our, their, dialect, used, f"{path}[{index}]")
    elif ours != theirs or isinstance(ours, bool) is not isinstance(theirs, bool):
        yield f"{path}: we send {ours!r:.200}, the recording {theirs!r:.200}"
