"""Accept-lists: the keys each API takes, from the vendors' published SDK types (openai 3.57, anthropic 2.14)."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MESSAGES = _words(
    "cache_control container diagnostics inference_geo max_tokens messages metadata model output_config service_tier"
    " speed stop_sequences stream system thinking tool_choice tools user_profile_id workspace_id temperature top_p"
    " top_k"
)
MESSAGES_BETA = MESSAGES | _words(
    "billing_policy compaction context_management fallback_credit_token fallbacks mcp_servers thread"
)
MESSAGES_COUNT = _words(
    "cache_control context_management mcp_servers messages model output_config speed system thinking tool_choice tools"
    " user_profile_id workspace_id"
)
MESSAGES_TOOL = _words(
    "type name description input_schema strict defer_loading allowed_callers eager_input_streaming input_examples"
    " cache_control"
)
_RESULT = _words("cache_control content tool_use_id type")
MESSAGES_BLOCKS: dict[str, frozenset[str]] = {
    "text": _words("cache_control citations text type"),
    "image": _words("cache_control source transformations type"),
    "document": _words("cache_control citations context source title type"),
    "search_result": _words("cache_control citations content source title type"),
    "thinking": _words("signature thinking type"),
    "redacted_thinking": _words("data type"),
    "tool_use": _words("cache_control caller id input name toolset_name type"),
    "tool_result": _RESULT | {"is_error", "toolset_name"},
    "server_tool_use": _words("cache_control caller id input name type"),
    "web_search_tool_result": _RESULT | {"caller"},
    "web_fetch_tool_result": _RESULT | {"caller"},
    "advisor_tool_result": _RESULT,
    "code_execution_tool_result": _RESULT,
    "bash_code_execution_tool_result": _RESULT,
    "text_editor_code_execution_tool_result": _RESULT,
    "tool_search_tool_result": _RESULT,
    "mcp_tool_use": _words("cache_control id input name server_name type"),
    "mcp_tool_result": _RESULT | {"is_error"},
    "container_upload": _words("cache_control file_id type"),
    "compaction": _words("cache_control content encrypted_content signature tool_changes type"),
    "tool_addition": _words("cache_control tool type"),
    "tool_removal": _words("cache_control tool type"),
    "mcp_tool_listing": _words("mcp_server_name tools type"),
    "fallback": _words("from to trigger type"),
}

RESPONSES = _words(
    "access_programs background background_options context_management conversation image include input instructions"
    " max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt"
    " prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store"
    " stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user"
)
RESPONSES_COUNT = _words(
    "conversation input instructions model parallel_tool_calls personality previous_response_id reasoning text"
    " tool_choice tools truncation"
)
RESPONSES_ITEMS: dict[str, frozenset[str]] = {
    "message": _words("content id phase role status type"),
    "function_call": _words("arguments async call_id caller id name namespace status type"),
    "function_call_output": _words("call_id caller id name namespace output status type"),
    "custom_tool_call": _words("async call_id caller id input name namespace status type"),
    "custom_tool_call_output": _words("call_id caller id output status type"),
    "reasoning": _words("content encrypted_content id summary type"),
    "compaction": _words("encrypted_content id type created_by"),
    "compaction_trigger": _words("id type"),
    "item_reference": _words("id type"),
}
RESPONSES_OTHER_ITEMS = _words(
    "file_search_call computer_call computer_call_output web_search_call tool_search_call tool_search_output"
    " additional_tools configuration_update image_generation_call code_interpreter_call local_shell_call"
    " local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output mcp_list_tools"
    " mcp_approval_request mcp_approval_response mcp_call program program_output"
)
RESPONSES_FUNCTION = _words("allowed_callers async defer_loading description name output_schema parameters strict type")
ITEM_IDS = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fc",
    "reasoning": "rs",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctc",
    "web_search_call": "ws",
    "compaction": "cmp",
}

CHAT = _words(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages"
    " metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key"
    " prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier"
    " stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity"
    " web_search_options"
)
