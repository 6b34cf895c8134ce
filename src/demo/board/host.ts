import { randomBytes } from 'node:crypto';
import { startCooperativeSiteControlServer, type ControlServer } from '../../clients/host/index.ts';
import { ActionError, createRuntime, type Runtime } from '../../clients/runtime/index.ts';
import { connectUrl, type Relay } from '../relay.ts';

export const HOST = { userId: 'dora', clientId: 'board-host', clientType: 'console' } as const;

export type BoardHost = AsyncDisposable & {
  readonly control: { readonly url: string; readonly token: string };
  readonly runtime: Runtime;
};

export type BoardHostOptions = {
  readonly relay: Pick<Relay, 'url' | 'token'>;
  /** Of the application, and what changing tasks there takes. */
  readonly appUrl: string;
  readonly apiToken: string;
};

/** What stands between the application and the relay: the link, and the control server that the application talks to. */
export async function startBoardHost({ relay, appUrl, apiToken }: BoardHostOptions): Promise<BoardHost> {
  const token = randomBytes(24).toString('base64url');
  const { userId, ...client } = HOST;
  const runtime = createRuntime({ ...client, url: connectUrl(relay.url), token: () => relay.token(userId) });
  runtime.handle(
    'task.finish',
    {
      summary: 'Finishes a task of the board.',
      schema: {
        type: 'object',
        required: ['id'],
        properties: { id: { type: 'string', pattern: '^t[0-9]{1,9}$' } },
        additionalProperties: false,
      },
    },
    async ({ id }, { signal }) => {
      const headers = { authorization: `Bearer ${apiToken}` };
      const response = await fetch(`${appUrl}/api/tasks/${id}/finish`, { method: 'POST', headers, signal });
      const answer = await response.json();
      if (!response.ok) throw new ActionError(String(answer.message));
      return answer;
    },
  );
  // Advertised, and not among what the site allows: no viewer may.
  runtime.handle('task.clear', { summary: 'Empties the board.' }, () => {
    throw new ActionError('Nobody may.');
  });
  runtime.connect();
  const server = await startControl(runtime, token);
  return {
    runtime,
    control: { url: server.url, token },
    async [Symbol.asyncDispose]() {
      await server.close();
      await runtime.close({ withinMs: 1_000 });
    },
  };
}

async function startControl(runtime: Runtime, token: string): Promise<ControlServer> {
  try {
    return await startCooperativeSiteControlServer({ runtime, token, port: 0 });
  } catch (error) {
    await runtime.close({ withinMs: 0 });
    throw error;
  }
}
