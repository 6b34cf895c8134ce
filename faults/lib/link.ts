/** Opens a link to a relay and sends frames by hand, as a hostile program would. */
import { WebSocket } from 'ws';
import { SUBPROTOCOL } from '../../src/protocol/frames.ts';

/**
 * The first frame of a link. Without `clientId`, the link belongs to a caller. `payload`: the JSON text of the hello's
 * payload.
 */
export type Hello = {
  readonly token: string;
  readonly clientId?: string;
  readonly instanceId?: string;
  readonly clientType?: 'web' | 'browser';
  readonly payload?: string;
};

/**
 * Opens a link that only answers pings. Resolves after the welcome. Rejects with the relay's reason if the link is
 * refused or closed before that.
 */
export function openBareLink(url: string, hello: Hello): Promise<WebSocket> {
  const { token, clientId, instanceId = `${clientId}-run`, clientType = 'web', payload } = hello;
  const socket = new WebSocket(url, SUBPROTOCOL, { perMessageDeflate: false });
  const client = clientId !== undefined && { client_id: clientId, instance_id: instanceId, client_type: clientType };
  const header = JSON.stringify({ type: 'hello', token, ...client });
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  socket.on('open', () => socket.send(payload === undefined ? header : `${header}\n${payload}`));
  socket.on('message', (data) => {
    const text = String(data);
    if (text.startsWith('{"type":"ping"')) socket.send('{"type":"pong"}');
    else if (text.startsWith('{"type":"welcome"')) resolve(socket);
    else if (text.startsWith('{"type":"refused"')) reject(new Error(text));
  });
  socket.on('error', reject);
  socket.on('close', (code, reason) => reject(new Error(`closed: ${code} ${String(reason)}`)));
  return promise;
}
