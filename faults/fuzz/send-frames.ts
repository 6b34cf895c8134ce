/** Sends frames over one link of the relay under test, from its opening to its end. */
import { WebSocket } from 'ws';
import { isCode } from '../../src/protocol/codes.ts';
import { SUBPROTOCOL, isFault, parseDown } from '../../src/protocol/frames.ts';
import type { FrameSession } from './frames.ts';

/** The time limit of a link from its opening to its end, in milliseconds. */
const SESSION_MS = 20_000;
/** The close code with which the relay reports a failure of its own, which no input may cause. */
const INTERNAL = 4490;

/** Sends the frames of a session over a new link. Resolves when the link is closed, with the faults that were found. */
export function sendFrames(linkUrl: string, { hello, frames, end }: FrameSession): Promise<readonly string[]> {
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  const problems: string[] = [];
  const socket = new WebSocket(linkUrl, SUBPROTOCOL, { perMessageDeflate: false });
  const late = setTimeout(() => {
    problems.push(`the link was not closed within ${SESSION_MS} ms`);
    socket.terminate();
  }, SESSION_MS);
  let begun = false;
  const begin = (): void => {
    if (begun) return;
    begun = true;
    for (const frame of frames) socket.send(frame);
    if (end === 'close') socket.close(1000);
    else socket.send('{"type":"pong"}', () => socket.terminate());
  };
  socket.on('open', () => socket.send(hello));
  socket.on('message', (data) => {
    const frame = parseDown(String(data));
    if (isFault(frame)) problems.push(`the relay sent what is no frame: ${String(data).slice(0, 300)}`);
    else if (frame.type === 'refused' && (!isCode(frame.code) || frame.code === 'internal'))
      problems.push(`refused with the code ${frame.code}: ${frame.message}`);
    else if (frame.type === 'bye' && frame.code === INTERNAL) problems.push(`closed with 4490: ${frame.reason}`);
    // The frames are sent even if the hello was refused, as a careless client would do.
    begin();
  });
  socket.on('error', (error) => void (begun || problems.push(`the link broke before its welcome: ${error.message}`)));
  socket.on('close', () => {
    clearTimeout(late);
    resolve(problems);
  });
  return promise;
}
