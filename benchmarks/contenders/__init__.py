"""Who is measured: one file for each, all with the face of `benchmarks.work.Client`, each in an environment of its own."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.work import WIRES


@dataclass(frozen=True, slots=True)
class Contender:
    """`name`: its module here. `wires`: those that it speaks. `needs`: what its environment holds, as pip writes it;
    empty: the project's own environment. `distributions`: whose versions are reported.
    `imports`: what is imported of it. `peer`: a library like ours."""

    name: str
    title: str
    distributions: tuple[str, ...]
    wires: tuple[str, ...] = WIRES
    needs: tuple[str, ...] = ()
    cases: tuple[str, ...] = ("turn", "loop", "stream", "crowd")
    imports: str = ""
    peer: bool = False


SDKS = ("openai", "anthropic", "google-genai")

CONTENDERS = {
    one.name: one
    for one in (
        Contender("bare_socket", "bare socket", (), cases=("turn", "loop", "crowd")),
        Contender("bare_httpx2", "bare httpx2", ("httpx2",), imports="httpx2"),
        Contender("raw_sdk", "raw SDK", SDKS, imports="openai, anthropic, google.genai"),
        Contender("ours", "pollux_like", ("pollux-like",), imports="pollux_like"),
        Contender("ours_session", "pollux_like, Session", ("pollux-like",), cases=("turn",)),
        Contender(
            "ours_aiohttp", "pollux_like over aiohttp", ("aiohttp", "httpx-aiohttp"), ("responses", "chat", "anthropic"),
            ("-e", ".[openai,anthropic]", "openai[aiohttp]>=3.50,<4", "anthropic[aiohttp]>=2.10,<3"),
        ),
        Contender(
            "pollux_ai", "pollux-ai, Session", ("pollux-ai", *SDKS), ("responses", "anthropic", "gemini"),
            ("pollux-ai>=2,<3",), imports="pollux", peer=True,
        ),
        Contender(
            "pydantic_ai", "pydantic-ai", ("pydantic-ai-slim", *SDKS),
            needs=("pydantic-ai-slim[openai,anthropic,google]>=2.60,<3",), imports="pydantic_ai", peer=True,
        ),
        Contender(
            "langchain", "langchain", ("langchain-core", "langchain-openai", "langchain-anthropic"),
            ("responses", "chat", "anthropic"), ("langchain-openai>=1.7,<2", "langchain-anthropic>=1.7,<2"),
            imports="langchain_openai, langchain_anthropic", peer=True,
        ),
        Contender("litellm", "litellm", ("litellm",), needs=("litellm>=1.110,<2",), imports="litellm", peer=True),
        Contender(
            "openai_agents", "openai-agents", ("openai-agents", "openai"), ("responses", "chat"),
            ("openai-agents>=0.24,<1",), imports="agents", peer=True,
        ),
        Contender(
            "any_llm", "any-llm", ("any-llm-sdk", *SDKS),
            needs=("any-llm-sdk[openai,anthropic,gemini]>=1.40,<2",), imports="any_llm", peer=True,
        ),
    )
}  # fmt: skip
REFERENCE = ("bare_socket", "bare_httpx2", "raw_sdk", "ours", "ours_session")
"""What `quick` measures."""
