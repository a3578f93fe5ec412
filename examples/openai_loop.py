"""A whole agent in twenty lines, written for nobody's layer: `python examples/openai_loop.py TASK`."""

import json
import subprocess
import sys
from typing import Any

import openai

BASH = {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
client: Any = openai.OpenAI()
messages = [{"role": "system", "content": "You work in a shell."}, {"role": "user", "content": sys.argv[1]}]
while True:
    answer = client.chat.completions.create(
        model="gpt-5.4-mini", messages=messages, tools=[{"type": "function", "function": BASH}]
    )
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or []:
        command = json.loads(call.function.arguments)["command"]
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": done.stdout + done.stderr})
    if not message.tool_calls:
        print(message.content)
        break
