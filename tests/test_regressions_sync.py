"""Where a turn meets threads, processes and interrupts."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import anyio
import pytest

from pollux_like import (
    APIError,
    Config,
    ConfigurationError,
    Environment,
    Input,
    PolluxLikeError,
    StreamInterruptedError,
    StructuredOutputError,
    ToolCallParseError,
    interact,
    stream,
)
from pollux_like.simulator import Simulator
from pollux_like.testing import Scripted, say


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_a_forked_child_talks_and_ends() -> None:
    program = """
        import os, signal
        from pollux_like import Environment, Input
        from pollux_like.sync import interact
        from pollux_like.testing import Scripted, say

        model = Scripted([say("one")], [say("two")])
        assert interact(Environment(), Input("q"), model.config).text == "one"
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            assert interact(Environment(), Input("q"), model.config).text == "two"
            raise SystemExit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize("verb", ["interact", "stream"])
@pytest.mark.skipif(not hasattr(signal, "raise_signal") or sys.platform == "win32", reason="no SIGINT to send")
def test_an_interrupt_cancels_the_turn_and_comes_out_as_itself(verb: str) -> None:
    program = f"""
        import os, signal, sys, threading

        import anyio

        from pollux_like import Environment, Input, sync
        from pollux_like.testing import Scripted, say, scripted

        cancelled = threading.Event()

        async def items(self, *said):
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()
            yield

        scripted._ScriptedAdapter._items = items
        config = Scripted([say("x")]).config
        try:
            if {verb!r} == "interact":
                sync.interact(Environment(), Input("q"), config)
            else:
                with sync.stream(Environment(), Input("q"), config) as events:
                    for event in events:
                        pass
        except KeyboardInterrupt:
            sys.exit(7 if cancelled.is_set() else 8)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, timeout=60)
    assert done.returncode == 7


@pytest.mark.anyio
async def test_a_loop_goes_on_from_inside_done_though_one_turn_at_a_time_is_allowed() -> None:
    model = Scripted([say("one")], [say("two")])
    config = Config("scripted", client=model, max_concurrency=1)
    texts: list[str] = []
    with anyio.fail_after(10):
        async with stream(Environment(), Input("q"), config) as events:
            async for event in events:
                if event.output is not None:
                    texts.append(event.output.text)
                    texts.append((await interact(Environment(), Input("q"), config)).text)
    assert texts == ["one", "two"]


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("a", hint="b"),
        APIError("a", hint="b", status=503, retryable=True),
        StreamInterruptedError("a", hint="b", partial_text="x"),
        ToolCallParseError("a", hint="b", tool_name="t", tool_call_id="i", arguments_text="{"),
        StructuredOutputError("a", hint="b", text="x", output=None),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling_so_that_a_worker_process_can_raise_it(error: PolluxLikeError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert (str(again), vars(again)) == (str(error), vars(error))


def test_an_interrupt_while_a_task_is_being_started_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come after the loop was told of the task and before the caller is: the stream is closed all the same."""
    from anyio.from_thread import BlockingPortal

    from pollux_like import sync

    started = BlockingPortal.start_task_soon

    with Simulator() as sim:
        sim.fault(say("never whole"), delay_s=30)
        config = Config("openai", "gpt-5-nano", api_key="sim-key", base_url=sim.base_url("openai"))
        with sync.stream(Environment(), Input("q"), config) as events:
            assert next(events).type == "start"

            def interrupted(self: BlockingPortal, *arguments: object, **named: object) -> object:
                monkeypatch.setattr(BlockingPortal, "start_task_soon", started)
                started(self, *arguments, **named)
                raise KeyboardInterrupt

            monkeypatch.setattr(BlockingPortal, "start_task_soon", interrupted)
            with pytest.raises(KeyboardInterrupt):
                next(events)
        # leaving has closed the stream, whose generator was still running, and closing that is a RuntimeError
        sim.clear()  # the request may have been given up before it was sent
        sim.reply(say("on"))
        assert sync.interact(Environment(), Input("q"), config).text == "on"


def test_a_program_that_looked_up_a_host_ends_without_a_word() -> None:
    """Python 3.12 starts no thread at exit, and asyncio asks for one after a look-up."""
    program = """
        from pollux_like import APIError, Config, Environment, Input
        from pollux_like.sync import interact

        config = Config("openai", "m", api_key="sim-key", base_url="http://localhost:9", max_attempts=1)
        try:
            interact(Environment(), Input("q"), config)
        except APIError as error:
            print(error.retryable)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=False, timeout=60, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
