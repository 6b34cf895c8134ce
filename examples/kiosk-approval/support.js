/** The support's program: `node support.js 2` asks the kiosk to print two copies, and says what became of it. */
import { CallerError, createHttpCaller } from 'callboard/caller';

/** Returns what a member of the support reads. */
export async function print({ url, copies }) {
  await using caller = createHttpCaller({
    url: `${url}/relay`,
    token: async () => (await fetch(`${url}/token/support`)).text(),
  });
  const target = { userId: 'shop', clientId: 'kiosk-7', action: 'receipt.print' };
  try {
    const answer = await caller.invoke(target, { copies }, { connectWithinMs: 5_000, respondWithinMs: 60_000 });
    if (answer.outcome === 'completed') return `printed ${answer.result.printed}`;
    if (answer.outcome === 'outcome_unknown') return 'it may have printed: look at the kiosk';
    return `${answer.outcome}: ${answer.error?.message}`;
  } catch (error) {
    if (error instanceof CallerError) return `refused: ${error.code}`;
    throw error;
  }
}

if (import.meta.main) {
  const { APP = 'http://127.0.0.1:4400' } = process.env;
  console.log(await print({ url: APP, copies: Number(process.argv[2] ?? 1) }));
}
