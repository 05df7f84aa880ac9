"""What importing the library costs, and what its face shows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import pollux_like

HEAVY = ("openai", "anthropic", "google", "httpx", "httpx2", "pydantic", "jsonschema", "starlette", "uvicorn", "typer",
         "rich", "docstring_parser", "xllamacpp", "jinja2", "pollux_like_openai", "pollux_like_anthropic",
         "pollux_like_local", "pollux_like_gemini", "pollux_like_openrouter", "pollux_like_chat")  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """The top-level modules in memory after running code in a fresh interpreter."""
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_no_sdk_no_http_client_no_framework() -> None:
    assert loaded_by("import pollux_like") & {*HEAVY, "sqlite3", "asyncio", "ssl"} == set()


def test_the_store_is_loaded_when_it_is_asked_for() -> None:
    loaded = "print(any(name.startswith('pollux_like.store') for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, pollux_like; {loaded}; from pollux_like import open_store; {loaded}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["False", "True"]


def test_values_load_no_sdk_either() -> None:
    code = (
        "from pollux_like import *\n"
        "Environment(instructions='x', tools=[ToolDeclaration('f', parameters={'type': 'object'})])"
        ".fingerprint(provider='openai')\n"
        "Config('openai', 'gpt-5'); Input('hi', history=[])"
    )
    assert loaded_by(code) & {"openai", "anthropic", "httpx2", "pydantic", "jsonschema"} == set()


def test_one_provider_loads_only_its_own_sdk() -> None:
    code = (
        "import anyio\nfrom pollux_like import *\n"
        "async def main():\n"
        "    try: await interact(Environment(), Input('hi'), Config('{0}', 'm', api_key='k', base_url='http://127.0.0.1:9',"
        " max_attempts=1))\n"
        "    except APIError: pass\n"
        "anyio.run(main)"
    )
    sdks = {"openai", "anthropic", "google"}
    assert loaded_by(code.format("openai")) & sdks == {"openai"}
    assert loaded_by(code.format("anthropic")) & sdks == {"anthropic"}
    assert loaded_by(code.format("gemini")) & sdks == {"google"}


def test_render_and_parse_import_where_no_sdk_is_installed() -> None:
    code = (
        "import sys\n"
        "for name in ('openai', 'anthropic', 'google', 'httpx2', 'xllamacpp'): sys.modules[name] = None\n"
        "import pollux_like_gemini.render, pollux_like_gemini.parse\n"
        "import pollux_like_openai.render, pollux_like_openai.parse, pollux_like_anthropic.render\n"
        "import pollux_like_anthropic.parse, pollux_like_chat, pollux_like_local"
    )
    assert {"pollux_like_openai", "pollux_like_anthropic", "pollux_like_gemini"} <= loaded_by(code)


def test_a_missing_sdk_names_the_command_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['openai'] = None\n"
        "import anyio\nfrom pollux_like import *\n"
        "async def main():\n"
        "    try: await interact(Environment(), Input('hi'), Config('openai', 'm', api_key='k'))\n"
        "    except ConfigurationError as error: print(error)\n"
        "anyio.run(main)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "pollux-like[openai]"' in done.stdout


def test_the_face_shows_what_it_names_and_defines_nothing() -> None:
    submodules = {name for name in vars(pollux_like) if f"pollux_like.{name}" in sys.modules}
    functions = {"handoff", "stream", "interact"}
    shown = {name for name in vars(pollux_like) if not name.startswith("_")} - (submodules - functions)
    assert shown | {"open_store", "ContinuationSealer"} == set(pollux_like.__all__) | {"TYPE_CHECKING"}
    with pytest.raises(AttributeError, match="no attribute 'open_shop'"):
        getattr(pollux_like, "open_" + "shop")
    for name in pollux_like.__all__:
        assert getattr(pollux_like, name).__module__ != "pollux_like"


def test_all_is_sorted_and_complete() -> None:
    required = {
        "interact", "stream", "Session", "handoff", "Config", "Environment", "Input", "Output", "Usage", "Finish",
        "Event", "Message", "ToolDeclaration", "ToolCall", "ToolResult", "Source", "Continuation", "PolluxLikeError",
        "ConfigurationError", "ContinuationError", "SourceError", "ToolCallParseError", "StoreError", "ConflictError",
        "APIError", "AuthenticationError", "RateLimitError", "ContextOverflowError", "ProviderTimeoutError",
        "StreamInterruptedError",
    }  # fmt: skip
    assert required <= set(pollux_like.__all__)
    assert pollux_like.__all__ == sorted(pollux_like.__all__)
