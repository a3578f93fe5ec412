"""Serves the simulated models of one cell over HTTP, as any provider would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from harness_adapters.demo.command import local_provider
from harness_adapters.scripted import ScriptedModel
from mettlebench.task import Task
from runner.order import Order
from runner.simulation.policy import agent_policy, by_model, monitor_policy, plans_of
from runner.simulation.profile import draw, profile_of

AGENT = "openai/simulated-agent"
MONITOR = "openai/simulated-monitor"


@contextmanager
def simulated_models(order: Order, task: Task, environment: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """The environment of an agent process that reaches the simulation; it lives as long as this.

    One seed, task and run index give the same agent under every strategy, model server and machine.
    """
    seed = int(draw(order.seed, order.cell.task, order.cell.run) * 2**53)
    policies = {
        AGENT.partition("/")[2]: agent_policy(plans_of(task), profile_of(order.cell.model), seed),
    }
    if order.conditions.monitor:
        policies[MONITOR.partition("/")[2]] = monitor_policy(profile_of(order.conditions.monitor), seed)
    with ScriptedModel(by_model(policies)) as server:
        yield {**environment, **local_provider(server.base_url)}
