"""What Gemini refuses in the contents: roles, empty parts, calls and their responses, and thought signatures.

Texts are the API's own where a recording or a public report quotes them; `docs/simulator.md` says which are ours.
"""

from __future__ import annotations

import base64
from typing import Any

from pollux_like.simulator.gemini_fields import decoded
from pollux_like.simulator.ledger import Ledger, digest, family
from pollux_like.simulator.models import gemini
from pollux_like.simulator.options import Options
from pollux_like.simulator.shapes import as_object
from pollux_like.simulator.wire import Exchange, Fault

SEAL = b"\x12\xc8\x02\x0a"
"""What the simulator's signatures begin with."""
STAND_INS = frozenset(
    form
    for word in ("context_engineering_is_the_way_to_go", "skip_thought_signature_validator")
    for form in (word.encode(), decoded(word))
)
"""Bytes that the API takes for the signature of a call that it did not make (guide "Thought signatures"): the words in
base64, and as they are written."""

_ASIDE = frozenset({"thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution"})
_MEDIA = ("image/", "audio/", "video/", "text/")
_DOCUMENTS = frozenset({"application/pdf", "application/json", "application/x-javascript", "application/x-python"})
_GUIDE = "https://ai.google.dev/gemini-api/docs/thought-signatures"


def bad(text: str) -> Fault:
    """A 400 INVALID_ARGUMENT."""
    return Fault(400, text)


def check_contents(exchange: Exchange, ledger: Ledger, options: Options) -> Fault | None:
    """All rules of `contents` and `systemInstruction`, on a body in one spelling."""
    body = exchange.body
    contents: list[dict[str, Any]] = body.get("contents") or []
    if not contents:
        return bad("* GenerateContentRequest.contents: contents is not specified\n")
    fault = None
    if "systemInstruction" in body:
        fault = _system(body["systemInstruction"])
    for at, content in enumerate(contents):
        fault = fault or _content(at, content)
    if fault is not None:
        return fault
    turns = _turns(contents)
    return _order(turns) or _signatures(turns, exchange.model, ledger, options) or _end(contents)


def _system(system: dict[str, Any]) -> Fault | None:
    place = "GenerateContentRequest.system_instruction"
    if not system.get("parts"):
        return bad(f"* {place}.parts: contents.parts must not be empty.\n")
    if any(_ASIDE - {"thought"} & part.keys() or not isinstance(part.get("text"), str) for part in system["parts"]):
        return bad("Developer instruction must contain text parts only.")
    return None


def _content(at: int, content: dict[str, Any]) -> Fault | None:
    if content.get("role", "user") not in ("user", "model"):
        return bad("Please use a valid role: user, model.")
    place = f"* GenerateContentRequest.contents[{at}].parts"
    parts: list[dict[str, Any]] = content.get("parts") or []
    if not parts:
        return bad(f"{place}: contents.parts must not be empty.\n")
    for number, part in enumerate(parts):
        held = part.keys() - _ASIDE
        if not held and "thoughtSignature" not in part:
            return bad(f"{place}[{number}].data: required oneof field 'data' must have one initialized field\n")
        if len(held) > 1:
            return bad(f"{place}[{number}].data: oneof field 'data' is already set. Cannot set more than one.\n")
        fault = _part(part, f"{place}[{number}]", model=content.get("role") == "model")
        if fault is not None:
            return fault
    return None


def _part(part: dict[str, Any], place: str, *, model: bool) -> Fault | None:
    for key, snake, said_by in (
        ("functionCall", "function_call", True),
        ("functionResponse", "function_response", False),
    ):
        if key not in part:
            continue
        if not part[key].get("name"):
            return bad(f"{place}.{snake}.name: Name cannot be empty.\n")
        if model is not said_by:
            return bad(
                f"{place}.{snake}: a content of the role {'model' if model else 'user'} cannot hold this part.\n"
            )
    if "functionResponse" in part and "response" not in part["functionResponse"]:
        return bad(f"{place}.function_response.response: required field is missing\n")
    blob = as_object(part.get("inlineData") or part.get("fileData"))
    kind = blob.get("mimeType")
    if "inlineData" in part and not kind:
        return bad(f"{place}.inline_data.mime_type: required field is missing\n")
    if "inlineData" in part and not blob.get("data"):
        return bad(f"{place}.inline_data.data: required field is missing\n")
    if "fileData" in part and not blob.get("fileUri"):
        return bad(f"{place}.file_data.file_uri: required field is missing\n")
    if kind and not kind.startswith(_MEDIA) and kind not in _DOCUMENTS:
        return bad(f"Unsupported MIME type: {kind}")
    return None


