"""Gemini: replies of `generateContent` and `streamGenerateContent`, whole and streamed, and the error envelope.

Shapes follow the API reference (ai.google.dev/api/generate-content) and recorded answers. What is refused stands in
`gemini_rules.py` and `gemini_contents.py`. The paths of the Gemini API and those of Vertex are both served.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator.gemini_contents import sign
from pollux_like.simulator.gemini_fields import read
from pollux_like.simulator.gemini_rules import TOKEN, GenerateRules, check_key, check_model
from pollux_like.simulator.ledger import Ledger, digest
from pollux_like.simulator.models import gemini
from pollux_like.simulator.options import Options
from pollux_like.simulator.shapes import as_object, is_object
from pollux_like.simulator.wire import (
    Draft,
    Exchange,
    Fault,
    Looked,
    Refusal,
    Route,
    Tokens,
    count,
    event,
    parsed,
    pieces,
    tokens,
)
from pollux_like.testing.script import Answer, Call, Part, Refuse, Say, ServerTool, Think

_PLACE = r"/v1(?:alpha|beta1?)?(?:/projects/[^/]+/locations/[^/]+)?(?:/publishers/google)?/models"
_PATH = re.compile(rf"{_PLACE}/([^/:]+):(generateContent|streamGenerateContent)")
_COUNT = re.compile(rf"{_PLACE}/([^/:]+):countTokens")
_LIST = re.compile(rf"{_PLACE}(?:/([^/:]+))?")
_STOPS = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "pause": "CONTINUATION",
    "refusal": "SAFETY",
    "content_filter": "SAFETY",
}
_ERRORS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    408: ("DEADLINE_EXCEEDED", "The request timed out. Please try again."),
    409: ("ABORTED", "The operation was aborted."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    499: ("CANCELLED", "The operation was cancelled."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
}
_INTERNAL = ("INTERNAL", "An internal error has occurred.")
_CATEGORIES = ("HATE_SPEECH", "DANGEROUS_CONTENT", "HARASSMENT", "SEXUALLY_EXPLICIT")
_TOOLS = {"web_search": "GOOGLE_SEARCH_WEB", "google_search": "GOOGLE_SEARCH_WEB", "web_fetch": "URL_CONTEXT"}
_USUAL = ("gemini-3-flash-preview", "gemini-3-pro-preview", "gemini-2.5-flash")


class GenerateContent:
    """The dialect; see `wire.Dialect` for the meaning of each method."""

    name: str = "gemini"
    base: str = ""
    variables: tuple[str, str] | None = ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY")

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        self.options = options
        self.rules = GenerateRules(ledger, options)

    def route(self, path: str) -> Route | None:
        found = _PATH.fullmatch(path)
        return Route(found[1], found[2] == "streamGenerateContent") if found else None

    def look_up(self, exchange: Exchange) -> Looked | None:
        asked = _COUNT.fullmatch(exchange.path) if exchange.method == "POST" else None
        listed = _LIST.fullmatch(exchange.path) if exchange.method == "GET" else None
        ours = "x-goog-api-key" in exchange.headers or not exchange.path.startswith("/v1/models")
        if asked is None and (listed is None or not ours):
            return None
        exchange.route = Route((asked or listed or [None, None])[1] or "")
        fault = check_key(exchange, self.options)
        if fault is None and exchange.model:
            fault = check_model(exchange, self.options)
        if fault is None and asked is not None:
            fault = self._countable(exchange)
        if fault is not None:
            refusal = self.error(fault)
            return refusal.status, refusal.body
        if asked is not None:
            number = tokens(dumps(exchange.body))
            return 200, {"totalTokens": number, "promptTokensDetails": _details(number)}
        if exchange.model:
            return 200, _model(exchange.model)
        return 200, {"models": [_model(name) for name in self.options.listed(*_USUAL)]}

    def _countable(self, exchange: Exchange) -> Fault | None:
        """A count is of contents, or of a whole request, by the rules of the conversation itself."""
        body, fault = read(exchange.body, "Count")
        exchange.body = body.get("generateContentRequest", body)
        if fault is None and "contents" in body and "generateContentRequest" in body:
            fault = Fault(400, "contents and generate_content_request are mutually exclusive.")
        return fault or (self.rules.strictly(exchange) if self.options.strict else None)

    def check(self, exchange: Exchange) -> Refusal | None:
        fault = self.rules.check(exchange)
        return None if fault is None else self.error(fault)

    def headers(self) -> dict[str, str]:
        return {"server": "scaffolding on HTTPServer2", "x-content-type-options": "nosniff"}

    def error(self, fault: Fault) -> Refusal:
        wait = fault.retry_after
        seconds = wait is not None and re.fullmatch(r"\d+(\.\d+)?", wait) is not None
        return Refusal(fault.status, self._envelope(fault), () if seconds else fault.headers)

    def error_event(self, fault: Fault) -> str:
        return event(self._envelope(fault))

    def _envelope(self, fault: Fault) -> dict[str, Any]:
        """The wait stands in the details, not in a header."""
        word, text = _ERRORS.get(fault.status, _INTERNAL)
        details = list(fault.details)
        if fault.code:
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": fault.code}
            details.append({**info, "domain": "googleapis.com"})
        if fault.retry_after is not None:
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{fault.retry_after}s"})
        error: dict[str, Any] = {"code": fault.status, "message": fault.message or text}
        error["status"] = fault.type or word
        return {"error": {**error, **({"details": details} if details else {})}}

    def last_text(self, exchange: Exchange) -> str:
        users = [one for one in exchange.body.get("contents") or () if one.get("role") != "model"]
        texts = ["".join(part.get("text", "") for part in one.get("parts", ())) for one in users]
        return next((text for text in reversed(texts) if text), "")

    def draft(self, exchange: Exchange, answer: Answer) -> Draft:
        thinking = as_object(as_object(exchange.body.get("generationConfig")).get("thinkingConfig"))
        shown = thinking.get("includeThoughts") is True
        parts = [made for part in answer.parts for made in self._parts(part, thoughts=shown)]
        broken = next((part for part in answer.parts if isinstance(part, Call) and _broken(part)), None)
        self._sign(parts, exchange, rests=thinking.get("thinkingBudget") == 0)
        used = count(exchange, answer)
        body: dict[str, Any] = {"candidates": [self._candidate(exchange, answer, parts, broken)]}
        refused = next((part.text for part in answer.parts if isinstance(part, Refuse)), None)
        if refused is not None and answer.ended == "refusal":
            blocked = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": refused}
            body = {"promptFeedback": blocked}
        body |= {
            "usageMetadata": _usage(used),
            "modelVersion": exchange.model,
            "responseId": self.ledger.letters(23),
        }
        return Draft(body)

    def _candidate(
        self, exchange: Exchange, answer: Answer, parts: list[dict[str, Any]], broken: Call | None
    ) -> dict[str, Any]:
        finish = answer.native or _STOPS[answer.ended]
        candidate: dict[str, Any] = {"content": {"role": "model", **({"parts": parts} if parts else {})}}
        if finish == "SAFETY":
            candidate["safetyRatings"] = [
                {"category": f"HARM_CATEGORY_{name}", "probability": "HIGH" if not at else "NEGLIGIBLE"}
                | ({} if at else {"blocked": True})
                for at, name in enumerate(_CATEGORIES)
            ]
            if not parts:
                candidate["content"] = {}
        elif finish == "CONTINUATION":
            claims = {"k": "continuation", "c": digest(exchange.body.get("contents"))}
            candidate["continuationToken"] = self.ledger.seal_text(claims, prefix=TOKEN)
        elif broken is not None and finish == "STOP":
            finish = "MALFORMED_FUNCTION_CALL"
            candidate["finishMessage"] = f"Malformed function call: {broken.name}({broken.arguments})"
        elif any("functionCall" in part for part in parts):
            candidate["finishMessage"] = "Model generated function call(s)."
        return {**candidate, "finishReason": finish, "index": 0}

    def _parts(self, part: Part, *, thoughts: bool) -> Iterator[dict[str, Any]]:
        """Redacted reasoning and compaction are none of this API's, and words of a refusal stand elsewhere."""
        if isinstance(part, Say) and part.text:
            yield {"text": part.text}
        elif isinstance(part, Think) and part.text and thoughts:
            yield {"text": part.text, "thought": True}
        elif isinstance(part, Call) and not _broken(part) and not part.cut:
            own = {} if part.id is None else {"id": part.id}
            yield {"functionCall": {"name": part.name, "args": parsed(part.arguments or "{}"), **own}}
        elif isinstance(part, ServerTool) and part.name == "code_execution":
            code = as_object(parsed(part.input)).get("code", part.input)
            yield {"executableCode": {"language": "PYTHON", "code": code}}
            if part.result is not None:
                output = parsed(part.result)
                text = output if isinstance(output, str) else part.result
                yield {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": text}}
        elif isinstance(part, ServerTool):
            made = part.id or self.ledger.letters(8)
            head = {"toolType": _TOOLS.get(part.name, part.name.upper()), "id": made}
            yield {"toolCall": {**head, "args": as_object(parsed(part.input))}}
            if part.result is not None:
                result = parsed(part.result)
                yield {"toolResponse": {**head, "response": result if is_object(result) else {"result": result}}}

    def _sign(self, parts: list[dict[str, Any]], exchange: Exchange, *, rests: bool) -> None:
        """The first call of a reply is signed, and each call of Google's own tools; a reply that ends in text, without
        calls, is signed there. Models before 3 sign only where they think and functions are declared (guide,
        recordings)."""
        gates = gemini(exchange.model)
        declared = any(tool.get("functionDeclarations") for tool in exchange.body.get("tools") or ())
        if not gates.signs and (not gates.thinks or rests or not declared):
            return
        calls = [part for part in parts if "functionCall" in part]
        texts = [] if calls else [part for part in parts[-1:] if "text" in part and not part.get("thought")]
        for part in [*calls[:1], *texts, *(part for part in parts if "toolCall" in part)]:
            part["thoughtSignature"] = sign(self.ledger, part, exchange.model)

    def render(self, draft: Draft) -> str:
        return json.dumps(draft.body, ensure_ascii=False, indent=2) + "\n"

    def stream(self, draft: Draft) -> list[str]:
        return [event(chunk) for chunk in _chunks(draft.body)]


def _broken(part: Call) -> bool:
    """Arguments that no struct can hold: the model's call was malformed, and none comes out."""
    return not part.cut and not is_object(parsed(part.arguments or "{}"))


def _chunks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A reply as the responses of a stream, as recorded: text in pieces, and last an empty text with the finish reason
    and the signature of the text before it. A second run of code comes with a finish reason in the middle.
    """
    if "candidates" not in body:
        yield body
        return
    tail = {key: value for key, value in body.items() if key not in ("candidates", "usageMetadata")}
    (candidate,) = body["candidates"]
    usage: dict[str, Any] = body["usageMetadata"]
    early = {key: usage[key] for key in usage if not key.startswith(("candidates", "thoughts"))}
    runs = 0
    parts: list[dict[str, Any]] = candidate["content"].get("parts", [])
    end: dict[str, Any] = {"text": ""}
    for part in parts:
        if "text" in part and "thoughtSignature" in part:
            end["thoughtSignature"] = part["thoughtSignature"]
        runs += "executableCode" in part
        ends = {"finishReason": "STOP"} if runs > 1 and "executableCode" in part else {}
        for piece in _pieces(part):
            one = {"content": {"parts": [piece], "role": "model"}, **ends, "index": 0}
            yield {"candidates": [one], "usageMetadata": early, **tail}
    last = {key: value for key, value in candidate.items() if key != "content"}
    content: dict[str, Any] = {"content": {"role": "model"}} if candidate["content"] else {}
    if parts:
        content = {"content": {"parts": [end], "role": "model"}}
    yield {"candidates": [{**content, **last}], "usageMetadata": usage, **tail}


def _pieces(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "text" not in part:
        yield part
        return
    for piece in pieces(part["text"]):
        yield {**{key: value for key, value in part.items() if key != "thoughtSignature"}, "text": piece}


def _usage(used: Tokens) -> dict[str, Any]:
    said = max(0, used.output - used.reasoning)
    usage: dict[str, Any] = {"promptTokenCount": used.input}
    if used.cached:
        usage |= {"cachedContentTokenCount": used.cached, "cacheTokensDetails": _details(used.cached)}
    usage |= {"candidatesTokenCount": said} if said else {}
    usage |= {"thoughtsTokenCount": used.reasoning} if used.reasoning else {}
    return {
        **usage,
        "totalTokenCount": used.input + said + used.reasoning,
        "promptTokensDetails": _details(used.input),
        "serviceTier": "standard",
    }


def _details(number: int) -> list[dict[str, Any]]:
    return [{"modality": "TEXT", "tokenCount": number}]


def _model(name: str) -> dict[str, Any]:
    gates = gemini(name)
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": gates.thinks,
    }
