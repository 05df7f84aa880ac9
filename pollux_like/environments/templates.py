"""Chat templates of Hugging Face, in jinja2's sandbox and within bounds: they come with models of strangers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from pollux_like import canonical, checks
from pollux_like.errors import FormatError

MAX_TEXT: Final = 32 * 1024 * 1024
"""Most characters of a rendered text, and of any text or list that a template makes on the way."""
MAX_STEPS: Final = 1_000_000
"""Most passes through loops and macros of one rendering."""
MAX_POWER: Final = 1_000
"""Largest exponent."""

_BROKEN = (
    TemplateError, ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError
)  # fmt: skip


class ChatTemplate:
    """`source` with what every conversation is rendered with. Raises FormatError for what is no template."""

    def __init__(self, source: str, tools: Any, variables: Mapping[str, Any]) -> None:
        self._sandbox = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
        self._sandbox.filters["tojson"] = _tojson
        helpers = {"raise_exception": _raise, "strftime_now": _now}
        blank = {"documents": None, "bos_token": "", "eos_token": ""}
        self._variables = {**helpers, **blank, "tools": tools, **variables}
        try:
            tree = _Bounded().visit(self._sandbox.parse(checks.filled(source, "template")))
            made = self._sandbox.template_class.from_code(
                self._sandbox, self._sandbox.compile(tree), self._sandbox.make_globals(None)
            )
        except (TemplateError, RecursionError, SyntaxError) as error:
            raise _failed(error) from None
        self._template = made

    def text(self, chat: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool, tools: Any = None) -> str:
        """The rendered text; `tools` instead of those of the template. Raises FormatError where the template fails."""
        self._sandbox.steps = 0
        given = {**self._variables, "messages": list(chat), "add_generation_prompt": add_generation_prompt}
        if tools is not None:
            given["tools"] = tools
        parts: list[str] = []
        length = 0
        try:
            for part in self._template.generate(**given):
                length += len(part)
                _check_size(length)
                parts.append(part)
            text = "".join(parts)
            canonical.check_text(text, path="the text")
        except FormatError:
            raise
        except _BROKEN as error:
            raise _failed(error) from None
        return text

    def maybe(self, chat: Sequence[Mapping[str, Any]], *, tools: Any = None) -> str | None:
        """The same without a generation prompt, None where the template refuses."""
        try:
            return self.text(chat, add_generation_prompt=False, tools=tools)
        except FormatError:
            return None


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**"})
    steps = 0

    def step(self) -> None:
        """Counts a pass."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise _unbounded(f"takes more than {MAX_STEPS} steps")

    def joined(self, parts: Sequence[object]) -> str:
        """The operator `~`."""
        texts = [str(part) for part in parts]
        _check_size(sum(map(len, texts)))
        return "".join(texts)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operator, where its result stays within the bounds."""
        if operator == "**":
            if isinstance(right, (int, float)) and right > MAX_POWER:
                raise _unbounded(f"has an exponent above {MAX_POWER}")
        elif operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(many, (str, list, tuple)) and isinstance(times, int):
                    _check_size(len(cast("Sequence[object]", many)) * times)
        elif isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)):
            _check_size(len(cast("Sequence[object]", left)) + len(cast("Sequence[object]", right)))
        return super().call_binop(context, operator, left, right)


class _Bounded(NodeTransformer):
    """Counts each pass through a body, and lets `~` check its length. A template cannot name what is called."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        return self._counted(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        return self._counted(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        return self._counted(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        visited = cast("nodes.Concat", self.generic_visit(node))
        return _called("joined", [nodes.List(visited.nodes, lineno=node.lineno)], node.lineno)

    def _counted(self, node: nodes.For | nodes.Macro | nodes.CallBlock) -> nodes.Node:
        visited = cast("nodes.For", self.generic_visit(node))
        visited.body.insert(0, nodes.ExprStmt(_called("step", [], node.lineno), lineno=node.lineno))
        return visited


def _called(name: str, arguments: list[nodes.Expr], line: int) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name, lineno=line), arguments, [], None, None, lineno=line)


class _Generation(Extension):
    """`{% generation %}`, by which templates mark what the assistant wrote; its body is rendered as it is."""

    tags = {"generation"}  # noqa: RUF012  # as jinja2 has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The body."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _check_size(size: int) -> None:
    if size > MAX_TEXT:
        raise _unbounded(f"makes more than {MAX_TEXT} characters or items")


def _unbounded(what: str) -> FormatError:
    return FormatError(f"the chat template {what}", hint="Take the model's own template, or a smaller conversation")


def _failed(error: BaseException) -> FormatError:
    return FormatError(f"the chat template failed: {type(error).__name__}", hint="Check it against the conversation")


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> str:
    raise ValueError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)  # templates want the local date
