"""The public names as lines of text, one for each name, method, property and field, with what it takes.

python tests/public_api.py    writes tests/public_api.txt
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".txt")
MODULES = (
    "pollux_like", "pollux_like.sync", "pollux_like.errors", "pollux_like.store", "pollux_like.store.sync",
    "pollux_like.testing", "pollux_like.simulator", "pollux_like.environments", "pollux_like.typed",
    "pollux_like.typed.sync", "pollux_like.conversation", "pollux_like.viewer", "pollux_like.provider",
    "pollux_like.engine",
)  # fmt: skip


def text() -> str:
    """All of it, sorted, as the file has it."""
    found = {line for name in MODULES for line in _module(name)}
    return "".join(f"{line}\n" for line in sorted(found))


def _module(name: str) -> Iterator[str]:
    module = import_module(name)
    listed = getattr(module, "__all__", None) or [
        one for one, value in vars(module).items()
        if not one.startswith("_") and getattr(value, "__module__", None) == name
        if inspect.isclass(value) or inspect.isroutine(value)
    ]  # fmt: skip
    for one in listed:
        value = getattr(module, one)
        if inspect.isclass(value):
            yield from _class(f"{name}.{one}", value)
        elif inspect.isroutine(value):
            yield f"{name}.{one}{_taken(value)}"
        else:
            yield f"{name}.{one}: {type(value).__name__}"


def _class(path: str, value: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {path}({bases})"
    models = getattr(value, "model_fields", None)
    if models is not None:
        for name, one in models.items():
            yield f"{path}.{name}: field{'' if one.is_required() else ', optional'}"
    elif not hasattr(value, "_is_protocol") and any("__init__" in vars(owner) for owner in _ours(value)):
        yield f"{path}{_taken(value)}"
    for owner in _ours(value):
        if models is None:
            for name, annotation in inspect.get_annotations(owner).items():
                if not name.startswith("_"):
                    yield f"{path}.{name}: {_text(annotation)}"
        for name, member in vars(owner).items():
            if name.startswith("_") or (models is not None and name in models):
                continue
            if isinstance(member, property):
                yield f"{path}.{name}: property {_text(inspect.get_annotations(member.fget).get('return', ''))}"
            elif isinstance(member, (classmethod, staticmethod)):
                yield f"{type(member).__name__} {path}.{name}{_taken(member.__func__)}"
            elif inspect.isfunction(member):
                yield f"{path}.{name}{_taken(member)}"


def _ours(value: type) -> list[type]:
    """A class and those that it is made of, where they are the library's own."""
    return [owner for owner in value.__mro__ if owner.__module__.partition(".")[0] == "pollux_like"]


def _taken(value: Any) -> str:
    """The parameters and the result; what comes of a factory, or is longer than a word, stands as `...`."""
    signature = inspect.signature(value)
    made = {one.name for one in fields(value) if one.default is MISSING} if is_dataclass(value) else set[str]()
    parts: list[str] = []
    starred = False
    for one in signature.parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        sign = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        annotation = "" if one.annotation is one.empty else f": {_text(one.annotation)}"
        default = "" if one.default is one.empty else " = ..." if one.name in made else f" = {_default(one.default)}"
        parts.append(f"{sign}{one.name}{annotation}{default}")
    returned = "" if signature.return_annotation is signature.empty else f" -> {_text(signature.return_annotation)}"
    awaited = "async " if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value) else ""
    return f": {awaited}({', '.join(parts)}){'' if inspect.isclass(value) else returned}"


def _default(value: Any) -> str:
    shown = repr(value)
    return "..." if "<" in shown or len(shown) > 40 else shown


def _text(annotation: Any) -> str:
    """An annotation as it is written in the code, whatever this Python makes of it."""
    if inspect.isclass(annotation) and not hasattr(annotation, "__args__"):
        return annotation.__name__
    named = getattr(annotation, "__forward_arg__", None) or str(annotation)
    return re.sub(r"\b(?:typing|collections\.abc|pollux_like)(?:\.\w+)*\.(?=\w)", "", named)


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
