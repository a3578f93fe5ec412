// Preserves what a tool call may change before it runs (agentrewind/backup/hosts/client.py).
import { spawnSync } from "node:child_process";

const [program, ...words] = __COMMAND__;

function ask(when, tool, sessionID, callID, args, cwd) {
  const document = JSON.stringify({ when, tool, arguments: args, call_id: callID, session: sessionID, cwd });
  const done = spawnSync(program, words, { input: document, encoding: "utf8", cwd });
  if (done.status !== 0) return { block: `the backup hook failed: ${done.stderr || done.error}`, note: "" };
  if (!done.stdout) return { block: "", note: done.stderr };
  return JSON.parse(done.stdout);
}

const held = new Map();

export const AgentRewind = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    held.set(input.callID, output.args);
    const answer = ask("before", input.tool, input.sessionID, input.callID, output.args ?? {}, directory);
    if (answer.note) console.error(answer.note);
    if (answer.block) throw new Error(answer.block);
  },
  "tool.execute.after": async (input) => {
    const args = held.get(input.callID) ?? {};
    held.delete(input.callID);
    ask("after", input.tool, input.sessionID, input.callID, args, directory);
  },
});
