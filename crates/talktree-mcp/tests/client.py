"""Talks with `talktree mcp` by the protocol's own clients: the library for Python, and the inspector.

Usage: client.py TALKTREE [INSPECTOR]
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile

from mcp import MCPError, StdioServerParameters
from mcp.client import Client

TALKTREE = sys.argv[1]
INSPECTOR = sys.argv[2:]
# Where there is no keychain it says so.
os.environ["MCP_INSPECTOR_SECRET_STORE"] = "memory"
TOOLS = ["search", "sessions", "read", "tree", "expand", "usage", "notes"]
URI = "talktree://session/tour"


def run(*arguments):
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done)
    return done.stdout


def texts(result):
    assert not result.is_error, result
    return "".join(part.text for part in result.content)


async def by_library(store, mode, version):
    """Uses all that the server has, as a program with the library does."""
    server = StdioServerParameters(command=TALKTREE, args=["mcp", "--write", "--store", store])
    async with Client(server, mode=mode, read_timeout_seconds=20) as client:
        assert client.protocol_version == version, client.protocol_version
        assert client.server_info.name == "talktree"
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS + ["remember", "label"], tools
        found = texts(await client.call_tool("search", {"query": "where can we walk?"}))
        assert "[answer-2, assistant, 2026-01-30 09:06, on another branch]" in found, found
        read = texts(await client.call_tool("read", {"session": "tour", "message": "answer-2"}))
        assert "other versions: answer-1" in read, read
        wrong = await client.call_tool("read", {"session": "nowhere"})
        assert wrong.is_error and "there is no session" in wrong.content[0].text, wrong
        try:
            await client.call_tool("forget", {})
            raise AssertionError("a tool that does not exist was called")
        except MCPError as error:
            assert error.code == -32602, error
        noted = texts(await client.call_tool("remember", {"text": f"Seen by {mode}."}))
        assert noted.startswith("Remembered under notes"), noted
        assert f"> Seen by {mode}." in texts(await client.call_tool("notes", {}))
        assert [str(it.uri) for it in (await client.list_resources()).resources] == [URI]
        assert len((await client.list_resource_templates()).resource_templates) == 3
        tree = (await client.read_resource(f"{URI}/tree")).contents[0].text
        assert "> o user ask " in tree, tree
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == ["decided", "continue"], prompts
        prompt = await client.get_prompt("decided", {"topic": "the planetarium"})
        assert "[thanks, user, " in prompt.messages[0].content.text, prompt


def by_inspector(config, era):
    """Starts the server as its own `--print-config` says."""
    with open(config) as file:
        settings = json.load(file)
    settings["mcpServers"]["talktree"]["protocolEra"] = era
    with open(config, "w") as file:
        json.dump(settings, file)

    def inspected(method, *arguments):
        where = ["--cli", "--config", config, "--server", "talktree"]
        printed = json.loads(run(*INSPECTOR, *where, "--method", method, "--format", "json", *arguments))
        return printed.get("result", printed)

    assert [tool["name"] for tool in inspected("tools/list")["tools"]] == TOOLS
    found = inspected("tools/call", "--tool-name", "search", "--tool-arg", "query=planetarium")
    assert "> Wonderful. **Planetarium** on Friday" in found["content"][0]["text"], found
    assert inspected("resources/list")["resources"][0]["uri"] == URI
    assert inspected("resources/read", "--uri", URI)["contents"][0]["uri"] == URI
    assert len(inspected("resources/templates/list")["resourceTemplates"]) == 3
    assert len(inspected("prompts/list")["prompts"]) == 2
    prompt = inspected("prompts/get", "--prompt-name", "continue", "--prompt-args", "session=tour")
    assert "Wonderful." in prompt["messages"][0]["content"]["text"], prompt


with tempfile.TemporaryDirectory() as folder:
    store, config = os.path.join(folder, "talk.db"), os.path.join(folder, "mcp.json")
    sample = os.path.join(os.path.dirname(__file__), "../../talktree-cli/src/commands/tour/sample.jsonl")
    run(TALKTREE, "--store", store, "import", sample)
    for mode, version in [("auto", "2026-07-28"), ("legacy", "2025-11-25")]:
        asyncio.run(by_library(store, mode, version))
        print(f"ok: the library, {version}")
    with open(config, "w") as file:
        file.write(run(TALKTREE, "--store", store, "mcp", "--print-config", "claude"))
    for era in ["legacy", "modern"] if INSPECTOR else []:
        by_inspector(config, era)
        print(f"ok: the inspector, {era}")
