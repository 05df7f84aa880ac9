"""From a Config to a connected adapter, one per provider, address, credentials and event loop, closed with the loop."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

import anyio
import anyio.lowlevel
import anyio.to_thread

from pollux_like import plugins
from pollux_like.config import Config
from pollux_like.provider import Adapter, Vendor


def vendor_of(config: Config) -> Vendor:
    """The vendor of a config; imports its package, not its SDK."""
    return cast("Vendor", plugins.load(config.provider))


@dataclass(slots=True, eq=False)
class Connection:
    """An adapter and the limit on turns under way through it."""

    adapter: Adapter
    limit: anyio.Semaphore


Connect = Callable[[Config], Awaitable[Connection]]


async def connect(config: Config) -> Connection:
    """A new connection. The SDK's import may take seconds, so it happens in a worker thread."""
    adapter = await anyio.to_thread.run_sync(vendor_of(config).connect, config)
    return Connection(adapter, anyio.Semaphore(config.max_concurrency, fast_acquire=True))


@dataclass(slots=True)
class _Pool:
    connections: dict[object, Connection] = field(default_factory=dict[object, Connection])
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    keeper: AsyncGenerator[None, None] | None = None


_pools: anyio.lowlevel.RunVar[_Pool] = anyio.lowlevel.RunVar("pollux_like_pool")


async def _keep(pool: _Pool) -> AsyncGenerator[None, None]:
    """Both asyncio.run and trio.run close living async generators at their end: this one closes the pool then."""
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            for connection in pool.connections.values():
                await connection.adapter.aclose()


async def pooled(config: Config) -> Connection:
    """The connection of this event loop for this config; made at the first turn, shared by all later ones."""
    try:
        pool = _pools.get()
    except LookupError:
        pool = _Pool()
        _pools.set(pool)
    key = _key(config)
    if key not in pool.connections:
        async with pool.lock:
            if pool.keeper is None:
                pool.keeper = _keep(pool)
                await anext(pool.keeper)
            if key not in pool.connections:
                pool.connections[key] = await connect(config)
    return pool.connections[key]


def _key(config: Config) -> object:
    vendor = vendor_of(config)
    asked = config.api_key is None and config.client is None
    variables = tuple([os.environ.get(name) for name in vendor.key_variables]) if asked else ()
    # The entry's adapter holds the client, so its id names nothing else while the entry lives.
    return (
        config.provider,
        None if config.client is not None else vendor.endpoint(config),
        config.api_key,
        variables,
        id(config.client),
        config.max_concurrency,
    )
