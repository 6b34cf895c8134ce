import { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';

/**
 * Bytes that the system has taken for the peer so far. One large write counts as it goes, which no public property of a socket shows: its
 * handle says what it was given and what of that still waits. Without a handle like that, whole writes count.
 */
export function takenBytes(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const given = numberOf(handle, 'bytesWritten');
  const waiting = numberOf(handle, 'writeQueueSize');
  return given === null || waiting === null ? socket.bytesWritten - socket.writableLength : given - waiting;
}

/** Whether an answer of an earlier request is on its way over this socket: another would be read as part of it. */
export function isAnswering(socket: Duplex): boolean {
  const response: unknown = Reflect.get(socket, '_httpMessage');
  return response instanceof ServerResponse && response.headersSent;
}

function numberOf(holder: unknown, name: string): number | null {
  if (typeof holder !== 'object' || holder === null) return null;
  const value: unknown = Reflect.get(holder, name);
  return typeof value === 'number' ? value : null;
}
