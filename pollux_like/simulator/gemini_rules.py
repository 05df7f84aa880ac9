"""What Gemini refuses in a request's key, model, tools and configuration.

Texts are the API's own where a recording or a public report quotes them; `docs/simulator.md` says which are ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator.gemini_contents import bad, check_contents
from pollux_like.simulator.gemini_fields import read
from pollux_like.simulator.ledger import Ledger, digest
from pollux_like.simulator.models import Gemini, gemini
from pollux_like.simulator.options import Options
from pollux_like.simulator.shapes import as_object, as_objects, is_object
from pollux_like.simulator.wire import Exchange, Fault, tokens

TOKEN = b"\x0a\x1c"
"""What the simulator's continuation tokens begin with."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED")
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_FORMATS = {
    "string": ("enum", "date-time"),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}
_RANGES = (("temperature", 0.0, 2.0), ("topP", 0.0, 1.0))
_LEAST = (("maxOutputTokens", 1), ("candidateCount", 1), ("topK", 1))
MAX_STOP = 5


def check_key(exchange: Exchange, options: Options) -> Fault | None:
    """The key in its header or in `key=`; a bearer token as well, which Vertex and gateways take."""
    bearer = exchange.headers.get("authorization", "").removeprefix("Bearer ").strip()
    key = exchange.headers.get("x-goog-api-key") or exchange.query.get("key") or bearer
    if not key:
        return Fault(
            403,
            "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
            "other form of API consumer identity to call this API.",
        )
    if options.api_key is None or key == options.api_key:
        return None
    text = "API key not valid. Please pass a valid API key."
    reason = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }
    said = {"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "en-US", "message": text}
    return Fault(400, text, details=(reason, said))


def check_model(exchange: Exchange, options: Options) -> Fault | None:
    """Whether the model of the path exists."""
    if options.models is None or exchange.model in options.models:
        return None
    version = exchange.path.split("/")[1]
    return Fault(
        404,
        f"models/{exchange.model} is not found for API version {version}, or is not supported for generateContent. "
        "Call ListModels to see the list of available models and their supported methods.",
    )


class GenerateRules:
    """All rules of the dialect, in the order in which the API meets them. Brings the body to one spelling."""

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        self.options = options

    def check(self, exchange: Exchange) -> Fault | None:
        options = self.options
        fault = check_key(exchange, options) or check_model(exchange, options)
        if fault is not None:
            return fault
        length = tokens(dumps(exchange.body))
        exchange.body, fault = read(exchange.body)
        if options.max_input_tokens is not None and length > options.max_input_tokens:
            return bad(
                f"The input token count ({length}) exceeds the maximum number of tokens allowed "
                f"({options.max_input_tokens})."
            )
        if not options.strict:
            return None
        if exchange.route.streaming and exchange.query.get("alt") != "sse":
            return fault or bad("Streams are sent as server-sent events here: ask for alt=sse.")
        return fault or self.strictly(exchange)

    def strictly(self, exchange: Exchange) -> Fault | None:
        """The rules of a body in one spelling."""
        body, gates = exchange.body, gemini(exchange.model)
        fault = check_contents(exchange, self.ledger, self.options) or check_tools(body, gates)
        return fault or _choice(body, gates) or _config(body, gates) or self._continued(body)

    def _continued(self, body: dict[str, Any]) -> Fault | None:
        """A continuation token is one of ours and comes with the contents of the request that it continues."""
        if "continuationToken" not in body:
            return None
        claims = self.ledger.open_text(body["continuationToken"], prefix=TOKEN)
        if claims is None:
            return bad("Invalid continuation token.")
        if claims["c"] != digest(body["contents"]):
            return bad("The continuation token belongs to other contents.")
        return None


def check_tools(body: dict[str, Any], gates: Gemini) -> Fault | None:
    """Declarations, and what a model takes together."""
    names: set[str] = set()
    hosted = False
    for at, tool in enumerate(as_objects(body.get("tools"))):
        hosted = hosted or bool(tool.keys() - {"functionDeclarations"})
        for number, one in enumerate(as_objects(tool.get("functionDeclarations"))):
            fault = _function(one, f"tools[{at}].function_declarations[{number}]", names)
            if fault is not None:
                return fault
    if gates.mixes or not names:
        return None
    if hosted:
        return bad("Tool use with function calling is unsupported")
    if body.get("generationConfig", {}).get("responseMimeType") == "application/json":
        return bad("Function calling with a response mime type: 'application/json' is unsupported")
    return None


def _function(one: dict[str, Any], place: str, names: set[str]) -> Fault | None:
    root = f"* GenerateContentRequest.{place}"
    name = one.get("name", "")
    if not _NAME.fullmatch(name):
        return bad(
            f"{root}.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be "
            "alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:) or dashes (-), with a maximum length "
            "of 64.\n"
        )
    if name in names:
        return bad(f"Duplicate function declaration found: {name}")
    names.add(name)
    if "parameters" in one and "parametersJsonSchema" in one:
        return bad(f"{root}: parameters and parameters_json_schema are mutually exclusive.\n")
    schema = one.get("parametersJsonSchema", {})
    if not is_object(schema) or schema.get("type", "object") != "object":
        return bad(f"{root}.parameters_json_schema: schema should be of type object.\n")
    wrong = next(iter(_schema_faults(one["parameters"], f"{root}.parameters")), None) if "parameters" in one else None
    if wrong is None and "parameters" in one and one["parameters"].get("type", "").lower() != "object":
        wrong = f"{root}.parameters.type: should be OBJECT."
    return None if wrong is None else bad(f"{wrong}\n")


def _schema_faults(schema: dict[str, Any], place: str) -> Iterator[str]:
    """What is wrong with a schema of the OpenAPI subset. Names that it does not have were refused before."""
    kind = schema.get("type", "").lower()
    if kind and kind not in _TYPES:
        yield f"{place}.type: '{schema['type']}' is no type."
    if "enum" in schema and kind != "string":
        yield f"{place}.enum: only allowed for STRING type"
    if schema.get("format") and schema["format"] not in _FORMATS.get(kind, ()):
        known = " and ".join(f"'{one}'" for one in _FORMATS.get(kind, ())) or "none"
        yield f"{place}.format: only {known} are supported for {kind.upper() or 'this'} type"
    if kind == "array" and "items" not in schema:
        yield f"{place}.items: missing field."
    properties: dict[str, Any] = schema.get("properties", {})
    if properties and kind != "object":
        yield f"{place}.properties: only allowed for OBJECT type"
    for number, name in enumerate(schema.get("required", ())):
        if name not in properties:
            yield f"{place}.required[{number}]: property is not defined"
    for name, child in properties.items():
        yield from _schema_faults(child, f"{place}.properties[{name}]")
    for number, child in enumerate(schema.get("anyOf", ())):
        yield from _schema_faults(child, f"{place}.any_of[{number}]")
    if "items" in schema:
        yield from _schema_faults(schema["items"], f"{place}.items")


def _choice(body: dict[str, Any], gates: Gemini) -> Fault | None:
    config = as_object(body.get("toolConfig"))
    calling: dict[str, Any] = config.get("functionCallingConfig", {})
    declared = {one["name"] for tool in body.get("tools") or () for one in tool.get("functionDeclarations", ())}
    mode = calling.get("mode", "AUTO").upper()
    if mode not in _MODES:
        place = "tool_config.function_calling_config.mode"
        kind = "type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode"
        return bad(f"Invalid value at '{place}' ({kind}), \"{calling['mode']}\"")
    shown = gates.mixes and config.get("includeServerSideToolInvocations") is True  # where it is tolerated
    if calling and mode not in ("NONE", "MODE_UNSPECIFIED") and not declared and not shown:
        return bad("Function calling config is set without function_declarations.")
    allowed = calling.get("allowedFunctionNames") or ()
    if allowed and mode not in ("ANY", "VALIDATED"):
        return bad("Function calling config: allowed_function_names should be set only when mode is ANY or VALIDATED.")
    missing = [name for name in allowed if name not in declared]
    if missing:
        return bad(f"Function calling config: allowed function '{missing[0]}' is not declared in tools.")
    return None


def _config(body: dict[str, Any], gates: Gemini) -> Fault | None:
    config: dict[str, Any] = body.get("generationConfig") or {}
    root = "* GenerateContentRequest.generation_config"
    for name, least, most in _RANGES:
        if name in config and not least <= float(config[name]) <= most:
            snake = {"topP": "top_p"}.get(name, name)
            return bad(f"{root}.{snake}: {snake} must be in the range [{least}, {most}].\n")
    for name, lowest in _LEAST:
        if name in config and float(config[name]) < lowest:
            snake = re.sub(r"[A-Z]", lambda m: f"_{m[0].lower()}", name)
            return bad(f"{root}.{snake}: {snake} must be positive.\n")
    if len(config.get("stopSequences", ())) > MAX_STOP:
        return bad(f"{root}.stop_sequences: at most {MAX_STOP} stop sequences are supported.\n")
    return _output(config) or _thinking(config.get("thinkingConfig") or {}, gates)


def _output(config: dict[str, Any]) -> Fault | None:
    mime = config.get("responseMimeType", "text/plain")
    if mime not in ("text/plain", "application/json", "text/x.enum"):
        return bad(
            "* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are `text/plain`, "
            "`application/json` and `text/x.enum`.\n"
        )
    if "responseSchema" in config and "responseJsonSchema" in config:
        return bad("Only one of response_schema and response_json_schema can be set.")
    for name, snake in (("responseSchema", "response_schema"), ("responseJsonSchema", "response_json_schema")):
        if name in config and mime == "text/plain":
            return bad(f"{snake} requires response_mime_type 'application/json'.")
    root = "* GenerateContentRequest.generation_config.response_schema"
    wrong = next(iter(_schema_faults(config["responseSchema"], root)), None) if "responseSchema" in config else None
    return None if wrong is None else bad(f"{wrong}\n")


def _thinking(config: dict[str, Any], gates: Gemini) -> Fault | None:
    level = config.get("thinkingLevel")
    budget = int(float(config["thinkingBudget"])) if "thinkingBudget" in config else None
    if not config:
        return None
    if not gates.thinks:
        return bad("Thinking is not supported by this model.")
    if level is not None and budget is not None:
        return bad("You can only set only one of thinking budget and thinking level.")
    if level is not None and not gates.levels:
        return bad("Thinking level is not supported for this model.")
    if level is not None and level.upper() not in gates.levels:
        return bad(
            f"Thinking level {level.upper()} is not supported for this model. Please retry with other thinking level."
        )
    if budget is None or budget == -1:
        return None
    if budget == 0 and not gates.rests:
        return bad("Budget 0 is invalid. This model only works in thinking mode.")
    if budget != 0 and not gates.least <= budget <= gates.most:
        return bad(
            f"The thinking budget {budget} is invalid. Please choose a value between {gates.least} and {gates.most}."
        )
    return None
