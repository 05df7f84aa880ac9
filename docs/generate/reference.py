"""The API reference: every public name with its signature and its docstring, one page per module.

Docstrings are Markdown. Signatures are what `inspect` sees; annotations stand as they are written in the code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, ForwardRef

from pollux_like import settings

MODULES = {
    "pollux_like": "The public names of the package. Everything else is private and may change without notice.",
    "pollux_like.sync": "The same turns for code that is not async.",
    "pollux_like.store": "Conversations in a database. See [the store](../store.md).",
    "pollux_like.store.sync": "The store for code that is not async.",
    "pollux_like.testing": "For tests of applications. See [testing](../testing.md).",
    "pollux_like.simulator": "The stand-in for the vendors' APIs. See [the simulator](../simulator.md).",
    "pollux_like.environments": "Task environments. See [environments](../environments.md).",
    "pollux_like.typed": "Typed values out of a conversation. See [typed conversations](../typed.md).",
    "pollux_like.typed.sync": "Typed values for code that is not async.",
    "pollux_like.errors": "Every error. See [errors](../errors.md) for what to catch where.",
}
ALSO: dict[str, dict[str, Any]] = {"pollux_like": {"Arguments": settings.Arguments}}
"""What signatures name and `__all__` does not: the keyword arguments of a turn."""

HEAD = "<!-- Written by docs/generate from the docstrings. Do not edit: run `make docs`. -->\n\n"
WIDTH = 88


def pages() -> dict[str, str]:
    """The pages, by their paths in docs/."""
    return {f"api/{name.removeprefix('pollux_like.')}.md": _page(name, said) for name, said in MODULES.items()}


def public(module: ModuleType) -> dict[str, Any]:
    """The public names of a module: those of `__all__`, else what is defined in it without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return {name: getattr(module, name) for name in listed}
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        if inspect.isclass(value) or inspect.isroutine(value)
    }


def _page(name: str, said: str) -> str:
    module = import_module(name)
    names = {**public(module), **ALSO.get(name, {})}
    parts = [f"# {name}", said]
    for each, value in sorted(names.items(), key=lambda entry: (not inspect.isroutine(entry[1]), entry[0].lower())):
        parts.extend(_entry(each, value, module))
    return HEAD + "\n\n".join(parts) + "\n"


def _entry(name: str, value: Any, module: ModuleType) -> Iterator[str]:
    yield f"## {name}"
    if inspect.isclass(value):
        yield from _class(name, value)
    elif inspect.isroutine(value):
        yield _code(_signature(name, value))
        yield _doc(value)
    else:
        yield _code(f"{name}: {_shape(value)}")
        yield _attribute_doc(name, module)


def _class(name: str, value: type) -> Iterator[str]:
    bases = [base.__name__ for base in value.__bases__ if issubclass(base, BaseException)]
    if typed := getattr(value, "__total__", None) is not None:
        yield _code(
            "\n".join([f"class {name}(TypedDict):", *(f"    {one}: {_text(of)}" for one, of in _annotations(value))])
        )
    elif issubclass(value, BaseException) and "__init__" not in vars(value):
        yield _code(f"class {name}({', '.join(bases)})")
    elif hasattr(value, "model_fields"):
        of = f"({', '.join(bases)})" if bases else ""
        yield _code("\n".join([f"class {name}{of}:", *_model_fields(value)]))
    else:
        made = _signature(name, value, word="")
        yield _code(f"class {name}({', '.join(bases)})\n\n{made}" if bases else f"class {made}")
    yield _doc(value)
    if typed or issubclass(value, Warning):
        return
    yield from _members(name, value)


