"""The bridge to the kernel: a served conversation as the history of a turn, and a whole episode with any provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, Unpack

from pollux_like import checks
from pollux_like.config import Config
from pollux_like.conversation import ImageBlock, Message, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from pollux_like.conversation.chat import data_url
from pollux_like.conversation.refusal import check_filled, check_pairing
from pollux_like.environment import Environment
from pollux_like.environments.authoring import ToolOutput
from pollux_like.environments.remote import AsyncSession
from pollux_like.environments.sync import Session, call
from pollux_like.errors import ConfigurationError, FormatError, ToolRefusedError
from pollux_like.input import Input
from pollux_like.messages import Message as Portable
from pollux_like.messages import ToolCall, ToolResult
from pollux_like.output import Output
from pollux_like.settings import Arguments
from pollux_like.sources import Source
from pollux_like.tools import ToolDeclaration
from pollux_like.turn import interact

OnLoss: TypeAlias = Literal["raise", "report"]


@dataclass(frozen=True, slots=True)
class History:
    """A conversation in the kernel's terms.

    `instructions` for `Environment`; `history`, `content` and `sources` for `Input`; `losses` names, in words, what
    portable history cannot hold.
    """

    instructions: str | None = field(repr=False)
    history: tuple[Portable, ...] = field(repr=False)
    content: str | None = field(repr=False)
    sources: tuple[Source, ...] = ()
    losses: tuple[str, ...] = ()

    @property
    def input(self) -> Input:
        """The turn that answers the conversation."""
        return Input(self.content, history=self.history, sources=self.sources)


def to_history(messages: Sequence[Message], *, on_loss: OnLoss = "raise") -> History:
    """Leading system turns become instructions, the last user turn the content, its images the sources of the turn.

    Lost, and refused with FormatError unless `on_loss="report"`: reasoning and its signatures, images further up, in
    results and without text beside them, system turns after the beginning, an assistant turn before the first user
    turn, text that stands before results or after calls in its turn, and blank text. Texts of one turn are joined by a
    blank line. Raises FormatError for a conversation that leaves nothing to answer, for images that no turn takes, and
    for calls and results that do not pair.
    """
    checks.one_of(on_loss, "on_loss", ("raise", "report"))
    given = checks.sequence(messages, "messages", Message)
    check_filled("history", given)
    check_pairing("history", given)
    made = _Maker(on_loss)
    for at, message in enumerate(given):
        made.add(at, message, last=at == len(given) - 1)
    if made.content is None and not (made.history and made.history[-1].role == "tool"):
        raise FormatError(
            "the conversation leaves nothing to answer", hint="End it in a user turn with text, or in tool results"
        )
    instructions = "\n\n".join(made.instructions) or None
    return History(instructions, tuple(made.history), made.content, tuple(made.sources), tuple(made.losses))


class _Maker:
    def __init__(self, on_loss: OnLoss) -> None:
        self._on_loss = on_loss
        self.instructions: list[str] = []
        self.history: list[Portable] = []
        self.content: str | None = None
        self.sources: list[Source] = []
        self.losses: list[str] = []

    def lost(self, at: int, what: str) -> None:
        """Name a loss, or refuse it."""
        if self._on_loss == "raise":
            raise FormatError(
                f"portable history cannot hold messages[{at}]: {what}", hint='Use on_loss="report" to go on without it'
            )
        self.losses.append(f"messages[{at}]: {what}")

    def add(self, at: int, message: Message, *, last: bool) -> None:
        """Take one turn."""
        match message.role:
            case "system":
                self._system(at, message)
            case "user":
                self._user(at, message, last=last)
            case "assistant":
                self._assistant(at, message)

    def _system(self, at: int, message: Message) -> None:
        if self.history:
            self.lost(at, "a system turn after the conversation began")
            return
        text = self._text(at, message)
        if text is not None:
            self.instructions.append(text)

    def _user(self, at: int, message: Message, *, last: bool) -> None:
        spoken = False
        for block in message.blocks:
            if isinstance(block, ToolResultBlock):
                if spoken:
                    self.lost(at, "the place of text before a tool result")
                content = self._result(at, block)
                self.history.append(Portable("tool", content, (), block.tool_call_id, block.is_error))
            spoken = spoken or not isinstance(block, ToolResultBlock)
        text = self._text(at, message, images=last)
        if text is None:
            if self.sources:
                self.lost(at, "an image without text that says what it is for")
                self.sources = []
            return
        if last:
            self.content = text
        else:
            self.history.append(Portable("user", text))

    def _result(self, at: int, block: ToolResultBlock) -> str:
        if any(isinstance(part, ImageBlock) for part in block.blocks):
            self.lost(at, f"an image in the result of call {block.tool_call_id!r}")
        return "\n".join(part.text for part in block.blocks if isinstance(part, TextBlock))

    def _assistant(self, at: int, message: Message) -> None:
        calls: list[ToolCall] = []
        if not self.history:
            if any(isinstance(block, ToolCallBlock) for block in message.blocks):
                raise FormatError(
                    f"portable history cannot hold messages[{at}]: it begins with a tool call",
                    hint="Begin with a user turn",
                )
            self.lost(at, "an assistant turn before the first user turn")
            return
        for block in message.blocks:
            if isinstance(block, ReasoningBlock):
                self.lost(at, "signed reasoning" if block.signature else "reasoning")
            elif isinstance(block, ToolCallBlock):
                calls.append(_call(at, block))
            elif calls:
                self.lost(at, "the place of text after a tool call")
        text = self._text(at, message)
        if text is not None or calls:
            self.history.append(Portable("assistant", text or "", tuple(calls)))

    def _text(self, at: int, message: Message, *, images: bool = False) -> str | None:
        texts: list[str] = []
        for block in message.blocks:
            if isinstance(block, ImageBlock):
                if images:
                    self.sources.append(_source(at, block))
                else:
                    self.lost(at, f"an image in a {message.role} turn")
            elif isinstance(block, TextBlock):
                if block.text.strip():
                    texts.append(block.text)
                else:
                    self.lost(at, "blank text")
        return "\n\n".join(texts) or None


def _source(at: int, block: ImageBlock) -> Source:
    try:
        return Source.from_uri(data_url(block))
    except ConfigurationError as error:
        raise FormatError(f"a turn cannot hold the image of messages[{at}]: {error.message}", hint=error.hint) from None


def _call(at: int, block: ToolCallBlock) -> ToolCall:
    try:
        return ToolCall(block.id, block.name, None, block.input)
    except ConfigurationError as error:
        raise FormatError(f"portable history cannot hold messages[{at}]: {error.message}", hint=error.hint) from None


@dataclass(frozen=True, slots=True)
class Episode:
    """What came of a task.

    `stopped`: "finished" by a tool, "answered" by the model's last message, or "max_turns". `outputs` of the model and
    `results` of the tools in order; `rewards` those that the tools gave, `reward` their sum (None without any).
    """

    stopped: Literal["finished", "answered", "max_turns"]
    outputs: tuple[Output, ...]
    results: tuple[ToolOutput, ...]
    losses: tuple[str, ...] = ()

    @property
    def rewards(self) -> tuple[float, ...]:
        """In the order of the calls."""
        return tuple(result.reward for result in self.results if result.reward is not None)

    @property
    def reward(self) -> float | None:
        """Their sum."""
        return sum(self.rewards) if self.rewards else None


async def run_episode(
    session: AsyncSession, config: Config, *, max_turns: int, on_loss: OnLoss = "raise", **arguments: Unpack[Arguments]
) -> Episode:
    """Play a task: the served conversation, the model's turns, its tool calls, and the terminal tool at the end.

    Refused calls and arguments that are no JSON object go back to the model as failed results. Raises what the turn,
    the server and `to_history` raise; ToolFailedError ends the episode, since a tool may have had its effect.
    """
    checks.whole(max_turns, "max_turns", least=1)
    start = to_history(await session.get_messages(), on_loss=on_loss)
    declared = [
        ToolDeclaration(tool.name, tool.description, tool.input_schema, strict=False)
        for tool in await session.list_tools()
    ]
    environment = Environment(instructions=start.instructions, tools=declared)
    playing = _Playing(session, on_loss, list(start.losses))
    turn = start.input
    for _ in range(max_turns):
        output = await interact(environment, turn, config, **arguments)
        playing.outputs.append(output)
        if output.tool_calls:
            answers = await playing.answered(output.tool_calls)
            if answers is None:
                return playing.ended("finished")
            turn = Input(continuation=output.continuation, tool_results=answers, sources=start.sources)
        elif output.finish.status == "pause":
            turn = Input(continuation=output.continuation)
        else:
            await playing.final(output.text)
            return playing.ended("answered")
    return playing.ended("max_turns")


class _Playing:
    def __init__(self, session: AsyncSession, on_loss: OnLoss, losses: list[str]) -> None:
        self._session = session
        self._on_loss = on_loss
        self._losses = losses
        self.outputs: list[Output] = []
        self.results: list[ToolOutput] = []

    async def answered(self, calls: Sequence[ToolCall]) -> list[ToolResult] | None:
        """The results of one turn's calls, in order; None where one of them ended the episode."""
        answers: list[ToolResult] = []
        for one in calls:
            if one.arguments is None:
                answers.append(ToolResult(one.id, one.arguments_error or "", is_error=True))
                continue
            try:
                result = await self._session.call_tool(one.name, one.arguments)
            except ToolRefusedError as error:
                if error.reason == "episode_finished":
                    return None
                answers.append(ToolResult(one.id, error.message, is_error=True))
                continue
            self.results.append(result)
            if result.finished:
                return None
            answers.append(ToolResult(one.id, self._text(one.name, result)))
        return answers

    def _text(self, name: str, result: ToolOutput) -> str:
        if any(isinstance(block, ImageBlock) for block in result.blocks):
            if self._on_loss == "raise":
                raise FormatError(
                    f"tool {name} answered with an image, and a tool result of a turn is text",
                    hint='Use on_loss="report" to go on without it',
                )
            self._losses.append(f"an image in a result of tool {name}")
        return "\n".join(block.text for block in result.blocks if isinstance(block, TextBlock))

    async def final(self, text: str) -> None:
        """Give the last message to the terminal tool, where there is one."""
        if (await self._session.tools()).terminal is not None:
            self.results.append(await self._session.call_terminal_tool(text))

    def ended(self, stopped: Literal["finished", "answered", "max_turns"]) -> Episode:
        return Episode(stopped, tuple(self.outputs), tuple(self.results), tuple(self._losses))


def run_episode_sync(
    session: Session, config: Config, *, max_turns: int, on_loss: OnLoss = "raise", **arguments: Unpack[Arguments]
) -> Episode:
    """`run_episode` for code that is not async."""

    async def play() -> Episode:
        return await run_episode(session.asynchronous, config, max_turns=max_turns, on_loss=on_loss, **arguments)

    return call(play)
