"""The same agent with three lines for the layer (marked): it can go back.

`agentrewind run --workspace DIR -- python examples/openai_loop_rewind.py TASK`
"""

import functools
import json
import subprocess
import sys
from typing import Any

import openai

import agentrewind

BASH = {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
TOOLS = [{"type": "function", "function": BASH}, *agentrewind.rewind_tools("openai")]  # 1
SYSTEM = "You work in a shell.\n" + agentrewind.rewind_guidance()  # 2
client: Any = openai.OpenAI()
messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": sys.argv[1]}]


def bash(command: str) -> str:
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout + done.stderr


while True:
    answer = client.chat.completions.create(model="gpt-5.4-mini", messages=messages, tools=TOOLS)
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or []:
        arguments = json.loads(call.function.arguments)
        result = agentrewind.call_tool(  # 3
            call.function.name, arguments, functools.partial(bash, **arguments), tool_call_id=call.id
        )
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
    if not message.tool_calls:
        print(message.content)
        break
