"""The two tools as neutral JSON Schema, and the guidance that goes with them.

Parameter structures are those of the paper's Figure 8; the sentences are ours. Each adapter restates them
in its harness's own form.
"""

from __future__ import annotations

from agentrewind.records import JsonObject

CANDIDATES = "backtrack_candidates"
COMMIT = "backtrack_commit"
REWIND_TOOLS = frozenset({CANDIDATES, COMMIT})

_MEMORY_FIELDS = (
    "What you tried from that point and what came of it; what you now know to be false; "
    "what to keep; what to do differently, step by step, with exact names and commands; "
    "what must not be done before something else."
)

SCHEMAS: dict[str, JsonObject] = {
    CANDIDATES: {
        "name": CANDIDATES,
        "description": (
            "List the earlier points of this run that you can go back to, newest first. Each entry names a "
            "record_uid and sums up what you answered there, the tool calls that followed with their exit "
            "codes, the files they changed, and notes already brought back to that point. Nothing is changed "
            "by looking. Look before you try yet another local repair of something that keeps failing."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "reason": {
                    "type": "string",
                    "description": (
                        "In a sentence: which failure, loop, contradiction or risk makes you doubt the "
                        "present path. Kept for whoever reads the log."
                    ),
                }
            },
            "required": ["reason"],
            "additionalProperties": False,
        },
    },
    COMMIT: {
        "name": COMMIT,
        "description": (
            "Go back to an earlier point: everything after it leaves your context, the workspace's files "
            "return to what they were just before your answer there, and you answer anew from that point "
            "with your note in front of you. Use it once you judge that going on from here is worse than "
            "taking another way from there. Calls after this one in the same answer do not run."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "record_uid": {
                    "type": "string",
                    "description": (
                        "The point to return to, as given by backtrack_candidates. It must be one of your "
                        "own answers (kind llm); the id of a tool call is refused."
                    ),
                },
                "memory_summary": {
                    "type": "string",
                    "description": (
                        "The only thing you take with you: a note to your earlier self, who will remember "
                        "nothing of what came later. " + _MEMORY_FIELDS
                    ),
                },
                "reason": {
                    "type": "string",
                    "description": "Optional: why you go back, for whoever reads the log.",
                },
            },
            "required": ["record_uid", "memory_summary"],
            "additionalProperties": False,
        },
    },
}

GUIDANCE = """\
## Going back

Every answer you give in this run is a point to which you can return, together with the files as they were \
at that moment. Two tools do it:

- `backtrack_candidates` lists those points. It costs nothing and changes nothing.
- `backtrack_commit` returns to one of them. Your context and the workspace's files go back together; what \
you learned since is gone unless you write it into `memory_summary`.

Think of going back when the same check fails again after a repair, when you notice that something you did \
cannot be undone with the tools you have (data dropped, history rewritten, originals overwritten), or when \
the files have drifted away from what you believe about them. Repair in place when the damage is small and \
you know how to mend it. When you go back, choose the latest point that still lies before the mistake, so \
that good work is kept, and write the note so that someone who has seen nothing of the failed attempt can \
act on it at once. What happened outside the workspace (messages sent, remote services changed) is listed \
with each point and may not come back."""

REJECTION_QUESTION = (
    "Decide now how to go on: repair the present state, or, if an earlier step made this hard or "
    "impossible to repair, look at backtrack_candidates and go back to the point before that step."
)


def openai_tools() -> list[JsonObject]:
    """The two tools as the `tools` entries of a chat-completions request."""
    return [{"type": "function", "function": SCHEMAS[name]} for name in (CANDIDATES, COMMIT)]