def _held(content: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    return [part[key] for part in (content or {}).get("parts", []) if key in part]


def _turns(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The contents, those of the model that follow each other taken as one: the vendor's own chat keeps every chunk of
    a stream as a content. `at` is the place of the first."""
    turns: list[dict[str, Any]] = []
    for at, content in enumerate(contents):
        model = content.get("role") == "model"
        if model and turns and turns[-1].get("role") == "model":
            turns[-1] = {**turns[-1], "parts": [*turns[-1]["parts"], *content["parts"]]}
        else:
            turns.append({**content, "at": at})
    return turns


def _order(turns: list[dict[str, Any]]) -> Fault | None:
    """Calls directly after a user's content, all their responses directly after them in one content (G5, G6)."""
    for at, content in enumerate(turns):
        before = turns[at - 1] if at else None
        after = turns[at + 1] if at + 1 < len(turns) else None
        calls, responses = _held(content, "functionCall"), _held(content, "functionResponse")
        if calls and before is None:
            return bad(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        if responses and not _held(before, "functionCall"):
            return bad("Please ensure that function response turn comes immediately after a function call turn.")
        if calls and after is not None:
            fault = _answered(calls, _held(after, "functionResponse"))
            if fault is not None:
                return fault
    return None


def _answered(calls: list[dict[str, Any]], responses: list[dict[str, Any]]) -> Fault | None:
    """As many responses as calls; by id where both have ids, else in order."""
    if len(calls) != len(responses):
        return bad(
            "Please ensure that the number of function response parts is equal to the number of function call parts of "
            "the function call turn."
        )
    ids = {call["id"]: call for call in calls if call.get("id")}
    seen: set[str] = set()
    for call, response in zip(calls, responses, strict=True):
        asked, made = call, response.get("id")
        if made:
            if made not in ids or made in seen:
                return bad(
                    f"Function response id '{made}' does not match the id of a function call of the turn before."
                )
            seen.add(made)
            asked = ids[made]
        if asked["name"] != response["name"]:
            return bad(
                f"Function response name '{response['name']}' does not match the function call name '{asked['name']}'."
            )
    return None


def _end(contents: list[dict[str, Any]]) -> Fault | None:
    if contents[-1].get("role") != "model":
        return None
    if len(contents) == 1:
        return bad("Please ensure that single turn requests end with a user role or the role field is empty.")
    return bad("Please ensure that multiturn requests ends with a user role or a function response.")


def claims_of(part: dict[str, Any], model: str) -> dict[str, Any]:
    """What a signature on this part is bound to: a call to its name and arguments; another part only to being none.

    The API takes the signature of a text on its thought (recorded), so what the text says is not bound.
    """
    call = part.get("functionCall")
    if call is None:
        return {"k": "part", "m": family(model)}
    return {"k": "call", "c": digest([call.get("name"), call.get("args") or {}]), "m": family(model)}


def sign(ledger: Ledger, part: dict[str, Any], model: str) -> str:
    """A fresh signature for a part, in the standard alphabet, as the API writes it."""
    return ledger.seal_text(claims_of(part, model), prefix=SEAL, pad=120)


def adopt_parts(ledger: Ledger, parts: list[dict[str, Any]], model: str = "") -> None:
    """Take the signatures of these parts, in one spelling, as issued here. Without a model they are of any."""
    for part in parts:
        raw = decoded(part.get("thoughtSignature", ""))
        if raw and raw not in STAND_INS:
            ledger.adopt(base64.b64encode(raw).decode(), claims_of(part, model))


def _signatures(turns: list[dict[str, Any]], model: str, ledger: Ledger, options: Options) -> Fault | None:
    """Every signature that came is one that was issued, on the part it was issued for (G2); the first call of each step
    of the current turn has one, on models that demand it (G1)."""
    demands = gemini(model).signs
    current = max((at for at, content in enumerate(turns) if _asks(content)), default=-1)
    for at, content in enumerate(turns):
        first = True
        for part in content["parts"]:
            if "thoughtSignature" in part:
                fault = _verified(part, model, ledger, options)
                if fault is not None:
                    return fault
            if "functionCall" in part and first:
                first = False
                if demands and at > current and "thoughtSignature" not in part:
                    return bad(
                        "Function call is missing a thought_signature in functionCall parts. This is required for "
                        "tools to work correctly, and missing thought_signature may lead to degraded model "
                        f"performance. Additional data, function call `default_api:{part['functionCall']['name']}` , "
                        f"position {content['at'] + 1}. Please refer to {_GUIDE} for more details."
                    )
    return None


def _asks(content: dict[str, Any]) -> bool:
    """Whether a content begins a turn: the user's, with something other than responses."""
    return content.get("role") != "model" and any("functionResponse" not in part for part in content["parts"])


def _verified(part: dict[str, Any], model: str, ledger: Ledger, options: Options) -> Fault | None:
    raw = decoded(part["thoughtSignature"]) or b""
    if raw in STAND_INS:
        return None
    claims = ledger.open_text(base64.b64encode(raw).decode(), prefix=SEAL)
    if claims is None:
        return bad("Corrupted thought signature.")
    own = claims_of(part, model)
    if any(claims.get(key) != own.get(key) for key in ("k", "c")):
        return bad("Invalid thought signature.")
    if not options.shared_signatures and claims["m"] not in ("", own["m"]):
        return bad("Invalid thought signature.")
    return None
