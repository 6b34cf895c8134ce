/** Adds a note at the user's kiosk, and answers with what became of it. Runs in Node, not at the edge. */
import { CallerError, createHttpCaller } from 'callboard-client/caller';

export const runtime = 'nodejs';
export const dynamic = 'force-dynamic';

// One caller for the process: it keeps connections open, and asks for a token whenever it needs one.
const caller = createHttpCaller({
  url: process.env.RELAY ?? 'http://127.0.0.1:4400',
  // Sign a token for the user of your session here, with the scope `invoke`.
  token: () => process.env.TOKEN ?? '',
});

export async function POST(request) {
  const { text } = await request.json();
  const target = { userId: 'alice', clientId: 'kiosk-1', action: 'notes.add' };
  try {
    // The request's signal: when the browser goes away, nobody waits any more. The command itself goes on.
    const options = { connectWithinMs: 5_000, respondWithinMs: 15_000, signal: request.signal };
    const answer = await caller.invoke(target, { text }, options);
    if (answer.outcome === 'completed') return Response.json(answer.result, { status: 201 });
    if (answer.outcome === 'outcome_unknown') return Response.json(answer.handle, { status: 202 });
    return Response.json({ outcome: answer.outcome, error: answer.error }, { status: 409 });
  } catch (error) {
    if (!(error instanceof CallerError)) throw error;
    return Response.json({ error: error.code }, { status: 503 });
  }
}
