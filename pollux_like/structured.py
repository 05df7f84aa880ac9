"""Structured output: the answer's text against the form that was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pollux_like import canonical, schemas
from pollux_like.errors import StructuredOutputError
from pollux_like.output import Output
from pollux_like.settings import OutputSchema


def fitted(output: Output, wanted: OutputSchema | None) -> Output:
    """The output with `structured` filled in.

    A turn that ends in tool calls, a refusal, a filter or a pause has no answer yet: `structured` stays None. Raises
    StructuredOutputError, carrying the text and the whole turn, for an answer that does not fit.
    """
    if wanted is None or output.finish.status not in ("stop", "length", "other"):
        return output
    if output.refusal is not None:
        return output
    return replace(output, structured=_value(output, wanted))


def _value(output: Output, wanted: OutputSchema) -> Any:
    try:
        parsed = canonical.loads(output.text)
    except canonical.JSONPolicyError as error:
        cut = " because the token limit cut it" if output.finish.status == "length" else ""
        hint = "Raise max_tokens" if cut else "Ask again, or read error.text"
        raise StructuredOutputError(
            f"the answer is no JSON{cut}: {error}", hint=hint, text=output.text, output=output
        ) from None
    if isinstance(parsed, dict):
        parsed = schemas.clean_arguments(wanted.schema, cast("dict[str, Any]", parsed))
    problem, value = _validated(parsed, wanted)
    if problem is not None:
        raise StructuredOutputError(
            f"the answer does not fit {wanted.name}: {problem}",
            hint="Ask again, or read error.text",
            text=output.text,
            output=output,
        )
    return value


def _validated(parsed: Any, wanted: OutputSchema) -> tuple[str | None, Any]:
    """What is wrong, without quoting the transcript; or None and the value."""
    if wanted.model is not None:
        import pydantic

        try:
            return None, wanted.model.model_validate(parsed)
        except pydantic.ValidationError as error:
            first = error.errors(include_input=False, include_context=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the root"
            return f"{first['type']} at {where}", None
    import jsonschema

    validator: Any = jsonschema.Draft202012Validator(wanted.schema)
    failure = next(iter(validator.iter_errors(parsed)), None)
    if failure is None:
        return None, parsed
    where = ".".join(str(part) for part in failure.absolute_path) or "the root"
    return f"{failure.validator} at {where}", None
