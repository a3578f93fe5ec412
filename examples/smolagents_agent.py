"""A CodeAgent of one's own with two lines for the layer (marked): it can go back, variables included.

`agentrewind run --workspace DIR -- python examples/smolagents_agent.py TASK`
"""

import subprocess
import sys

from smolagents import CodeAgent, LiteLLMModel, tool

import agentrewind
from harness_adapters.smolagents import attach  # 1


@tool
def bash(command: str) -> str:
    """Run a command and give what it printed.

    Args:
        command: the command, for bash.
    """
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    return done.stdout + done.stderr


agent = CodeAgent(tools=[bash], model=LiteLLMModel(model_id="openai/gpt-5.4-mini"))
with agentrewind.record() as layer:
    attach(agent, layer)  # 2
    print(agent.run(sys.argv[1]))
