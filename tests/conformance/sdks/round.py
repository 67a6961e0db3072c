"""round.py URL KEY: one round with the installed version of the official SDK for Python. It says as JSON which revision
was agreed on, what the agent answered, and what the SDK complained about."""

import asyncio
import json
import logging
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession

try:
    from mcp.client.streamable_http import streamablehttp_client
except ImportError:
    streamablehttp_client = None

url, key = sys.argv[1:]
problems = []


class Complaints(logging.Handler):
    def emit(self, record):
        problems.append(record.getMessage())


logging.getLogger("mcp").addHandler(Complaints(logging.WARNING))


@asynccontextmanager
async def transport():
    headers = {"authorization": f"Bearer {key}"}
    if streamablehttp_client is not None:
        async with streamablehttp_client(url, headers=headers) as streams:
            yield streams[0], streams[1]
        return
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    async with create_mcp_http_client(headers=headers) as client:
        async with streamable_http_client(url, http_client=client) as streams:
            yield streams[0], streams[1]


def member(value, *names):
    return next(getattr(value, name) for name in names if hasattr(value, name))


async def round_trip():
    async with transport() as (read, write), ClientSession(read, write) as session:
        begun = await session.initialize()
        tools = (await session.list_tools()).tools
        called = await session.call_tool(tools[0].name, {"input": "hello"})
        await session.send_ping()
        return {
            "revision": member(begun, "protocolVersion", "protocol_version"),
            "tools": [tool.name for tool in tools],
            "isError": bool(member(called, "isError", "is_error")),
            "text": called.content[0].text,
            "problems": problems,
        }


print(json.dumps(asyncio.run(round_trip())))
