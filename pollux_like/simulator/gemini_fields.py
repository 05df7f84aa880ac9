"""Fields of Gemini's requests: which names each message has, and a body brought to one spelling.

The API reads a body as proto3 JSON: names in camel or snake case, null as absent, and a name that it does not know
refuses the whole request. From the API reference (ai.google.dev/api/generate-content) and google-genai 3.6's types.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from pollux_like.simulator.shapes import is_array, is_object
from pollux_like.simulator.wire import Fault

_CAPITAL = re.compile(r"[A-Z]")
_PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta."
_STRUCT = "type.googleapis.com/google.protobuf.Struct"


def _message(text: str) -> dict[str, str]:
    """`name` or `name:kind`, a kind being a message of the table, one of the words of `_SCALARS`, or "any".

    A star before the kind is a list of it, a percent sign a map to it.
    """
    return {name: kind or "any" for name, _, kind in (word.partition(":") for word in text.split())}


FIELDS: dict[str, dict[str, str]] = {
    "Request": _message(
        "model:text contents:*Content systemInstruction:Content tools:*Tool toolConfig:ToolConfig"
        " safetySettings:*Safety generationConfig:Config cachedContent:text labels continuationToken:text"
        " store:flag serviceTier:text"
    ),
    "Count": _message("contents:*Content generateContentRequest:Request"),
    "Content": _message("role:text parts:*Part"),
    "Part": _message(
        "text:text thought:flag thoughtSignature:bytes functionCall:Call functionResponse:Response inlineData:Blob"
        " fileData:File executableCode:Code codeExecutionResult:CodeResult toolCall:ToolCall toolResponse:ToolResponse"
        " videoMetadata mediaResolution partMetadata:struct audioTranscription mediaProcessing speechMetadata"
        " documentMetadata spreadsheetMetadata audioMetadata"
    ),
    "Call": _message("id:text name:text args:struct partialArgs willContinue:flag"),
    "Response": _message("id:text name:text response:struct parts scheduling:text willContinue:flag"),
    "Blob": _message("mimeType:text data:bytes displayName:text"),
    "File": _message("mimeType:text fileUri:text displayName:text"),
    "Code": _message("id:text language:text code:text"),
    "CodeResult": _message("id:text outcome:text output:text"),
    "ToolCall": _message("id:text toolType:text args:struct"),
    "ToolResponse": _message("id:text toolType:text response:struct"),
    "Tool": _message(
        "functionDeclarations:*Function codeExecution googleSearch googleSearchRetrieval googleMaps urlContext"
        " fileSearch computerUse mcpServers"
    ),
    "Function": _message(
        "name:text description:text parameters:Schema parametersJsonSchema response:Schema responseJsonSchema"
        " behavior:text"
    ),
    "ToolConfig": _message("functionCallingConfig:Calling retrievalConfig includeServerSideToolInvocations:flag"),
    "Calling": _message("mode:text allowedFunctionNames:*text streamFunctionCallArguments:flag"),
    "Safety": _message("category:text threshold:text method:text"),
    "Config": _message(
        "temperature:number topP:number topK:number candidateCount:whole maxOutputTokens:whole stopSequences:*text"
        " seed:whole presencePenalty:number frequencyPenalty:number responseLogprobs:flag logprobs:whole"
        " responseMimeType:text responseSchema:Schema responseJsonSchema responseModalities:*text mediaResolution"
        " speechConfig thinkingConfig:Thinking imageConfig enableEnhancedCivicAnswers:flag audioTranscriptionConfig"
        " responseFormat translationConfig"
    ),
    "Thinking": _message("includeThoughts:flag thinkingBudget:whole thinkingLevel:text"),
    "Schema": _message(
        "type:text format:text title:text description:text nullable:flag enum:*text items:Schema minItems:whole"
        " maxItems:whole properties:%Schema required:*text minProperties:whole maxProperties:whole minLength:whole"
        " maxLength:whole pattern:text example anyOf:*Schema propertyOrdering:*text default minimum:number"
        " maximum:number"
    ),
}
"""The fields of each message, by its name here."""

_SCALARS = {
    "text": "TYPE_STRING",
    "bytes": "TYPE_BYTES",
    "flag": "TYPE_BOOL",
    "whole": "TYPE_INT32",
    "number": "TYPE_FLOAT",
}
_SPELT = {
    kind: {spelling: name for name in fields for spelling in (name, _CAPITAL.sub(lambda m: f"_{m[0].lower()}", name))}
    for kind, fields in FIELDS.items()
}


class Reading:
    """One body on its way to one spelling; `wrong` collects what the API would say of it, with the place.

    What is wrong is left out, so that every value that stays has its type.
    """

    def __init__(self) -> None:
        self.wrong: list[tuple[str, str]] = []

    def message(self, value: Any, kind: str, path: str) -> dict[str, Any]:
        """An object of a kind: names in camel case, without nulls, unknown ones noted and left out."""
        if not is_object(value):
            self._value(path, f"{_PACKAGE}{kind}", value)
            return {}
        result: dict[str, Any] = {}
        for spelling, child in value.items():
            name = _SPELT[kind].get(spelling)
            if name is None:
                at = f" at '{path}'" if path else ""
                text = f'Invalid JSON payload received. Unknown name "{spelling}"{at}: Cannot find field.'
                self.wrong.append((path, text))
            elif child is not None:
                snake = _CAPITAL.sub(lambda m: f"_{m[0].lower()}", name)
                made = self._field(child, FIELDS[kind][name], f"{path}.{snake}" if path else snake)
                if made is not None:
                    result[name] = made
        return result

    def _field(self, value: Any, kind: str, path: str) -> Any:
        if kind[0] == "*":
            if not is_array(value):
                self._value(path, f"{_PACKAGE}{kind[1:]}" if kind[1:] in FIELDS else _SCALARS[kind[1:]], value)
                return []
            made = [self._field(one, kind[1:], f"{path}[{at}]") for at, one in enumerate(value)]
            return [one for one in made if one is not None]
        if kind[0] == "%":
            if not is_object(value):
                self._value(path, f"{_PACKAGE}{kind[1:]}", value)
                return {}
            places = enumerate(value.items())
            return {key: self.message(one, kind[1:], f"{path}[{at}].value") for at, (key, one) in places}
        if kind in FIELDS:
            if is_array(value):
                self._repeats(path, "list")
                return {}
            return self.message(value, kind, path)
        if kind == "struct" and not is_object(value):
            self._value(path, _STRUCT, value)
            return {}
        before = len(self.wrong)
        if kind in _SCALARS:
            self._scalar(value, kind, path)
        return value if len(self.wrong) == before else None

    def _scalar(self, value: Any, kind: str, path: str) -> None:
        if is_array(value) or is_object(value):
            word = "list" if is_array(value) else "object"
            text = (
                f"Invalid JSON payload received. Unknown name \"\" at '{path}': Proto field is not repeating, cannot "
            )
            self.wrong.append((path, f"{text}start {word}."))
        elif kind == "bytes" and isinstance(value, str):
            if decoded(value) is None:
                self.wrong.append((path, f"Invalid value at '{path}' (TYPE_BYTES), Base64 decoding failed for \"…\""))
        elif not _is(value, kind):
            self._value(path, _SCALARS[kind], value)

    def _repeats(self, path: str, word: str) -> None:
        text = f"Invalid JSON payload received. Unknown name \"\" at '{path}': Proto field is not repeating, "
        self.wrong.append((path, f"{text}cannot start {word}."))

    def _value(self, path: str, kind: str, value: Any) -> None:
        shown = f'"{value[:60]}"' if isinstance(value, str) else str(value)[:60]
        self.wrong.append((path, f"Invalid value at '{path}' ({kind}), {shown}"))


def _is(value: Any, kind: str) -> bool:
    """Whether a scalar is of a kind; numbers are numbers in text as well."""
    if kind in ("whole", "number") and not isinstance(value, bool):
        try:
            number = float(value)
        except (TypeError, ValueError):
            return False
        return kind == "number" or (number.is_integer() and -(2**31) <= number < 2**31)
    return isinstance(value, bool if kind == "flag" else str) and kind not in ("whole", "number")


def decoded(text: str) -> bytes | None:
    """The bytes of base64 text in either alphabet, with or without padding; None for anything else."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def read(body: dict[str, Any], kind: str = "Request") -> tuple[dict[str, Any], Fault | None]:
    """A body in one spelling, and the refusal of what it holds too much or in a wrong type."""
    reading = Reading()
    result = reading.message(body, kind, "")
    if not reading.wrong:
        return result, None
    violations = [{**({"field": path} if path else {}), "description": text} for path, text in reading.wrong]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]
    return result, Fault(400, "\n".join(text for _, text in reading.wrong), details=details)
