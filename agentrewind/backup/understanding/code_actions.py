"""Says whether a code action only computes and calls tools, whose calls are looked at themselves."""

from __future__ import annotations

import ast

from agentrewind.backup.values import ToolCall

NAMES = frozenset({"python_interpreter"})
"""Tools that run an agent's code in an interpreter which calls its tools through the layer."""

_MODULES = frozenset(
    {
        "collections",
        "datetime",
        "itertools",
        "json",
        "math",
        "queue",
        "random",
        "re",
        "stat",
        "statistics",
        "string",
        "time",
        "unicodedata",
    }
)
_NEVER = frozenset(
    {
        "open",
        "exec",
        "eval",
        "compile",
        "globals",
        "locals",
        "vars",
        "getattr",
        "setattr",
        "delattr",
        "breakpoint",
        "memoryview",
    }
)

_ELSEWHERE = _NEVER | {
    "sys",
    "os",
    "io",
    "posix",
    "modules",
    "builtins",
    "codecs",
    "threading",
    "importlib",
    "subprocess",
    "shutil",
    "pathlib",
    "pickle",
}


def only_calls_tools(call: ToolCall) -> bool:
    """Whether the code of this call can reach nothing outside its interpreter by itself."""
    if call.name not in NAMES or not isinstance(call.arguments, dict):
        return False
    code = call.arguments.get("code")
    if not isinstance(code, str):
        return False
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_harmless(node) for node in ast.walk(tree))


def _harmless(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return all(alias.name.partition(".")[0] in _MODULES for alias in names)
        case ast.ImportFrom(module=module, level=level):
            return level == 0 and module is not None and module.partition(".")[0] in _MODULES
        case ast.Name(id=name):
            return name not in _NEVER and not name.startswith("__")
        case ast.Attribute(attr=name):
            # a module's own imports and an object's insides lead anywhere
            return not name.startswith("_") and name not in _ELSEWHERE
        case _:
            return True
