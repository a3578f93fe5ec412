"""A Qwen-Agent agent of one's own with two lines for the layer (marked): it can go back.

`agentrewind run --workspace DIR -- python examples/qwen_agent_loop.py TASK`
"""

import json
import subprocess
import sys
from typing import ClassVar

from qwen_agent.agents import FnCallAgent
from qwen_agent.tools.base import BaseTool

import agentrewind
from harness_adapters.qwen_agent import attach  # 1


class Bash(BaseTool):
    name = "bash"
    description = "Run a command with bash; gives what it printed."
    parameters: ClassVar = {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    }

    def call(self, params: str, **_: object) -> str:
        done = subprocess.run(["bash", "-c", json.loads(params)["command"]], capture_output=True, text=True)
        return done.stdout + done.stderr


agent = FnCallAgent(
    function_list=[Bash()],
    llm={"model": "gpt-5.4-mini", "model_type": "oai"},
    system_message="You work with a shell.",
)
with agentrewind.record() as layer:
    attach(agent, layer)  # 2
    messages = [{"role": "user", "content": sys.argv[1]}]
    print(agent.run_nonstream(messages)[-1]["content"])
