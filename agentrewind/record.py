"""Old place of `agentrewind.records`; to be removed before this lands."""

from agentrewind.records import *  # noqa: F403
