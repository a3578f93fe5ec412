"""The path rules as they stand in a snapshot: one line of JSON."""

from __future__ import annotations

import json

from agentrewind.errors import DamagedError, UsageError
from agentrewind.workspace.policy import Policy


def encode_policy(policy: Policy) -> bytes:
    """Equal rules have equal bytes."""
    return json.dumps(policy.to_json(), sort_keys=True, ensure_ascii=True).encode() + b"\n"


def decode_policy(data: bytes) -> Policy:
    """The rules that were encoded.

    Raises:
        DamagedError: the bytes are none.
    """
    try:
        value = json.loads(data)
        if not isinstance(value, dict):
            raise DamagedError(f"the path rules of a snapshot are damaged: {data[:60]!r}")
        return Policy.from_json(value)
    except (ValueError, UsageError) as error:
        raise DamagedError(f"the path rules of a snapshot are damaged: {error}") from error
