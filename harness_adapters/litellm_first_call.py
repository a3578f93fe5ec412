"""Does for a warm parent, before it forks, what litellm puts off until its first call: imports, schemas.

Without this every attempt would do it again, a third of a second in each. Nothing depends on it: the names
are litellm's inner ones, and those that another version does not have are passed over.
"""

from __future__ import annotations

import importlib
from contextlib import suppress

PUT_OFF = (
    "h11",
    "h2.connection",
    "httpcore",
    "litellm._service_logger",
    "litellm.integrations.generic_api.generic_api_callback",
    "litellm.litellm_core_utils.duration_parser",
    "litellm.litellm_core_utils.logging_callback_manager",
    "litellm.llms.github_copilot.authenticator",
    "litellm.llms.litellm_proxy.chat.transformation",
    "litellm.llms.openai.chat.gpt_audio_transformation",
    "litellm.llms.openai_like.dynamic_config",
    "litellm.proxy._types",
    "litellm.proxy.openai_files_endpoints.common_utils",
    "litellm.proxy.spend_tracking.savings",
    "openai.resources.chat.completions",
)
"""Modules that are imported here where they exist."""

UNBUILT = (
    ("litellm.types.router", ("GenericLiteLLMParams", "LiteLLM_Params")),
    (
        "litellm.types.utils",
        ("Message", "Usage", "Choices", "ModelResponse"),
    ),
    ("openai.types.chat", ("ChatCompletion", "ChatCompletionMessage")),
)
"""Pydantic models whose validators are built at their first use."""

for _name in PUT_OFF:
    with suppress(ImportError):
        importlib.import_module(_name)

for _name, _models in UNBUILT:
    for _model in _models:
        with suppress(ImportError, AttributeError):
            getattr(importlib.import_module(_name), _model).model_rebuild()
