"""A LangChain agent of one's own with two lines for the layer (marked): it can go back.

`agentrewind run --workspace DIR -- python examples/langchain_agent.py TASK`
"""

import subprocess
import sys

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

import agentrewind
from harness_adapters.langchain_middleware import RewindMiddleware  # 1


@tool
def bash(command: str) -> str:
    """Run a command with bash; gives what it printed."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    return done.stdout + done.stderr


with agentrewind.record():
    agent = create_agent(
        ChatOpenAI(model="gpt-5.4-mini"),
        tools=[bash],
        system_prompt="You work with a shell.",
        middleware=[RewindMiddleware()],  # 2
    )
    result = agent.invoke({"messages": [("user", sys.argv[1])]})
    print(result["messages"][-1].content)
