// Preserves what a tool call may change before it runs (agentrewind/backup/hosts/client.py).
import { spawnSync } from "node:child_process";

const [program, ...words] = __COMMAND__;

function ask(when, event, context) {
  const document = JSON.stringify({
    when,
    tool: event.toolName,
    arguments: event.params ?? {},
    call_id: event.toolCallId ?? "",
    session: context?.sessionKey ?? "",
    cwd: context?.workspaceDir ?? process.cwd(),
  });
  const done = spawnSync(program, words, { input: document, encoding: "utf8" });
  if (done.status !== 0) return { block: `the backup hook failed: ${done.stderr || done.error}`, note: "" };
  if (!done.stdout) return { block: "", note: done.stderr };
  return JSON.parse(done.stdout);
}

export default {
  id: "agentrewind",
  name: "AgentRewind backups",
  register(api) {
    api.on("before_tool_call", async (event, context) => {
      const answer = ask("before", event, context);
      if (answer.note) console.error(answer.note);
      if (answer.block) return { block: true, blockReason: answer.block };
      return undefined;
    });
    api.on("after_tool_call", async (event, context) => {
      ask("after", event, context);
    });
  },
};