def _members(name: str, value: type) -> Iterator[str]:
    kept = {one: member for one, member in vars(value).items() if not one.startswith("_")}
    given = {one.name for one in fields(value)} if is_dataclass(value) else set[str]()
    attributes: list[str] = []
    for one, member in kept.items():
        if isinstance(member, property) and one not in given:
            returned = member.fget.__annotations__.get("return", "") if member.fget else ""
            attributes.append(f"* `{one}: {_text(returned)}` - {' '.join(_doc(member).split())}")
    if attributes:
        yield "\n".join(attributes)
    for one, member in kept.items():
        kind = type(member).__name__ if isinstance(member, (classmethod, staticmethod)) else None
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if inspect.isfunction(function) and function.__doc__:
            yield f"### {name}.{one}"
            yield _code(f"@{kind}\n{_signature(one, function)}" if kind else _signature(one, function))
            yield _doc(function)


def _signature(name: str, value: Any, *, word: str | None = None) -> str:
    """`async def name(...) -> ...`, on one line or with a line per parameter; `word` stands in place of `def`."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # a class that inspect cannot look into, such as a Protocol
        return name
    wanted = [p for p in signature.parameters.values() if p.name not in ("self", "cls") and not p.name.startswith("_")]
    shown: list[str] = []
    for at, one in enumerate(wanted):
        if one.kind is one.KEYWORD_ONLY and not any(p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for p in wanted[:at]):
            shown.append("*")
        shown.append(_parameter(one, value))
    head, end = name, ""
    if word is None:
        awaited = inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)
        head = f"{'async def' if awaited else 'def'} {name}"
        returned = signature.return_annotation
        end = f" -> {_text(returned)}" if returned is not signature.empty else ""
    line = f"{head}({', '.join(shown)}){end}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{head}(", *(f"    {one}," for one in shown), f"){end}"])


def _parameter(one: inspect.Parameter, owner: Any) -> str:
    text = ("*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else "") + one.name
    if one.annotation is not one.empty:
        text += f": {_text(one.annotation)}"
    if one.default is one.empty:
        return text
    return f"{text} = {_default(one, owner)}"


def _default(one: inspect.Parameter, owner: Any) -> str:
    """A default as the reader would write it; that of a factory is `...`."""
    if is_dataclass(owner) and any(each.name == one.name and each.default is MISSING for each in fields(owner)):
        return "..."
    shown = repr(one.default).replace("'", '"')
    return "..." if "<" in shown or len(shown) > 40 else shown


def _annotations(value: type) -> Iterator[tuple[str, Any]]:
    yield from inspect.get_annotations(value).items()


def _model_fields(value: Any) -> list[str]:
    """The fields of a pydantic model."""
    own = inspect.get_annotations(value)
    return [
        f"    {name}: {_text(own.get(name, one.annotation))}" + ("" if one.is_required() else " = ...")
        for name, one in value.model_fields.items()
    ]


def _text(annotation: Any) -> str:
    """An annotation as code; quotes are those of the formatter, which reads these pages too."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if inspect.isclass(annotation):
        return annotation.__name__
    named = re.sub(r"\b(?:typing|collections\.abc|pollux_like)(?:\.\w+)*\.(?=\w)", "", str(annotation))
    return named if '"' in named else named.replace("'", '"')


def _shape(value: Any) -> str:
    if isinstance(value, tuple) and value:
        return f"tuple[{type(value[0]).__name__}, ...]  # {len(value)} of them"
    return _text(value) if not isinstance(value, (str, int, float)) else repr(value)


def _doc(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "")


def _attribute_doc(name: str, module: ModuleType) -> str:
    """The string below the assignment of a name, in the module that the face takes it from."""
    while True:
        tree = ast.parse(inspect.getsource(module))
        for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            if _assigns(node, name):
                text = getattr(getattr(after, "value", None), "value", "")
                return inspect.cleandoc(text) if isinstance(text, str) else ""
        found = [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module
                 if any(alias.name == name for alias in node.names)]  # fmt: skip
        if not found:
            return ""
        module = import_module(found[0])


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _code(text: str) -> str:
    return f"```py\n{text}\n```"
