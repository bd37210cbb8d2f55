"""Talk to yaml-language-server, which editors ask, over its standard input and output."""

from __future__ import annotations

import json
import subprocess
from itertools import count
from pathlib import Path
from typing import Any, Self

USUAL = {"schemaStore": {"enable": False}, "hover": True, "completion": True, "validate": True}


class LanguageServer:
    """A server that runs; what an author has open is one file of a folder, with settings or without."""

    def __init__(self, script: Path, root: Path, schemas: dict[str, Any]) -> None:
        self._settings = {"yaml": {**USUAL, "schemas": schemas}}
        command = ["node", str(script), "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._numbers = count(1)
        self._files = count(1)
        client = {"textDocument": {"hover": {"contentFormat": ["markdown"]}}}
        client["textDocument"]["completion"] = {
            "completionItem": {"snippetSupport": True, "documentationFormat": ["markdown"]}
        }
        client |= {"workspace": {"configuration": True}}
        self._ask("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": client})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": self._settings})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ask("shutdown", None)
        self._tell("exit", None)
        self._process.communicate(timeout=30)

    def open(self, path: Path, text: str) -> str:
        """Open a text as a file that need not be there, and return its address."""
        uri = path.with_name(f"{path.stem}-{next(self._files)}{path.suffix}").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        return uri

    def flaws(self, path: Path, text: str) -> list[str]:
        """Return what an editor underlines: line, column from 0, message."""
        uri = self.open(path, text)
        while True:
            message = self._next()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                found = message["params"]["diagnostics"]
                places = [(each["range"]["start"], each["message"]) for each in found]
                return [f"{start['line']}:{start['character']} {said}" for start, said in places]

    def hover(self, path: Path, text: str, word: str) -> str:
        """Return what an editor shows over the first place of a word."""
        found = self._at("textDocument/hover", path, text, text.index(word) + 1)
        shown: str = found["contents"]["value"] if found else ""
        return shown

    def completions(self, path: Path, text: str) -> dict[str, dict[str, Any]]:
        """Return what an editor offers at the mark |, by label."""
        at = text.index("|")
        found = self._at("textDocument/completion", path, text.replace("|", "", 1), at)
        return {item["label"]: item for item in found["items"]}

    def _at(self, method: str, path: Path, text: str, offset: int) -> Any:
        before = text[:offset].split("\n")
        position = {"line": len(before) - 1, "character": len(before[-1])}
        return self._ask(method, {"textDocument": {"uri": self.open(path, text)}, "position": position})

    def _ask(self, method: str, params: Any) -> Any:
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == number and "method" not in message:
                return message["result"]

    def _tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin
        self._process.stdin.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self._process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        """Return the next message, and answer it where it asks something."""
        assert self._process.stdout
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if "method" in message and "id" in message:
            asked = message["params"] if message["method"] == "workspace/configuration" else {}
            settings = [self._settings.get(item.get("section", ""), {}) for item in asked.get("items", [])]
            self._send({"id": message["id"], "result": settings or None})
        return message
