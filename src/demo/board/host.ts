/** Connects the task board with the relay: a runtime, and the control server that the board calls. */
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
  /** The base address of the application. */
  readonly appUrl: string;
  readonly apiToken: string;
};

/** Connects the application with the relay: a link to the relay, and the control server that the application calls. */
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
  // This action is advertised, but is not among the site's actions, so no viewer may invoke it.
  runtime.handle('task.clear', { summary: 'Empties the board.' }, () => {
    throw new ActionError('The board may not be emptied.');
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
