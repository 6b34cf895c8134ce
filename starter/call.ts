/** A caller: calls an action of the client and one of the page, and shows what became of each. */
import { createHttpCaller } from 'callboard/caller';

const { APP = 'http://127.0.0.1:4400' } = process.env;
const text = process.argv[2] ?? 'milk';

await using caller = createHttpCaller({
  url: `${APP}/relay`,
  token: async () => (await fetch(`${APP}/token`)).text(),
});

for (const [clientId, action] of Object.entries({ 'desk-1': 'notes.add', 'page-1': 'message.show' })) {
  // It waits ten seconds for the client to connect, and half a minute for its answer.
  const budgets = { connectWithinMs: 10_000, respondWithinMs: 30_000 };
  const answer = await caller.invoke({ userId: 'demo', clientId, action }, { text }, budgets);
  const reason = 'error' in answer ? answer.error.message : '';
  console.log(clientId, answer.outcome, answer.outcome === 'completed' ? answer.result : reason);
}
